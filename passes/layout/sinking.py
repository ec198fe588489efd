"""How a transpose passes through an operation: `op(transpose(x))` as `transpose(op'(x))`, op' being op with its
dimensions renamed.

Throughout, `order` is the permutation of the transpose: dimension i of what the program sees is dimension `order[i]` of
the tensor behind it.
"""

import dataclasses
from collections.abc import Callable, Sequence

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.op import Op
from onnxla.hlo.ops.contraction import Window
from onnxla.hlo.ops.elementwise import Elementwise
from onnxla.hlo.ops.indexing import DynamicSlice, DynamicUpdateSlice, Gather
from onnxla.hlo.ops.reduction import Reduce, ReduceWindow
from onnxla.hlo.ops.shape import Broadcast, Concatenate, Pad, Reshape, Reverse, Slice, Transpose
from onnxla.hlo.ops.structural import Constant, Iota
from onnxla.hlo.types import Shape, TensorType
from onnxla.passes.reshape_groups import reshape_groups


def sink(instruction: Instruction, moving: set[Instruction]) -> Instruction | None:
    """What computes `instruction` from the tensors behind its `moving` operands, ending in a transpose where one is
    needed; None where a transpose cannot pass, or would need others in its place."""
    if not isinstance(instruction.type, TensorType) and not isinstance(instruction.op, Reduce):
        return None
    given = [o for o in instruction.operands if o in moving]
    order = permutation_of(given[0])
    if any(o.shape != given[0].shape and isinstance(instruction.op, Elementwise) for o in given):
        return None
    if any(moves_elements(_onto(o, order), o.operands[0].shape) for o in given):
        return None
    rule = _rule_for(instruction.op)
    return rule(instruction, order, moving) if rule is not None else None


Rule = Callable[[Instruction, Shape, set[Instruction]], Instruction | None]


def _rule_for(op: Op) -> Rule | None:
    if isinstance(op, Elementwise):
        return _elementwise
    return _RULES.get(type(op))


def _behind(b: Builder, operand: Instruction, order: Shape, moving: set[Instruction]) -> Instruction:
    """`operand` in the order of the tensors behind: the tensor itself, or a transpose to that order."""
    if operand in moving:
        return b.transpose(operand.operands[0], _onto(operand, order))
    if operand.shape == ():
        return operand
    return b.transpose(operand, inverse(order))


def permutation_of(transpose: Instruction) -> Shape:
    assert isinstance(transpose.op, Transpose)
    return transpose.op.permutation


def _onto(operand: Instruction, order: Shape) -> Shape:
    """What takes the tensor behind `operand`, a transpose, to the order behind `order`: the identity where they agree.

    Orders that differ in dimensions of size 1 only are brought together by a transpose that moves no elements.
    """
    own = permutation_of(operand)
    return tuple(own[d] for d in inverse(order)) if len(own) == len(order) else own


def moves_elements(permutation: Shape, shape: Shape) -> bool:
    """Whether a transpose changes the order of elements in memory: dimensions of size 1 may go anywhere."""
    moved = [d for d in permutation if shape[d] != 1]
    return moved != sorted(moved)


def inverse(order: Shape) -> Shape:
    """The permutation that undoes `order`."""
    places = [0] * len(order)
    for i, d in enumerate(order):
        places[d] = i
    return tuple(places)


def _is_cheap(operand: Instruction) -> bool:
    """Whether another order of its dimensions costs nothing."""
    return isinstance(operand.op, Broadcast | Constant | Iota) or operand.shape == ()


def renamed(values: Sequence[int], order: Shape) -> Shape:
    """One value for each dimension, as seen, in the order behind."""
    return tuple(values[d] for d in inverse(order))


def _elementwise(instruction: Instruction, order: Shape, moving: set[Instruction]) -> Instruction:
    b = Builder(source=instruction.source)
    operands = [_behind(b, o, order, moving) for o in instruction.operands]
    return b.transpose(b.emit(instruction.op, *operands), order)


def _concatenate(instruction: Instruction, order: Shape, moving: set[Instruction]) -> Instruction | None:
    op = instruction.op
    assert isinstance(op, Concatenate)
    resting = [o for o in instruction.operands if o not in moving and not _is_cheap(o)]
    if sum(o.tensor_type.bytes for o in resting) * 2 > instruction.tensor_type.bytes:
        return None
    b = Builder(source=instruction.source)
    operands = [_behind(b, o, order, moving) for o in instruction.operands]
    return b.transpose(b.concatenate(operands, order[op.dimension]), order)


def _pad(instruction: Instruction, order: Shape, moving: set[Instruction]) -> Instruction:
    op, (operand, value) = instruction.op, instruction.operands
    assert isinstance(op, Pad)
    b = Builder(source=instruction.source)
    low, high, interior = (renamed(v, order) for v in (op.low, op.high, op.interior))
    return b.transpose(b.pad(_behind(b, operand, order, moving), value, low, high, interior), order)


def _slice(instruction: Instruction, order: Shape, moving: set[Instruction]) -> Instruction:
    op, (operand,) = instruction.op, instruction.operands
    assert isinstance(op, Slice)
    b = Builder(source=instruction.source)
    rows = (renamed(v, order) for v in (op.starts, op.limits, op.strides))
    return b.transpose(b.slice(_behind(b, operand, order, moving), *rows), order)


def _reverse(instruction: Instruction, order: Shape, moving: set[Instruction]) -> Instruction:
    op, (operand,) = instruction.op, instruction.operands
    assert isinstance(op, Reverse)
    b = Builder(source=instruction.source)
    dimensions = sorted(order[d] for d in op.dimensions)
    return b.transpose(b.reverse(_behind(b, operand, order, moving), dimensions), order)


def _dynamic_slice(instruction: Instruction, order: Shape, moving: set[Instruction]) -> Instruction | None:
    op, (operand, *starts) = instruction.op, instruction.operands
    assert isinstance(op, DynamicSlice)
    if operand not in moving:
        return None
    b = Builder(source=instruction.source)
    moved = [starts[d] for d in inverse(order)]
    return b.transpose(b.dynamic_slice(operand.operands[0], moved, renamed(op.sizes, order)), order)


def _dynamic_update_slice(instruction: Instruction, order: Shape, moving: set[Instruction]) -> Instruction | None:
    operand, update, *starts = instruction.operands
    if operand not in moving and not _is_cheap(operand):
        return None
    b = Builder(source=instruction.source)
    moved = [starts[d] for d in inverse(order)]
    whole, part = (_behind(b, o, order, moving) for o in (operand, update))
    return b.transpose(b.dynamic_update_slice(whole, part, moved), order)


def _broadcast(instruction: Instruction, order: Shape, moving: set[Instruction]) -> Instruction:
    """New dimensions stay behind the dimension that they follow in what the program sees."""
    op, (operand,) = instruction.op, instruction.operands
    assert isinstance(op, Broadcast)
    places: list[tuple[int, int]] = []
    follows = -1
    for d in range(len(op.shape)):
        if d in op.dimensions:
            follows = order[op.dimensions.index(d)]
        places.append((follows, d))
    seen = [d for _, d in sorted(places)]
    dimensions = sorted(seen.index(d) for d in op.dimensions)
    b = Builder(source=instruction.source)
    spread = b.broadcast(operand.operands[0], [op.shape[d] for d in seen], dimensions)
    return b.transpose(spread, inverse(tuple(seen)))


def _transpose(instruction: Instruction, order: Shape, moving: set[Instruction]) -> Instruction:
    op, (operand,) = instruction.op, instruction.operands
    assert isinstance(op, Transpose)
    b = Builder(source=instruction.source)
    return b.transpose(operand.operands[0], [order[d] for d in op.permutation])


def _reduce(instruction: Instruction, order: Shape, moving: set[Instruction]) -> Instruction | None:
    op = instruction.op
    assert isinstance(op, Reduce)
    b = Builder(source=instruction.source)
    count = len(instruction.operands) // 2
    operands, inits = instruction.operands[:count], instruction.operands[count:]
    if any(o not in moving and not _is_cheap(o) for o in operands):
        return None
    dimensions = sorted(order[d] for d in op.dimensions)
    kept = [order[d] for d in range(len(order)) if d not in op.dimensions]
    if count > 1 and kept != sorted(kept):
        return None
    behind = [_behind(b, o, order, moving) for o in operands]
    narrow = b.reduce(behind, inits, dimensions, op.to_apply)
    return narrow if count > 1 else b.transpose(narrow, [sorted(kept).index(d) for d in kept])


def _reduce_window(instruction: Instruction, order: Shape, moving: set[Instruction]) -> Instruction | None:
    op = instruction.op
    assert isinstance(op, ReduceWindow)
    if len(instruction.operands) != 2 or instruction.operands[0] not in moving:
        return None
    operand, init = instruction.operands
    b = Builder(source=instruction.source)
    window = Window(tuple(op.window.dimensions[d] for d in inverse(order)))
    return b.transpose(b.reduce_window([operand.operands[0]], [init], window, op.to_apply), order)


def _gather(instruction: Instruction, order: Shape, moving: set[Instruction]) -> Instruction | None:
    """A gather of whole slices along one dimension, with a vector of indices: numpy.take."""
    op, (operand, indices) = instruction.op, instruction.operands
    assert isinstance(op, Gather)
    if operand not in moving or op.start_index_map != op.collapsed_slice_dims or len(op.start_index_map) != 1:
        return None
    (d,) = op.start_index_map
    rank = len(operand.shape)
    is_take = op.offset_dims == tuple(k for k in range(rank) if k != d) and not op.operand_batching_dims
    whole = all(k == d or n == operand.shape[k] for k, n in enumerate(op.slice_sizes))
    if not is_take or not whole or len(instruction.shape) != rank:
        return None
    place = order[d]
    moved = dataclasses.replace(
        op,
        offset_dims=tuple(k for k in range(rank) if k != place),
        collapsed_slice_dims=(place,),
        start_index_map=(place,),
        slice_sizes=renamed(op.slice_sizes, order),
    )
    b = Builder(source=instruction.source)
    return b.transpose(b.gather(operand.operands[0], indices, moved), order)


def _reshape(instruction: Instruction, order: Shape, moving: set[Instruction]) -> Instruction | None:
    """A reshape that splits and joins dimensions in groups: the tensor behind must hold each joined group together."""
    (operand,) = instruction.operands
    groups = reshape_groups(operand.shape, instruction.shape)
    if groups is None:
        return None
    source = operand.operands[0]
    pieces: list[tuple[int, Shape, Shape]] = []
    for inside, outside in groups:
        behind = [order[d] for d in inside if operand.shape[d] != 1]
        if behind != list(range(behind[0], behind[0] + len(behind))) if behind else False:
            return None
        # dimensions of size 1 stay where they are, new ones stand by the group before
        place = behind[0] if behind else order[inside[0]] if inside else pieces[-1][0] if pieces else -1
        pieces.append((place, inside, outside))
    by_place = sorted(range(len(pieces)), key=lambda k: (pieces[k][0], k))
    places = [d for k in by_place for d in pieces[k][2]]
    b = Builder(source=instruction.source)
    reshaped = b.reshape(source, [instruction.shape[d] for d in places])
    return b.transpose(reshaped, inverse(tuple(places)))


_RULES: dict[type[Op], Rule] = {
    Broadcast: _broadcast,
    Concatenate: _concatenate,
    Pad: _pad,
    Slice: _slice,
    Reverse: _reverse,
    DynamicSlice: _dynamic_slice,
    DynamicUpdateSlice: _dynamic_update_slice,
    Transpose: _transpose,
    Reduce: _reduce,
    ReduceWindow: _reduce_window,
    Gather: _gather,
    Reshape: _reshape,
}
