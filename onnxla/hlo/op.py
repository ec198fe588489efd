"""What an HLO operation is: a frozen class whose fields are its attributes.

A subclass names its opcode, declares its fields, and says what it means twice over, in
`infer` (the shape rule) and `evaluate` (the reference, in numpy). Everything else reads the
class: the builder and the verifier call `infer`, folding and the interpreter call `evaluate`,
the printer and parser walk the fields, and equal operations hash equal.
"""

import dataclasses
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Protocol

from onnxla.errors import HloError
from onnxla.hlo.types import TensorType, Type, Value

if TYPE_CHECKING:
    from onnxla.hlo.module import Computation

OPS: dict[str, type["Op"]] = {}
"""Every operation by opcode."""


class Codec(Protocol):
    """How a field's value is written as an HLO attribute and read back."""

    calls: ClassVar[bool]
    """Whether the value is computations that the operation calls: one, or a tuple of them."""

    def format(self, value: Any) -> str: ...

    def parse(self, text: str, computations: dict[str, "Computation"]) -> Any: ...


def attribute(name: str, codec: Codec, *, absent: Any = dataclasses.MISSING, **field: Any) -> Any:
    """A field printed as `name=<text>`, left out while the value is `absent` (by default, the default).

    Fields of one class with the same name are written together, their codec takes the tuple of values.
    """
    unwritten = absent if absent is not dataclasses.MISSING else field.get("default", dataclasses.MISSING)
    metadata = {"attribute": name, "codec": codec}
    return dataclasses.field(
        metadata=metadata if unwritten is dataclasses.MISSING else metadata | {"absent": unwritten}, **field
    )


def from_result(read: Callable[[Any], Any], **field: Any) -> Any:
    """A field that is not printed: the parser reads it off the instruction's result type."""
    return dataclasses.field(metadata={"from_result": read}, **field)


@dataclass(frozen=True)
class Op:
    """The base of all operations."""

    opcode: ClassVar[str]

    def __init_subclass__(cls, *, name: str | None = None) -> None:
        """Register the class under the opcode `name`; a shared base class gives none."""
        if name is not None:
            if name in OPS:
                raise TypeError(f"two classes claim the opcode {name}")
            cls.opcode = name
            OPS[name] = cls

    def infer(self, *operands: Any) -> Type:
        """The result type for operand types. Raises HloError when they do not fit."""
        raise NotImplementedError

    def evaluate(self, *operands: Any) -> Value:
        """The result for operand values, in numpy: the reference for every backend."""
        raise NotImplementedError

    @property
    def computations(self) -> tuple["Computation", ...]:
        """The computations this operation calls, in field order."""
        cls = type(self)
        if cls not in _CALLING:
            written = [f for f in dataclasses.fields(cls) if "codec" in f.metadata]
            _CALLING[cls] = [f.name for f in written if f.metadata["codec"].calls]
        found: list[Computation] = []
        for name in _CALLING[cls]:
            value = getattr(self, name)
            found += value if isinstance(value, tuple) else (value,)
        return tuple(found)


_CALLING: dict[type[Op], list[str]] = {}
"""The fields that hold computations, of each operation that was asked."""


def infer_type(op: Op, operands: Sequence[Type]) -> Type:
    """`op.infer`, once it is certain that it gets as many operands as it takes, and tensors where it wants them.

    Raises HloError.
    """
    cls = type(op)
    if cls not in _OPERAND_KINDS:
        _OPERAND_KINDS[cls] = _operand_kinds(cls)
    wanted, rest = _OPERAND_KINDS[cls]
    if len(operands) < len(wanted) or (rest is None and len(operands) > len(wanted)):
        many = f"{'' if rest is None else 'at least '}{len(wanted)} operand{'s' * (len(wanted) != 1)}"
        fail(f"{op.opcode} takes {many}, got {len(operands)}")
    for kind, operand in zip_longest(wanted, operands, fillvalue=rest):
        if kind is TensorType and not isinstance(operand, TensorType):
            fail(f"{op.opcode} takes tensors, got {operand}")
    return op.infer(*operands)


_OPERAND_KINDS: dict[type[Op], tuple[list[Any], Any]] = {}


def _operand_kinds(cls: type[Op]) -> tuple[list[Any], Any]:
    """The annotations of the operands that `cls.infer` takes, and of the further ones; None where it takes no more."""
    parameters = list(inspect.signature(cls.infer).parameters.values())[1:]
    wanted = [p.annotation for p in parameters if p.kind is not p.VAR_POSITIONAL]
    return wanted, next((p.annotation for p in parameters if p.kind is p.VAR_POSITIONAL), None)


def require(condition: bool, message: str) -> None:
    """Raise HloError with `message` unless `condition` holds."""
    if not condition:
        raise HloError(message)


def fail(message: str) -> NoReturn:
    """Raise HloError with `message`."""
    raise HloError(message)


def require_tensor(value: Type) -> TensorType:
    """`value` as a TensorType, or HloError."""
    if not isinstance(value, TensorType):
        fail(f"expected a tensor, got {value}")
    return value
