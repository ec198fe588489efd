"""What a name of an ONNX graph can stand for while it is imported.

Tensors are HLO instructions. Sequences and optionals exist only here: their structure is known at
import, so they are Python tuples of values and never reach HLO. Strings exist as constants, and as
places in a table of constants: only the places are computed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from onnxla.frontends.poison import Poison
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


@dataclass(frozen=True, eq=False)
class ChosenStrings:
    """A tensor of strings out of a table that is known; `places` says which, and is computed."""

    places: Instruction
    table: tuple[str, ...]
    input: str = ""
    """Where set, the last entry of the table stands for any other string of the graph's input of this name."""

    def __str__(self) -> str:
        return f"string[{','.join(map(str, self.places.shape))}]"


@dataclass(frozen=True, eq=False)
class MapsValue:
    """A sequence of maps, one for each row of `scores` [rows, keys]: what ZipMap makes, and only outputs take."""

    scores: Instruction
    keys: tuple[int | str, ...]

    def __str__(self) -> str:
        return f"sequence of {self.scores.shape[0]} maps"


Value: TypeAlias = Instruction | SequenceValue | OptionalValue | StringConstant | ChosenStrings | MapsValue


def tensors_of(value: Value, name: str) -> Iterator[tuple[str, Instruction]]:
    """The tensors that `value` is computed from, from left to right, with names for them."""
    match value:
        case Instruction():
            yield name, value
        case ChosenStrings(places=tensor) | MapsValue(scores=tensor):
            yield name, tensor
        case SequenceValue(elements):
            for i, element in enumerate(elements):
                yield from tensors_of(element, f"{name}[{i}]")
        case OptionalValue(inside) if inside is not None:
            yield from tensors_of(inside, name)


def describe(value: Value | Poison) -> str:
    """The type in words, for messages: `f32[1,64,56,56]`, `sequence of 3`."""
    return str(value.type).split("{")[0] if isinstance(value, Instruction) else str(value)
