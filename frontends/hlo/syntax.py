"""What the text of an MLIR module says, before it means anything: operations, regions, functions, types, attributes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from onnxla.hlo.types import Array, ElementType, TensorType

DeclaredShape: TypeAlias = tuple[int | None, ...]
"""Sizes; None where the text has a question mark."""


@dataclass(frozen=True)
class TensorForm:
    """A tensor type as it is written."""

    element: ElementType
    shape: DeclaredShape = ()

    @property
    def is_static(self) -> bool:
        return None not in self.shape

    def fits(self, type: object) -> bool:
        """Whether a value of `type` is what the text declares."""
        return (
            isinstance(type, TensorType)
            and type.element is self.element
            and len(type.shape) == len(self.shape)
            and all(n is None or n == m for n, m in zip(self.shape, type.shape, strict=True))
        )

    def __str__(self) -> str:
        return f"{self.element}[{','.join('?' if n is None else str(n) for n in self.shape)}]"


@dataclass(frozen=True)
class TupleForm:
    """A tuple type as it is written."""

    elements: tuple["Form", ...]

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.elements))})"


@dataclass(frozen=True)
class OtherForm:
    """A type that no tensor has: `!stablehlo.token`, `none`."""

    text: str

    def __str__(self) -> str:
        return self.text


Form: TypeAlias = TensorForm | TupleForm | OtherForm


@dataclass(frozen=True)
class FunctionForm:
    """`(operands) -> results`."""

    operands: tuple[Form, ...]
    results: tuple[Form, ...]


@dataclass(frozen=True)
class Symbol:
    """`@name`."""

    name: str


@dataclass(frozen=True)
class Written:
    """An attribute of a dialect, as its text: `#stablehlo.conv<...>` or what is between its angle brackets."""

    text: str


@dataclass(frozen=True)
class Dense:
    """`dense<...>`: the values, or the one value that all elements have."""

    form: TensorForm
    values: Array

    @property
    def is_splat(self) -> bool:
        return self.values.ndim == 0

    def array(self) -> Array:
        """All values. Only for attributes, which are as short as their text unless they are one value repeated."""
        return np.broadcast_to(self.values, tuple(n or 0 for n in self.form.shape))


@dataclass
class Argument:
    """An argument of a region or function."""

    name: str
    form: Form
    attributes: Mapping[str, Any] = field(default_factory=dict)
    location: str = ""


@dataclass
class Region:
    """One block: arguments and operations, the last of which returns."""

    arguments: Sequence[Argument]
    operations: list["Operation"]

    def walk(self) -> Iterator["Operation"]:
        """Every operation in it, those of regions inside as well."""
        stack = [iter(self.operations)]
        while stack:
            operation = next(stack[-1], None)
            if operation is None:
                stack.pop()
                continue
            yield operation
            stack += [iter(region.operations) for region in operation.regions]


@dataclass
class Operation:
    """`%results = name(%operands) attributes regions : types`."""

    name: str
    at: int
    """Its offset in the text."""
    results: tuple[str, ...] = ()
    """`3#0`, `3#1`: one name for each."""
    operands: tuple[str, ...] = ()
    attributes: dict[str, Any] = field(default_factory=dict)
    regions: list[Region] = field(default_factory=list)
    operand_forms: tuple[Form, ...] | None = None
    result_forms: tuple[Form, ...] = ()
    location: str = ""
    is_unread: bool = False
    """Whether it is of a dialect whose text is not known: only its name and the names of its results are."""


@dataclass
class Function:
    """`func.func @name`."""

    name: str
    at: int
    body: Region
    result_forms: tuple[Form, ...]
    result_attributes: Sequence[Mapping[str, Any]] = ()
    is_dynamic: bool = False
    """Whether a size is left open in it."""


@dataclass
class Program:
    """A module: its functions by name."""

    name: str
    functions: dict[str, Function]
    main: Function
    place: Callable[[int], str]
    """The line and column of an offset, and the line itself."""
    aliases: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""
    """All of it, as it was read."""

    @property
    def is_dynamic(self) -> bool:
        """Whether a size is left open."""
        return any(f.is_dynamic for f in self.functions.values())
