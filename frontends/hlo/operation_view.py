"""What a rule sees of its operation: operands, attributes under either of their names, types, regions."""

import re
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn, Protocol

from onnxla.errors import CompileError, DynamicShapeError, Problem, ShapeError, SourceNode, UnsupportedOpError
from onnxla.frontends.hlo.session import Session
from onnxla.frontends.hlo.syntax import Dense, Form, Function, Operation, Region, Symbol, TensorForm, Written
from onnxla.frontends.problems import FOR_HLO
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Computation, Instruction
from onnxla.hlo.types import Array, ElementType, Shape, TensorType, Type

_ENUMERATOR = re.compile(r"(?a)(\w+)>?$")
_FIELD = re.compile(r"(?a)(\w+)\s*=\s*(\[[^\[\]]*\]|-?\w+)")


class Rejected(Exception):
    """A rule has given up: its problem, or None where an operand was rejected before."""

    def __init__(self, problem: Problem | None) -> None:
        self.problem = problem


class Host(Protocol):
    """What an operation asks of the computation around it (`scope.py`). Every method raises Rejected."""

    session: Session
    builder: Builder

    def lookup(self, name: str, at: int) -> Instruction:
        """The value of that name."""

    def captured(self, regions: Iterable[Region]) -> list[str]:
        """The values from around that regions read, without the constants, which they get as copies."""

    def combiner(self, view: "OperationView", region: Region) -> Computation:
        """A region whose arguments are parameters."""

    def over_tuple(
        self, view: "OperationView", region: Region, carried: Sequence[Type], captured: Sequence[str], name: str
    ) -> "tuple[Host, list[Instruction], list[Instruction]]":
        """A computation with one tuple as parameter: of the carried values, then the captured ones.

        Also what the region returns, and the elements of the parameter that stand for the captured values.
        """

    def call(
        self, view: "OperationView", function: Function, arguments: Sequence[Instruction | None]
    ) -> list[Instruction]:
        """The results of a function. Arguments that were rejected are None."""


class OperationView:
    """One operation. Attributes have other names in StableHLO's own text than in the generic form: both are asked for.

    Every method raises Rejected for what does not fit.
    """

    def __init__(
        self, operation: Operation, operands: Sequence[Instruction | None], source: SourceNode, host: Host
    ) -> None:
        """`operands` are None where they were rejected: a rule gets as far as it comes without them."""
        self.operation = operation
        self.given = tuple(operands)
        self.source = source
        self.host = host

    # Operands and types

    @property
    def operands(self) -> tuple[Instruction, ...]:
        found = tuple(o for o in self.given if o is not None)
        if len(found) < len(self.given):
            raise Rejected(None)
        return found

    def operand(self, index: int) -> Instruction:
        if index >= len(self.given):
            self.shape_error(f"operand {index} is missing; there are {len(self.given)}")
        operand = self.given[index]
        if operand is None:
            raise Rejected(None)
        return operand

    @property
    def forms(self) -> Sequence[Form]:
        """The types of the results as the text has them."""
        return self.operation.result_forms

    def form(self, index: int = 0) -> TensorForm:
        form = self.forms[index] if index < len(self.forms) else None
        if not isinstance(form, TensorForm):
            self.shape_error(f"result {index} is {form or 'missing'}; a tensor was expected")
        return form

    def element(self) -> ElementType:
        """The element type of the result."""
        return self.form().element

    def result_type(self, index: int = 0) -> TensorType:
        """The type of a result, which must be static."""
        form = self.form(index)
        if not form.is_static:
            self.unsupported(f"{self.operation.name} to {form}, whose size nothing gives")
        return TensorType(form.element, tuple(n or 0 for n in form.shape))

    def known(self, index: int, what: str) -> Array:
        """The value of an operand that decides a shape."""
        value = self.host.session.known_value(self.operand(index))
        if value is None:
            raise Rejected(
                Problem(
                    DynamicShapeError,
                    f"{what} is computed from data, and it decides the shape of the result",
                    self.source,
                    (*self.place,),
                    "make it a constant, or a size of an input",
                )
            )
        return value

    def known_ints(self, index: int, what: str) -> Shape:
        return tuple(int(n) for n in self.known(index, what).reshape(-1))

    # Attributes

    def has(self, *names: str) -> bool:
        return any(name in self.operation.attributes for name in names)

    def attribute(self, *names: str, default: Any = None) -> Any:
        """The attribute under the first of `names` that is there."""
        for name in names:
            if name in self.operation.attributes:
                return self.operation.attributes[name]
        if default is None:
            self.shape_error(f"the attribute {names[0]} is missing")
        return default

    def ints(self, *names: str, default: Sequence[int] | None = None) -> Shape:
        """A list of integers."""
        value = self.attribute(*names, default=default)
        if isinstance(value, Dense):
            return tuple(int(n) for n in value.array().reshape(-1))
        if not isinstance(value, (list, tuple)) or not all(isinstance(n, int) for n in value):
            self.shape_error(f"the attribute {names[0]} is no list of integers")
        return tuple(int(n) for n in value)

    def integer(self, *names: str, default: int | None = None) -> int:
        value = self.attribute(*names, default=default)
        if not isinstance(value, int):
            self.shape_error(f"the attribute {names[0]} is no integer")
        return value

    def flag(self, *names: str, default: bool | None = None) -> bool:
        return bool(self.attribute(*names, default=default))

    def word(self, *names: str, default: str | None = None, position: int | None = None) -> str:
        """An enumerator: `#stablehlo<comparison_direction LT>`, or the word that stands at `position`."""
        words = self.operation.attributes.get("words", [])
        if position is not None and position < len(words):
            return str(words[position])
        value = self.attribute(*names, default=default)
        found = _ENUMERATOR.search(value.text if isinstance(value, Written) else str(value))
        if found is None:
            self.shape_error(f"the attribute {names[0]} is no word")
        return found[1]

    def symbol(self, *names: str) -> str:
        value = self.attribute(*names)
        return value.name if isinstance(value, Symbol) else str(value)

    def structure(self, *names: str) -> dict[str, Any]:
        """`#stablehlo.gather<offset_dims = [1], index_vector_dim = 1>` as its fields."""
        value = self.attribute(*names)
        if not isinstance(value, Written):
            self.shape_error(f"the attribute {names[0]} has no fields")
        fields: dict[str, Any] = {}
        for name, text in _FIELD.findall(value.text):
            try:
                fields[name] = [int(n) for n in text[1:-1].split(",") if n.strip()] if text[0] == "[" else int(text)
            except ValueError:
                self.shape_error(f"{name} in the attribute {names[0]} is not made of integers")
        return fields

    # Regions and functions

    def region(self, index: int) -> Region:
        if index >= len(self.operation.regions):
            self.shape_error(f"region {index} is missing")
        return self.operation.regions[index]

    def combiner(self, index: int = 0) -> Computation:
        """A region over scalars as a computation; what it captures must be constants."""
        return self.host.combiner(self, self.region(index))

    def function(self, name: str) -> Function:
        found = self.host.session.program.functions.get(name)
        if found is None:
            self.shape_error(f"no function is called @{name}")
        return found

    # Problems

    @property
    def place(self) -> tuple[tuple[str, str], ...]:
        """Where the operation stands, as a labelled line."""
        first = self.host.session.program.place(self.operation.at).strip().partition("\n")[0]
        return (("at", first),)

    def unsupported(self, cause: str, hint: str = "") -> NoReturn:
        self._reject(UnsupportedOpError, cause, hint)

    def shape_error(self, cause: str) -> NoReturn:
        self._reject(ShapeError, cause, "")

    def _reject(self, kind: type[CompileError], cause: str, hint: str) -> NoReturn:
        raise Rejected(Problem(kind, cause, self.source, self.place, hint or FOR_HLO[kind]))
