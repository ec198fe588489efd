"""For each operation: where the rows of its result are, given where those of its operands are.

A rule gets the instruction in the larger program and its twin in the smaller one (`row_independence.py`), and raises
RowsMix where rows meet. What it says of the result's shape is checked against both programs by its caller, and so are
attributes that a rule does not read.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.contraction import Convolution, Dot
from onnxla.hlo.ops.control_flow import Map
from onnxla.hlo.ops.elementwise import BitcastConvert, Elementwise
from onnxla.hlo.ops.indexing import DynamicSlice, DynamicUpdateSlice, Gather, Sort
from onnxla.hlo.ops.linear_algebra import Cholesky, Fft, TriangularSolve
from onnxla.hlo.ops.reduction import Reduce, ReduceWindow
from onnxla.hlo.ops.shape import Broadcast, Concatenate, Pad, Reshape, Reverse, Slice, Transpose
from onnxla.hlo.ops.structural import Constant, Iota
from onnxla.hlo.types import TupleType
from onnxla.passes.rows import Even, Placed, Rows, RowsMix, State, common, placed, reshaped


@dataclass(frozen=True)
class Sizes:
    """The rows of the larger program and of the smaller one."""

    large: int
    small: int


Rule = Callable[[Any, Instruction, Instruction, Sequence[State], Sizes], State]


def rows_of(instruction: Instruction, twin: Instruction, states: Sequence[State], sizes: Sizes) -> State:
    """The state of the instruction's value. Raises RowsMix, also for operations that no rule knows."""
    for kind, rule in _RULES:
        if isinstance(instruction.op, kind):
            return rule(instruction.op, instruction, twin, states, sizes)
    if all(_is_free(s) for s in states):
        return _free(instruction)
    raise RowsMix(f"nothing is known about the rows of {instruction.op.opcode}")


def is_free(state: State) -> bool:
    """Whether a value does not depend on the rows."""
    return _is_free(state)


def _is_free(state: State) -> bool:
    return all(map(_is_free, state)) if isinstance(state, tuple) else state is None


def _free(instruction: Instruction) -> State:
    count = len(instruction.type.elements) if isinstance(instruction.type, TupleType) else 0
    return (None,) * count if count else None


def _for_each_result(instruction: Instruction, state: Placed | None) -> State:
    """The same state for every element, where the result is a tuple."""
    return (state,) * len(instruction.type.elements) if isinstance(instruction.type, TupleType) else state


def _new_dimension(i: Instruction, twin: Instruction) -> int | None:
    """The dimension whose size the number of rows decides; None where there is none."""
    found = [d for d, (n, m) in enumerate(zip(i.shape, twin.shape, strict=True)) if n != m]
    if len(found) > 1:
        raise RowsMix("two of its dimensions depend on the number of rows")
    return found[0] if found else None


def _constant(op: Constant, i: Instruction, twin: Instruction, states: Sequence[State], sizes: Sizes) -> State:
    """A table with an entry for each row is as good as rows where the smaller one is the beginning of the larger."""
    assert isinstance(twin.op, Constant)
    large, small = op.literal, twin.op.literal
    dimension = _new_dimension(i, twin)
    beginning = large.array
    if dimension is not None:
        index = [slice(None)] * beginning.ndim
        index[dimension] = slice(0, twin.shape[dimension])
        beginning = beginning[tuple(index)]
    elif large == small:
        return None
    if beginning.shape != small.array.shape or beginning.tobytes() != small.array.tobytes():
        raise RowsMix("its value depends on the number of rows")
    return None if dimension is None else Rows(dimension, 1, i.shape[dimension] // sizes.large)


def _iota(op: Iota, i: Instruction, twin: Instruction, states: Sequence[State], sizes: Sizes) -> State:
    dimension = _new_dimension(i, twin)
    if dimension is None:
        return None
    return Rows(dimension, 1, i.shape[dimension] // sizes.large) if op.dimension == dimension else Even(dimension)


def _broadcast(op: Broadcast, i: Instruction, twin: Instruction, states: Sequence[State], sizes: Sizes) -> State:
    state = placed(states[0])
    if state is not None:
        return state.at(op.dimensions[state.dimension])
    dimension = _new_dimension(i, twin)
    return None if dimension is None else Even(dimension)


def _reshape(op: Reshape, i: Instruction, twin: Instruction, states: Sequence[State], sizes: Sizes) -> State:
    state = placed(states[0])
    return None if state is None else reshaped(state, i.operands[0].shape, i.shape, sizes.large)


def _transpose(op: Transpose, i: Instruction, twin: Instruction, states: Sequence[State], sizes: Sizes) -> State:
    state = placed(states[0])
    return None if state is None else state.at(op.permutation.index(state.dimension))


def _reverse(op: Reverse, i: Instruction, twin: Instruction, states: Sequence[State], sizes: Sizes) -> State:
    state = placed(states[0])
    if isinstance(state, Rows) and state.dimension in op.dimensions:
        raise RowsMix("it turns the order of the rows round")
    return state


def _slice(op: Slice, i: Instruction, twin: Instruction, states: Sequence[State], sizes: Sizes) -> State:
    state, other = placed(states[0]), twin.op
    assert isinstance(other, Slice)
    for d, ranges in enumerate(zip(op.starts, op.limits, op.strides, other.starts, other.limits, strict=True)):
        whole = ranges == (0, i.operands[0].shape[d], 1, 0, twin.operands[0].shape[d])
        if state is not None and state.dimension == d:
            if not whole:
                raise RowsMix("it takes some of the rows")
        elif ranges[:2] != ranges[3:] or op.strides[d] != other.strides[d]:
            raise RowsMix("what it takes depends on the number of rows")
    return state


def _concatenate(op: Concatenate, i: Instruction, twin: Instruction, states: Sequence[State], sizes: Sizes) -> State:
    state = common(i.operands, states)
    if state is not None and state.dimension == op.dimension:
        raise RowsMix("it puts values with rows one behind the other")
    return state


def _pad(op: Pad, i: Instruction, twin: Instruction, states: Sequence[State], sizes: Sizes) -> State:
    state = placed(states[0])
    if placed(states[1]) is not None:
        raise RowsMix("what it pads with has rows")
    if state is not None and (op.low[state.dimension], op.high[state.dimension], op.interior[state.dimension]) != (
        0,
        0,
        0,
    ):
        raise RowsMix("it pads the rows")
    return state


def _elementwise(op: Any, i: Instruction, twin: Instruction, states: Sequence[State], sizes: Sizes) -> State:
    return common(i.operands, states)


def _bitcast(op: BitcastConvert, i: Instruction, twin: Instruction, states: Sequence[State], sizes: Sizes) -> State:
    state = placed(states[0])
    if state is not None and len(i.shape) != len(i.operands[0].shape) and state.dimension >= len(i.shape) - 1:
        raise RowsMix("it makes other elements of the rows")
    return state


def _reduce(op: Reduce, i: Instruction, twin: Instruction, states: Sequence[State], sizes: Sizes) -> State:
    count = len(states) // 2
    state = common(i.operands[:count], states[:count])
    if any(s is not None for s in states[count:]):
        raise RowsMix("what it begins with has rows")
    if state is not None:
        if state.dimension in op.dimensions:
            raise RowsMix("it combines all rows")
        state = state.at(state.dimension - sum(d < state.dimension for d in op.dimensions))
    return _for_each_result(i, state)


def _reduce_window(op: ReduceWindow, i: Instruction, twin: Instruction, states: Sequence[State], sizes: Sizes) -> State:
    count = len(states) // 2
    state = common(i.operands[:count], states[:count])
    if any(s is not None for s in states[count:]):
        raise RowsMix("what it begins with has rows")
    if state is not None and not op.window.dimensions[state.dimension].is_trivial:
        raise RowsMix("its window slides over the rows")
    return _for_each_result(i, state)


def _dot(op: Dot, i: Instruction, twin: Instruction, states: Sequence[State], sizes: Sizes) -> State:
    (left, right), (lhs, rhs) = map(placed, states), i.operands
    left_free, right_free = op.lhs_free(lhs.tensor_type.rank), op.rhs_free(rhs.tensor_type.rank)
    if left is None and right is None:
        return None
    if (left is not None and left.dimension in op.lhs_contracting) or (
        right is not None and right.dimension in op.rhs_contracting
    ):
        raise RowsMix("it sums over the rows")
    if left is not None and left.dimension in op.lhs_batch:
        place = op.lhs_batch.index(left.dimension)
        if right is None or op.rhs_batch[place] != right.dimension:
            raise RowsMix("it multiplies each row with what has no row for it")
        if isinstance(left, Rows) and isinstance(right, Rows) and left.at(0) != right.at(0):
            raise RowsMix("its operands have their rows in different places")
        return (left if isinstance(left, Rows) else right).at(place)
    if left is not None and right is not None:
        raise RowsMix("it multiplies rows with rows")
    if left is not None and left.dimension in left_free:
        return left.at(len(op.lhs_batch) + left_free.index(left.dimension))
    if right is not None and right.dimension in right_free:
        return right.at(len(op.lhs_batch) + len(left_free) + right_free.index(right.dimension))
    raise RowsMix("it multiplies each row with what has no row for it")


def _convolution(op: Convolution, i: Instruction, twin: Instruction, states: Sequence[State], sizes: Sizes) -> State:
    state, kernel = map(placed, states)
    if kernel is not None:
        raise RowsMix("its kernel has rows")
    if state is None:
        return None
    if state.dimension != op.dimensions.input_batch or op.batch_group_count != 1:
        raise RowsMix("it sums over the rows")
    return state.at(op.dimensions.output_batch)


def _gather(op: Gather, i: Instruction, twin: Instruction, states: Sequence[State], sizes: Sizes) -> State:
    operand, indices = map(placed, states)
    others = [d for d in range(len(i.shape)) if d not in op.offset_dims]
    index_dims = [d for d in range(i.operands[1].tensor_type.rank) if d != op.index_vector_dim]
    if operand is None and indices is None:
        return None
    if indices is not None and indices.dimension not in index_dims:
        raise RowsMix("a place that it reads depends on several rows")
    if operand is None:
        assert indices is not None
        return indices.at(others[index_dims.index(indices.dimension)])
    if operand.dimension in op.operand_batching_dims:
        pair = op.start_indices_batching_dims[op.operand_batching_dims.index(operand.dimension)]
        if (
            indices is None
            or indices.dimension != pair
            or {type(operand), type(indices)} != {Rows}
            or (operand.at(0) != indices.at(0))
        ):
            raise RowsMix("it reads each row where no row says")
        return indices.at(others[index_dims.index(pair)])
    if indices is not None:
        raise RowsMix("where it reads depends on rows, and what it reads too")
    dropped = (*op.collapsed_slice_dims, *op.operand_batching_dims)
    kept = [d for d in range(i.operands[0].tensor_type.rank) if d not in dropped]
    whole = i.operands[0].shape[operand.dimension], twin.operands[0].shape[operand.dimension]
    assert isinstance(twin.op, Gather)
    there = op.slice_sizes[operand.dimension], twin.op.slice_sizes[operand.dimension]
    if operand.dimension not in kept or there != whole:
        raise RowsMix("it takes some of the rows")
    return operand.at(op.offset_dims[kept.index(operand.dimension)])


def _dynamic_slice(op: DynamicSlice, i: Instruction, twin: Instruction, states: Sequence[State], sizes: Sizes) -> State:
    state = placed(states[0])
    if any(s is not None for s in states[1:]):
        raise RowsMix("where it reads depends on rows")
    if state is not None and i.shape[state.dimension] != i.operands[0].shape[state.dimension]:
        raise RowsMix("it takes some of the rows")
    return state


def _dynamic_update(
    op: DynamicUpdateSlice, i: Instruction, twin: Instruction, states: Sequence[State], sizes: Sizes
) -> State:
    if any(s is not None for s in states[2:]):
        raise RowsMix("where it writes depends on rows")
    state = common(i.operands[:2], states[:2])
    if state is not None and i.operands[1].shape[state.dimension] != i.shape[state.dimension]:
        raise RowsMix("it writes some of the rows")
    return state


def _sort(op: Sort, i: Instruction, twin: Instruction, states: Sequence[State], sizes: Sizes) -> State:
    state = common(i.operands, states)
    if state is not None and state.dimension == op.dimension:
        raise RowsMix("it sorts the rows")
    return _for_each_result(i, state)


def _of_matrices(keep: Callable[[Any], int]) -> Rule:
    """Operations on each of a batch of vectors or matrices, in the last `keep(op)` dimensions."""

    def rule(op: Any, i: Instruction, twin: Instruction, states: Sequence[State], sizes: Sizes) -> State:
        state = common(i.operands, states)
        if state is not None and state.dimension >= len(i.shape) - keep(op):
            raise RowsMix("it works on all rows together")
        return state

    return rule


_RULES: tuple[tuple[Any, Rule], ...] = (
    (Elementwise, _elementwise),
    (Map, _elementwise),
    (Constant, _constant),
    (Iota, _iota),
    (Broadcast, _broadcast),
    (Reshape, _reshape),
    (Transpose, _transpose),
    (Reverse, _reverse),
    (Slice, _slice),
    (Concatenate, _concatenate),
    (Pad, _pad),
    (BitcastConvert, _bitcast),
    (Reduce, _reduce),
    (ReduceWindow, _reduce_window),
    (Dot, _dot),
    (Convolution, _convolution),
    (Gather, _gather),
    (DynamicSlice, _dynamic_slice),
    (DynamicUpdateSlice, _dynamic_update),
    (Sort, _sort),
    (Fft, _of_matrices(lambda op: len(op.fft_length))),
    (Cholesky, _of_matrices(lambda op: 2)),
    (TriangularSolve, _of_matrices(lambda op: 2)),
)
"""The first that fits."""
SIZED = {"shape", "type", "literal", "starts", "limits", "strides", "sizes", "slice_sizes", "number"}
"""Fields that shapes decide, or that rules compare; all others must be equal in both programs."""

__all__ = ["SIZED", "Sizes", "is_free", "rows_of"]
