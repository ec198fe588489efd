"""Reshapes, transposes and broadcasts: neighbours merge, what moves nothing goes, and each takes one form."""

import math
from collections.abc import Sequence

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.elementwise import BitcastConvert
from onnxla.hlo.ops.shape import Broadcast, Concatenate, Pad, Reshape, Reverse, Transpose
from onnxla.hlo.ops.structural import Constant, Iota
from onnxla.hlo.types import PRED, Shape, TensorType
from onnxla.passes.pattern import any_of, elementwise_opcodes, operation, splat_value, variables
from onnxla.passes.rewrite import NoMatch, Replacement, RuleTable

SHAPE = RuleTable()
rule = SHAPE.rule

x, p, q, s, t = variables("x p q s t")
reshape, transpose, broadcast = (operation(name, 1) for name in ("reshape", "transpose", "broadcast"))


def without_ones(shape: Sequence[int]) -> Shape:
    """The sizes that are not 1."""
    return tuple(n for n in shape if n != 1)


def placed(dimensions: Sequence[int], shape: Sequence[int]) -> list[int]:
    """Those of `dimensions` whose size in `shape` is not 1."""
    return [d for d in dimensions if shape[d] != 1]


# Nothing inside, nothing to move


@rule(any_of(*elementwise_opcodes(), "pad", "concatenate", "slice", "reverse", "transpose", "gather", "dynamic-slice"))
def empty_result(b: Builder, root: Instruction) -> Replacement:
    """A tensor without elements is any other of its type."""
    if not isinstance(root.type, TensorType) or root.type.size:
        return NoMatch("it has elements")
    return b.full(root.shape, False if root.type.element is PRED else 0, root.type.element)


@rule(any_of("reshape", "broadcast", "slice", "pad", "transpose", "reverse", "concatenate"))
def movement_that_moves_nothing(root: Instruction) -> Replacement:
    """reshape, broadcast, slice, pad, transpose or reverse whose every element stays in its place is its operand."""
    op, operand = root.op, root.operands[0]
    if root.shape != operand.shape:
        return NoMatch("the shape changes")
    match op:
        case Transpose():
            stays = placed(op.permutation, operand.shape) == placed(range(len(op.permutation)), operand.shape)
        case Reverse():
            stays = not placed(op.dimensions, operand.shape)
        case Pad():
            stays = not any(op.low) and not any(op.high)
        case Concatenate():
            stays = len(root.operands) == 1
        case _:
            stays = True
    return operand if stays else NoMatch("elements move")


# Reshape


@rule(reshape(reshape(x)))
def merge_reshapes(b: Builder, x: Instruction, root: Instruction) -> Replacement:
    """reshape(reshape(x)) == reshape(x)"""
    return b.reshape(x, root.shape)


@rule(transpose(x, p))
def transpose_of_ones(b: Builder, x: Instruction, p: Shape, root: Instruction) -> Replacement:
    """A transpose that moves only dimensions of size 1 is a reshape."""
    if placed(p, x.shape) != sorted(placed(p, x.shape)):
        return NoMatch("elements move")
    return b.reshape(x, root.shape)


@rule(broadcast(x, s, p))
def broadcast_of_all_elements(b: Builder, x: Instruction, s: Shape, p: Shape) -> Replacement:
    """A broadcast that repeats nothing is a reshape."""
    if math.prod(s) != x.tensor_type.size:
        return NoMatch("elements repeat")
    return b.reshape(x, s)


@rule(reshape(broadcast(x, s, p)))
def reshape_of_broadcast(b: Builder, x: Instruction, s: Shape, p: Shape, root: Instruction) -> Replacement:
    """A reshape that only adds or drops dimensions of size 1 goes into the broadcast below it."""
    moved = broadcast_in_shape(b, root.operands[0], root.shape)
    return moved if moved is not None else NoMatch("dimensions are split or joined")


def broadcast_in_shape(b: Builder, spread: Instruction, shape: Shape) -> Instruction | None:
    """The broadcast `spread` reshaped to `shape`, as a broadcast: where only dimensions of size 1 come or go."""
    op, (x,) = spread.op, spread.operands
    assert isinstance(op, Broadcast)
    if x.tensor_type.size == 1:
        return b.broadcast(b.reshape(x, ()), shape, ())
    if without_ones(op.shape) != without_ones(shape) or not all(shape):
        return None
    kept = [d for d, n in enumerate(shape) if n != 1]
    place = dict(zip([d for d, n in enumerate(op.shape) if n != 1], kept, strict=True))
    dimensions = placed(op.dimensions, op.shape)
    return b.broadcast(b.reshape(x, [op.shape[d] for d in dimensions]), shape, [place[d] for d in dimensions])


@rule(broadcast(reshape(x), s, p))
def broadcast_of_reshape(b: Builder, x: Instruction, s: Shape, p: Shape, root: Instruction) -> Replacement:
    """A reshape that only adds or drops dimensions of size 1 is not needed below a broadcast."""
    inner = root.operands[0].shape
    if without_ones(x.shape) != without_ones(inner) or isinstance(x.op, Constant):
        return NoMatch("dimensions are split or joined, or folding will do it")
    wanted = iter(placed(p, s))
    places: list[int] = []
    for size in x.shape:
        # a dimension of size 1 takes the next free place of size 1 in the result
        first = places[-1] + 1 if places else 0
        place = next(wanted) if size != 1 else next((d for d in range(first, len(s)) if s[d] == 1), len(s))
        places.append(place)
    if places != sorted(set(places)) or any(d >= len(s) for d in places):
        return NoMatch("no place for a dimension of size 1")
    return b.broadcast(x, s, places)


@rule(broadcast(x, s, p))
def broadcast_of_ones(b: Builder, x: Instruction, s: Shape, p: Shape) -> Replacement:
    """Dimensions of size 1 of a constant say nothing: it loses them."""
    if 1 not in x.shape or not isinstance(x.op, Constant):
        return NoMatch("no ones, or no constant")
    kept = placed(range(len(x.shape)), x.shape)
    return b.broadcast(b.reshape(x, [x.shape[d] for d in kept]), s, [p[d] for d in kept])


@rule(any_of(*elementwise_opcodes()))
def reshape_after_arithmetic(b: Builder, root: Instruction) -> Replacement:
    """op(reshape(x), reshape(y)) == reshape(op(x, y)): kernels meet in one shape, and the reshape is a name at the end.

    Numbers and, where only dimensions of size 1 come or go, broadcasts and constants follow into the other shape.
    """
    if not any(isinstance(o.op, Reshape) for o in root.operands):
        return NoMatch("no reshape")
    reshaped = [o for o in root.operands if isinstance(o.op, Reshape) and o.shape == root.shape]
    reshaped = [o for o in reshaped if not isinstance(o.operands[0].op, Constant | Broadcast)]
    inner = reshaped[0].operands[0].shape if reshaped else root.shape
    if inner == root.shape or not all(o.operands[0].shape == inner for o in reshaped):
        return NoMatch("the shapes differ")
    operands = []
    for o in root.operands:
        scalar = o.shape == () != root.shape
        follows = o if scalar else _in_shape(b, o, inner)
        if follows is None and _is_squeezed(inner, root.shape) and root.tensor_type.size > 1:
            # the same memory with fewer dimensions; it never goes the other way
            follows = b.reshape(o, inner)
        if follows is None:
            return NoMatch("an operand has no other shape")
        operands.append(follows)
    return b.reshape(b.emit(root.op, *operands), root.shape)


def _is_squeezed(shape: Shape, other: Shape) -> bool:
    """Whether `shape` is `other` with fewer dimensions of size 1."""
    return without_ones(shape) == without_ones(other) and len(shape) < len(other)


def _in_shape(b: Builder, operand: Instruction, shape: Shape) -> Instruction | None:
    """`operand` in another shape, at no cost; None where there is one."""
    if isinstance(operand.op, Reshape) and operand.operands[0].shape == shape:
        return operand.operands[0]
    number = splat_value(operand)
    if number is not None:
        return b.broadcast_scalar(b.constant(number), shape)
    if isinstance(operand.op, Constant):
        return b.reshape(operand, shape)
    # only what repeats elements stays a broadcast; anything else would be a reshape again, and come back here
    if not isinstance(operand.op, Broadcast) or operand.operands[0].tensor_type.size == operand.tensor_type.size:
        return None
    return broadcast_in_shape(b, operand, shape)


# Transpose


@rule(transpose(transpose(x, p), q))
def merge_transposes(b: Builder, x: Instruction, p: Shape, q: Shape) -> Replacement:
    """transpose(transpose(x, p), q) == transpose(x, p[q])"""
    return b.transpose(x, [p[i] for i in q])


@rule(transpose(broadcast(x, s, p), q))
def transpose_of_broadcast(b: Builder, x: Instruction, s: Shape, p: Shape, q: Shape, root: Instruction) -> Replacement:
    """The broadcast can place dimensions where the transpose wants them; what is small is transposed."""
    places = [q.index(d) for d in p]
    order = sorted(range(len(p)), key=places.__getitem__)
    return b.broadcast(b.transpose(x, order), root.shape, sorted(places))


@rule(any_of(*elementwise_opcodes()))
def transpose_after_arithmetic(b: Builder, root: Instruction) -> Replacement:
    """op(transpose(x), c) == transpose(op(x, c)) for numbers c: transposes move towards dots, which take them in."""
    moved = [o for o in root.operands if isinstance(o.op, Transpose) and splat_value(o) is None]
    others = [o for o in root.operands if o not in moved]
    if not moved or any(o.op != moved[0].op for o in moved) or moved[0].shape != root.shape:
        return NoMatch("no common transpose")
    if any(splat_value(o) is None for o in others):
        return NoMatch("an operand has an order of its own")
    source = moved[0].operands[0]
    operands = [
        o.operands[0] if o in moved else o if o.shape == () else b.broadcast_scalar(_number(b, o), source.shape)
        for o in root.operands
    ]
    assert isinstance(moved[0].op, Transpose)
    return b.transpose(b.emit(root.op, *operands), moved[0].op.permutation)


def _number(b: Builder, operand: Instruction) -> Instruction:
    value = splat_value(operand)
    assert value is not None
    return b.constant(value)


@rule(transpose(reshape(x), p))
def transpose_between_ones(b: Builder, x: Instruction, p: Shape, root: Instruction) -> Replacement:
    """Where the reshape only adds or drops dimensions of size 1, the transpose comes first; then transposes meet."""
    middle = root.operands[0].shape
    if without_ones(middle) != without_ones(x.shape) or not isinstance(x.op, Transpose) or not all(middle):
        return NoMatch("not only ones, or nothing to meet")
    inner = [d for d, n in enumerate(x.shape) if n != 1]
    outer = [d for d, n in enumerate(middle) if n != 1]
    place = dict(zip(outer, inner, strict=True))
    moved = [place[d] for d in p if middle[d] != 1]
    ones = [d for d, n in enumerate(x.shape) if n == 1]
    return b.reshape(b.transpose(x, [*ones, *moved]), root.shape)


# Broadcast


@rule(broadcast(broadcast(x, s, p), t, q))
def merge_broadcasts(b: Builder, x: Instruction, p: Shape, t: Shape, q: Shape) -> Replacement:
    """broadcast(broadcast(x, p), q) == broadcast(x, q[p])"""
    return b.broadcast(x, t, [q[d] for d in p])


@rule(reshape(x))
def reshape_of_iota(b: Builder, x: Instruction, root: Instruction) -> Replacement:
    """A counter with dimensions of size 1 added or dropped is a counter."""
    if not isinstance(x.op, Iota) or without_ones(x.shape) != without_ones(root.shape) or x.shape[x.op.dimension] == 1:
        return NoMatch("not only ones")
    number = len(without_ones(x.shape[: x.op.dimension]))
    places = [d for d, n in enumerate(root.shape) if n != 1]
    return b.iota(root.tensor_type, places[number])


@rule(any_of("bitcast-convert"))
def bitcast_to_the_same(root: Instruction) -> Replacement:
    """A bitcast to the type it has."""
    assert isinstance(root.op, BitcastConvert)
    return root.operands[0] if root.operands[0].type == root.type else NoMatch("another type")
