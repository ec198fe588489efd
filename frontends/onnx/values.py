"""What a name of an ONNX graph can stand for while it is imported.

Tensors are HLO instructions. Sequences and optionals exist only here: their structure is known at
import, so they are Python tuples of values and never reach HLO. Strings exist only as constants.
"""

from dataclasses import dataclass
from typing import TypeAlias

from onnxla.hlo.module import Instruction
from onnxla.hlo.types import Array


@dataclass(frozen=True)
class SequenceValue:
    """An ONNX sequence of known length."""

    elements: tuple["Value", ...]

    def __str__(self) -> str:
        return f"sequence of {len(self.elements)}"


@dataclass(frozen=True)
class OptionalValue:
    """An ONNX optional whose presence is known."""

    value: "Value | None"

    def __str__(self) -> str:
        return "empty optional" if self.value is None else f"optional {describe(self.value)}"


@dataclass(frozen=True, eq=False)
class StringConstant:
    """A constant tensor of strings: a numpy array of `str` objects."""

    array: Array

    def __str__(self) -> str:
        return f"string[{','.join(map(str, self.array.shape))}]"


Value: TypeAlias = Instruction | SequenceValue | OptionalValue | StringConstant


def describe(value: Value) -> str:
    """The type in words, for messages: `f32[1,64,56,56]`, `sequence of 3`."""
    return str(value.type).split("{")[0] if isinstance(value, Instruction) else str(value)
