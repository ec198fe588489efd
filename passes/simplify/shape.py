"""Data movement: neighbours merge, what moves nothing goes, and reshapes and broadcasts take one form."""

import math
from collections.abc import Sequence

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.elementwise import BitcastConvert
from onnxla.hlo.ops.shape import Broadcast, Concatenate, Pad, Reshape, Reverse, Slice, Transpose
from onnxla.hlo.ops.structural import Constant, Iota
from onnxla.hlo.types import PRED, Shape, TensorType
from onnxla.passes.pattern import any_of, elementwise_opcodes, operation, splat_value, variables
from onnxla.passes.reshape_groups import reshape_groups
from onnxla.passes.rewrite import NoMatch, Replacement, RuleTable

SHAPE = RuleTable()
rule = SHAPE.rule

x, p, q, s, t = variables("x p q s t")
reshape, transpose, reverse = (operation(name, 1) for name in ("reshape", "transpose", "reverse"))
broadcast, slice_, pad = operation("broadcast", 1), operation("slice", 1), operation("pad", 2)


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


# Slice, reverse, pad, concatenate


@rule(any_of("slice"))
def slice_of_movement(b: Builder, root: Instruction) -> Replacement:
    """A slice goes through a slice, broadcast, pad, reverse or concatenate, so that less is moved."""
    op, source = root.op, root.operands[0]
    assert isinstance(op, Slice)
    match source.op:
        case Slice(starts, _, strides):
            first = [a + i * k for a, i, k in zip(starts, op.starts, strides, strict=True)]
            last = [a + (i - 1) * k + 1 if i else a for a, i, k in zip(starts, op.limits, strides, strict=True)]
            last = [max(a, n) for a, n in zip(first, last, strict=True)]
            steps = [k * m for k, m in zip(strides, op.strides, strict=True)]
            return b.slice(source.operands[0], first, last, steps)
        case Broadcast(_, dimensions):
            (operand,) = source.operands
            rows = [(op.starts[d], op.limits[d], op.strides[d]) for d in dimensions]
            narrow = b.slice(operand, *zip(*rows, strict=True)) if rows else operand
            return b.broadcast(narrow, root.shape, dimensions)
        case Transpose(permutation):
            moved = {d: (op.starts[i], op.limits[i], op.strides[i]) for i, d in enumerate(permutation)}
            narrow = b.slice(source.operands[0], *zip(*(moved[d] for d in range(len(moved))), strict=True))
            return b.transpose(narrow, permutation)
        case Reshape():
            return _slice_of_reshape(b, root, op, source.operands[0])
        case Concatenate(dimension):
            return _slice_of_concatenate(b, root, op, source, dimension)
        case Pad():
            return _slice_of_pad(b, op, source)
    return NoMatch("nothing to go through")


def _slice_of_reshape(b: Builder, root: Instruction, op: Slice, operand: Instruction) -> Replacement:
    """A slice goes below a reshape where what it takes of each split dimension is one block."""
    middle = root.operands[0].shape
    groups = reshape_groups(operand.shape, middle)
    if groups is None or not all(root.shape) or not operand.shape:
        return NoMatch("no elements, or a scalar")
    wanted = [(0, n, 1) for n in operand.shape]
    for inside, outside in groups:
        cut = [d for d in outside if root.shape[d] != middle[d]]
        inner = [d for d in inside if operand.shape[d] != 1]
        if not cut:
            continue
        first = cut[0]
        before = math.prod(middle[d] for d in outside if d < first)
        if len(cut) > 1 or before != 1 or len(inner) != 1:
            return NoMatch("more than one block")
        step = math.prod(middle[d] for d in outside if d > first)
        if op.strides[first] != 1 and step != 1:
            return NoMatch("blocks apart")
        wanted[inner[0]] = (op.starts[first] * step, op.limits[first] * step, op.strides[first])
    return b.reshape(b.slice(operand, *zip(*wanted, strict=True)), root.shape)


def _slice_of_concatenate(b: Builder, root: Instruction, op: Slice, source: Instruction, d: int) -> Replacement:
    """The operands of a concatenate that a slice reads."""
    if op.strides[d] != 1 or not root.shape[d]:
        return NoMatch("strided along the joined dimension")
    kept, begins, begin = [], [], 0
    for operand in source.operands:
        end = begin + operand.shape[d]
        if begin < op.limits[d] and end > op.starts[d]:
            kept.append(operand)
            begins.append(begin)
        begin = end
    if len(kept) == len(source.operands):
        return NoMatch("all operands are read")
    shift = begins[0]
    starts = [n - shift if k == d else n for k, n in enumerate(op.starts)]
    limits = [n - shift if k == d else n for k, n in enumerate(op.limits)]
    return b.slice(b.concatenate(kept, d), starts, limits, op.strides)


def _slice_of_pad(b: Builder, op: Slice, source: Instruction) -> Replacement:
    """The part of a pad's operand that a slice reads, where it reads nothing else."""
    pad_op, operand = source.op, source.operands[0]
    assert isinstance(pad_op, Pad)
    starts = [a - low for a, low in zip(op.starts, pad_op.low, strict=True)]
    limits = [n - low for n, low in zip(op.limits, pad_op.low, strict=True)]
    inside = all(a >= 0 and n <= size for a, n, size in zip(starts, limits, operand.shape, strict=True))
    if any(pad_op.interior) or not inside:
        return NoMatch("padding is read")
    return b.slice(operand, starts, limits, op.strides)


@rule(reverse(reverse(x, p), q))
def merge_reverses(b: Builder, x: Instruction, p: Shape, q: Shape) -> Replacement:
    """A dimension that is reversed twice is as it was."""
    once = sorted(set(p) ^ set(q))
    return b.reverse(x, once) if once else x


@rule(reverse(broadcast(x, s, p), q))
def reverse_of_broadcast(b: Builder, x: Instruction, s: Shape, p: Shape, q: Shape) -> Replacement:
    """Repeated elements look the same from both ends."""
    inner = [i for i, d in enumerate(p) if d in q]
    return b.broadcast(b.reverse(x, inner) if inner else x, s, p)


@rule(any_of("pad"))
def pad_that_only_crops(b: Builder, root: Instruction) -> Replacement:
    """A pad without positive padding is a slice."""
    op, (operand, _) = root.op, root.operands
    assert isinstance(op, Pad)
    if any(op.interior) or max((*op.low, *op.high, 0)) > 0:
        return NoMatch("it pads")
    starts = [-low for low in op.low]
    limits = [size + high for size, high in zip(operand.shape, op.high, strict=True)]
    if any(start > limit for start, limit in zip(starts, limits, strict=True)):
        return NoMatch("nothing is left")
    return b.slice(operand, starts, limits)


@rule(any_of("pad"))
def merge_pads(b: Builder, root: Instruction) -> Replacement:
    """pad(pad(x)) with one value is one pad."""
    op, (inner, value) = root.op, root.operands
    assert isinstance(op, Pad)
    if not isinstance(inner.op, Pad) or any(op.interior) or min((*op.low, *op.high, 0)) < 0:
        return NoMatch("not two plain pads")
    one, other = splat_value(value), splat_value(inner.operands[1])
    if value is not inner.operands[1] and (one is None or other is None or one.tobytes() != other.tobytes()):
        return NoMatch("the values differ")
    if min((*inner.op.low, *inner.op.high, 0)) < 0:
        return NoMatch("the inner pad crops")
    low = [a + c for a, c in zip(op.low, inner.op.low, strict=True)]
    high = [a + c for a, c in zip(op.high, inner.op.high, strict=True)]
    return b.pad(inner.operands[0], value, low, high, inner.op.interior)


@rule(any_of("pad"))
def pad_of_the_same_number(b: Builder, root: Instruction) -> Replacement:
    """Padding a tensor of one number with that number."""
    operand, value = root.operands
    one, other = splat_value(operand), splat_value(value)
    if one is None or other is None or one.tobytes() != other.tobytes():
        return NoMatch("other values")
    return b.broadcast_scalar(b.constant(one), root.shape)


@rule(any_of("concatenate"))
def flatten_concatenate(b: Builder, root: Instruction) -> Replacement:
    """Operands without elements go, and those that are concatenates along the same dimension are opened."""
    op = root.op
    assert isinstance(op, Concatenate)
    flat: list[Instruction] = []
    for operand in root.operands:
        opened = operand.op == op and len(operand.users) == 1
        flat += operand.operands if opened else [operand] if operand.shape[op.dimension] else []
    if flat == list(root.operands) or not flat:
        return NoMatch("flat already")
    return b.concatenate(flat, op.dimension)


@rule(any_of("concatenate"))
def continue_another_concatenate(b: Builder, root: Instruction) -> Replacement:
    """Where a shorter concatenate already joins the first operands, it is copied as one piece."""
    op = root.op
    assert isinstance(op, Concatenate)
    best: Instruction | None = None
    for other in root.operands[0].users:
        count = len(other.operands)
        begins = other.op == op and 2 <= count < len(root.operands) and other.operands == root.operands[:count]
        if begins and other.users and (best is None or count > len(best.operands)):
            best = other
    if best is None:
        return NoMatch("no other begins it")
    return b.concatenate([best, *root.operands[len(best.operands) :]], op.dimension)


@rule(any_of("concatenate"))
def join_neighbouring_slices(b: Builder, root: Instruction) -> Replacement:
    """Slices of one tensor that lie side by side are one slice."""
    op = root.op
    assert isinstance(op, Concatenate)
    joined: list[Instruction] = []
    for operand in root.operands:
        both = _joined(b, joined[-1], operand, op.dimension) if joined else None
        joined = [*joined[:-1], both] if both is not None else [*joined, operand]
    if len(joined) == len(root.operands):
        return NoMatch("no neighbours")
    return b.concatenate(joined, op.dimension)


def _joined(b: Builder, left: Instruction, right: Instruction, d: int) -> Instruction | None:
    one, other = left.op, right.op
    if not isinstance(one, Slice) or not isinstance(other, Slice) or left.operands != right.operands:
        return None
    same = all(
        k == d or (one.starts[k], one.limits[k]) == (other.starts[k], other.limits[k]) for k in range(len(one.starts))
    )
    if not same or one.strides != other.strides or one.strides[d] != 1 or one.limits[d] != other.starts[d]:
        return None
    limits = [other.limits[k] if k == d else n for k, n in enumerate(one.limits)]
    return b.slice(left.operands[0], one.starts, limits, one.strides)


@rule(any_of("concatenate"))
def concatenate_of_one_number(b: Builder, root: Instruction) -> Replacement:
    """Pieces of the same number are that number, repeated."""
    numbers = [splat_value(o) for o in root.operands]
    first = numbers[0]
    if first is None or any(n is None or n.tobytes() != first.tobytes() for n in numbers):
        return NoMatch("different pieces")
    return b.broadcast_scalar(b.constant(first), root.shape)


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
