"""Pieces of tensors: slices, reversals, padding and concatenation merge, or pass to what they are taken of."""

import math

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.shape import Broadcast, Concatenate, Pad, Reshape, Slice, Transpose
from onnxla.hlo.types import Shape
from onnxla.passes.pattern import any_of, operation, splat_value, variables
from onnxla.passes.reshape_groups import reshape_groups
from onnxla.passes.rewrite import NoMatch, Replacement, RuleTable

PIECES = RuleTable()
rule = PIECES.rule

x, p, q, s = variables("x p q s")
reverse, broadcast = operation("reverse", 1), operation("broadcast", 1)


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
