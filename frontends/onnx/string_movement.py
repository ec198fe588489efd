"""Operators that move elements move strings as well: what they move is places in a table of strings."""

from collections.abc import Callable, Sequence

import numpy as np

from onnxla.frontends.onnx.failed_values import Binding
from onnxla.frontends.onnx.values import ChosenStrings, StringConstant, Value
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import Array

_MOVEMENTS = frozenset(
    "ArrayFeatureExtractor DepthToSpace Expand Flatten Gather GatherElements GatherND Reshape ReverseSequence Slice "
    "SpaceToDepth Split Squeeze Tile Transpose Unsqueeze".split()
)


def moves_strings(op_type: str, inputs: Sequence[Binding]) -> bool:
    """Whether an operator, on these inputs, gives elements of its first input, which are strings."""
    return op_type in _MOVEMENTS and bool(inputs) and isinstance(inputs[0], (StringConstant, ChosenStrings))


def as_chosen(b: Builder, value: Binding) -> ChosenStrings:
    """Strings as the places that they have in a table."""
    if isinstance(value, ChosenStrings):
        return value
    assert isinstance(value, StringConstant)
    table = tuple(map(str, value.array.reshape(-1)))
    return ChosenStrings(b.constant(np.arange(len(table), dtype=np.int64).reshape(value.array.shape)), table)


def strings_at(places: Instruction, of: ChosenStrings, known: Callable[[Instruction], Array | None]) -> Value:
    """The strings at `places` in the table of others: a constant where the places are known."""
    chosen = known(places)
    if chosen is None:
        return ChosenStrings(places, of.table, of.input)
    strings = np.empty(len(of.table), object)
    strings[:] = of.table
    return StringConstant(np.asarray(strings[chosen], object).reshape(chosen.shape))
