"""Dot and convolution take in what stands around them: transposes, padding, and scales of their constant weights."""

import dataclasses

import numpy as np

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.contraction import Convolution, Dot
from onnxla.hlo.ops.shape import Broadcast, Pad, Slice, Transpose
from onnxla.hlo.ops.structural import Constant
from onnxla.hlo.types import F32, F64, Array, Shape
from onnxla.passes.pattern import any_of, splat_value
from onnxla.passes.rewrite import NoMatch, Replacement, RuleTable
from onnxla.passes.simplify.reduction import widened

CONTRACTION = RuleTable()
rule = CONTRACTION.rule


# Dot


@rule(any_of("dot"))
def dot_of_transpose(b: Builder, root: Instruction) -> Replacement:
    """A dot reads its operands in any order of dimensions, as long as the free ones keep theirs."""
    op = root.op
    assert isinstance(op, Dot)
    lhs, rhs = root.operands
    if isinstance(lhs.op, Transpose):
        p = lhs.op.permutation
        if _ascending([p[d] for d in op.lhs_free(len(p))]):
            batch, contracting = tuple(p[d] for d in op.lhs_batch), tuple(p[d] for d in op.lhs_contracting)
            moved = dataclasses.replace(op, lhs_batch=batch, lhs_contracting=contracting)
            return b.emit(moved, lhs.operands[0], rhs)
    if isinstance(rhs.op, Transpose):
        p = rhs.op.permutation
        if _ascending([p[d] for d in op.rhs_free(len(p))]):
            batch, contracting = tuple(p[d] for d in op.rhs_batch), tuple(p[d] for d in op.rhs_contracting)
            moved = dataclasses.replace(op, rhs_batch=batch, rhs_contracting=contracting)
            return b.emit(moved, lhs, rhs.operands[0])
    return NoMatch("no transpose that keeps the order of free dimensions")


def _ascending(numbers: list[int]) -> bool:
    return numbers == sorted(numbers)


@rule(any_of("dot"))
def dot_without_ones(b: Builder, root: Instruction) -> Replacement:
    """Batch and contracting dimensions of size 1 say nothing: without them transposes meet the dot."""
    op, (lhs, rhs) = root.op, root.operands
    assert isinstance(op, Dot)
    batch = [k for k, d in enumerate(op.lhs_batch) if lhs.shape[d] == 1]
    contracting = [k for k, d in enumerate(op.lhs_contracting) if lhs.shape[d] == 1]
    if len(contracting) == len(op.lhs_contracting):
        contracting = contracting[1:]
    if not batch and not contracting:
        return NoMatch("no ones")
    left = _squeezed(b, lhs, [*(op.lhs_batch[k] for k in batch), *(op.lhs_contracting[k] for k in contracting)])
    right = _squeezed(b, rhs, [*(op.rhs_batch[k] for k in batch), *(op.rhs_contracting[k] for k in contracting)])
    narrow = Dot(
        _renumbered(op.lhs_batch, batch, left[1]),
        _renumbered(op.rhs_batch, batch, right[1]),
        _renumbered(op.lhs_contracting, contracting, left[1]),
        _renumbered(op.rhs_contracting, contracting, right[1]),
        op.element,
    )
    return b.reshape(b.emit(narrow, left[0], right[0]), root.shape)


def _squeezed(b: Builder, operand: Instruction, dropped: list[int]) -> tuple[Instruction, list[int]]:
    """`operand` without the dimensions `dropped`, and the dimensions that are left."""
    kept = [d for d in range(len(operand.shape)) if d not in dropped]
    return b.reshape(operand, [operand.shape[d] for d in kept]), kept


def _renumbered(dimensions: Shape, dropped: list[int], kept: list[int]) -> Shape:
    return tuple(kept.index(d) for k, d in enumerate(dimensions) if k not in dropped)


@rule(any_of("dot"))
def dot_of_repeated_weights(b: Builder, root: Instruction) -> Replacement:
    """One matrix repeated for each of the leading dimensions of the other operand is no batch."""
    op, (lhs, rhs) = root.op, root.operands
    assert isinstance(op, Dot)
    count = len(op.lhs_batch)
    if not isinstance(rhs.op, Broadcast) or not count or op.lhs_batch != tuple(range(count)):
        return NoMatch("no leading batch over a broadcast")
    placed = rhs.op.dimensions
    if any(d in placed for d in op.rhs_batch) or len(placed) + count != len(rhs.shape):
        return NoMatch("the broadcast repeats something else")
    contracting = tuple(placed.index(d) for d in op.rhs_contracting)
    single = Dot((), (), op.lhs_contracting, contracting, op.element)
    return b.emit(single, lhs, rhs.operands[0])


@rule(any_of("dot"))
def dot_over_one(b: Builder, root: Instruction) -> Replacement:
    """A sum of no products is 0, and one of a single product is that product."""
    op, (lhs, rhs) = root.op, root.operands
    assert isinstance(op, Dot)
    sizes = [lhs.shape[d] for d in op.lhs_contracting]
    if 0 in sizes:
        return b.full(root.shape, 0, op.element)
    if any(n != 1 for n in sizes):
        return NoMatch("several products")
    left_free, right_free = op.lhs_free(len(lhs.shape)), op.rhs_free(len(rhs.shape))
    count = len(op.lhs_batch)
    left_places = [*range(count), *range(count, count + len(left_free))]
    right_places = [*range(count), *range(count + len(left_free), len(root.shape))]
    left = _spread(b, lhs, (*op.lhs_batch, *left_free), op.lhs_contracting, left_places, root.shape)
    right = _spread(b, rhs, (*op.rhs_batch, *right_free), op.rhs_contracting, right_places, root.shape)
    return b.multiply(b.convert(left, op.element), b.convert(right, op.element))


def _spread(
    b: Builder, operand: Instruction, kept: Shape, dropped: Shape, places: list[int], shape: Shape
) -> Instruction:
    """`operand` without its `dropped` dimensions of size 1, dimension `kept[i]` placed at `places[i]` of `shape`."""
    ordered = b.transpose(operand, [*dropped, *kept])
    return b.broadcast(b.reshape(ordered, [operand.shape[d] for d in kept]), shape, places)


@rule(any_of("dot"))
def dot_of_vectors(b: Builder, root: Instruction) -> Replacement:
    """A dot without free dimensions, over the innermost ones, is a sum of products for each batch."""
    op, (lhs, rhs) = root.op, root.operands
    assert isinstance(op, Dot)
    rank, count = len(lhs.shape), len(op.lhs_batch)
    in_order = op.lhs_batch == op.rhs_batch == tuple(range(count)) and op.lhs_contracting == op.rhs_contracting
    if not in_order or rank != len(rhs.shape) or rank != count + len(op.lhs_contracting):
        return NoMatch("free dimensions, or another order")
    if op.element not in (F32, F64) or not lhs.tensor_type.element is rhs.tensor_type.element is op.element:
        return NoMatch("a sum in another type")
    return b.reduce_by("add", b.multiply(lhs, rhs), op.lhs_contracting)


@rule(any_of("slice"))
def slice_of_dot(b: Builder, root: Instruction) -> Replacement:
    """Slices of dot(x, W) + c along its columns are dots with slices of W and c: nothing is cut apart at run time.

    For a constant W, when every user is such a slice, and with enough rows that smaller dots are as good.
    """
    op, (source,) = root.op, root.operands
    assert isinstance(op, Slice)
    product = source.operands[0] if source.op.opcode == "add" else source
    last = len(source.shape) - 1
    if not isinstance(product.op, Dot) or not product.op.rhs_free(len(product.operands[1].shape)):
        return NoMatch("no dot below")
    lhs, weights = product.operands
    shift = source.operands[1] if source is not product else None
    if not isinstance(weights.op, Constant) or shift is not None and _per_feature(shift, last) is None:
        return NoMatch("weights or shift are not constant")
    slices = [u.op for u in source.users if isinstance(u.op, Slice)]
    whole = all(_along_last(s, source.shape) for s in slices)
    columns = sum(s.limits[last] - s.starts[last] for s in slices)
    if len(slices) != len(source.users) or not whole or columns > source.shape[last]:
        return NoMatch("other users, or slices that overlap")
    if source is not product and len(product.users) != 1:
        return NoMatch("the product itself is used")
    if source.tensor_type.size // source.shape[last] < FEWEST_ROWS:
        return NoMatch("too few rows")
    feature = product.op.rhs_free(len(weights.shape))[-1]
    if weights.shape[feature] != source.shape[last]:
        return NoMatch("columns from several dimensions")
    rank = len(weights.shape)
    starts = [op.starts[last] if d == feature else 0 for d in range(rank)]
    limits = [op.limits[last] if d == feature else n for d, n in enumerate(weights.shape)]
    narrow = b.emit(product.op, lhs, b.slice(weights, starts, limits))
    return narrow if shift is None else b.add(narrow, b.slice(shift, op.starts, op.limits))


FEWEST_ROWS = 8
"""With fewer, the weights are read once and computing is free: one dot is better than several."""


def _along_last(op: Slice, shape: Shape) -> bool:
    """Whether the slice takes consecutive columns, and all of the other dimensions."""
    whole = all(s == 0 and n == size for s, n, size in zip(op.starts[:-1], op.limits[:-1], shape[:-1], strict=True))
    return whole and all(k == 1 for k in op.strides)


# Convolution


@rule(any_of("convolution"))
def padding_into_convolution(b: Builder, root: Instruction) -> Replacement:
    """Padding of the spatial dimensions with 0 is the window's own padding."""
    op, (lhs, rhs) = root.op, root.operands
    assert isinstance(op, Convolution)
    if not isinstance(lhs.op, Pad):
        return NoMatch("no padding")
    value = splat_value(lhs.operands[1])
    others = (op.dimensions.input_batch, op.dimensions.input_feature)
    if value is None or value != 0 or any(lhs.op.low[d] or lhs.op.high[d] for d in others):
        return NoMatch("not with 0, or not of spatial dimensions")
    window = widened(op.window, lhs.op, op.dimensions.input_spatial)
    if window is None:
        return NoMatch("holes or crops")
    return b.emit(dataclasses.replace(op, window=window), lhs.operands[0], rhs)


@rule(any_of("convolution"))
def convolution_of_a_point(b: Builder, root: Instruction) -> Replacement:
    """A convolution of one point with a kernel of one point is a dot over features."""
    op, (lhs, rhs) = root.op, root.operands
    assert isinstance(op, Convolution)
    dims = op.dimensions
    points = [*(lhs.shape[d] for d in dims.input_spatial), *(rhs.shape[d] for d in dims.kernel_spatial)]
    if any(n != 1 for n in points) or any(root.shape[d] != 1 for d in dims.output_spatial):
        return NoMatch("more than a point")
    if op.feature_group_count != 1 or op.batch_group_count != 1:
        return NoMatch("groups")
    if any(w.pad_low or w.pad_high for w in op.window.dimensions):
        return NoMatch("padding")
    batch, features = lhs.shape[dims.input_batch], lhs.shape[dims.input_feature]
    outputs = rhs.shape[dims.kernel_output_feature]
    left = [batch, features] if dims.input_batch < dims.input_feature else [features, batch]
    right = [outputs, features] if dims.kernel_output_feature < dims.kernel_input_feature else [features, outputs]
    dot = b.dot(
        b.reshape(lhs, left),
        b.reshape(rhs, right),
        [int(dims.input_batch < dims.input_feature)],
        [int(dims.kernel_output_feature < dims.kernel_input_feature)],
        element=op.element,
    )
    if dims.output_feature < dims.output_batch:
        dot = b.transpose(dot, (1, 0))
    return b.reshape(dot, root.shape)


# Scales of constant weights. Sums of products may be reassociated, so a factor may move into the products.


@rule(any_of("multiply", "divide"))
def scale_into_weights(b: Builder, root: Instruction) -> Replacement:
    """contraction(x, W) * c == contraction(x, W * c), for a constant W and a c for each output feature."""
    product, factor = root.operands
    side = _scalable(product)
    if side is None:
        return NoMatch("no contraction with constant weights below")
    spread = _per_feature(factor, side.feature)
    if spread is None or root.op.opcode == "divide" and not _array(spread).all():
        return NoMatch("the factor is not a finite constant for each output feature")
    if any(u.op.opcode == "round-nearest-even" for u in root.users):
        return NoMatch("quantisation: what is rounded to a grid should be exact")
    weights = product.operands[side.operand]
    if spread.shape == ():
        wide = b.broadcast_scalar(spread, weights.shape)
    else:
        wide = b.broadcast(spread, weights.shape, [side.weights_feature])
    scaled = b.emit(root.op, weights, wide)
    operands = list(product.operands)
    operands[side.operand] = scaled
    return b.emit(product.op, *operands)


@rule(any_of("multiply", "divide"))
def scale_before_shift(b: Builder, root: Instruction) -> Replacement:
    """(contraction + d) * c == contraction * c + d * c, so that the scale reaches the weights."""
    total, factor = root.operands
    if total.op.opcode != "add" or len(total.users) != 1:
        return NoMatch("no sum below")
    product, shift = total.operands
    side = _scalable(product)
    if side is None:
        return NoMatch("no contraction with constant weights below")
    scale, offset = _per_feature(factor, side.feature), _per_feature(shift, side.feature)
    if scale is None or offset is None:
        return NoMatch("scale or shift is not a finite constant for each output feature")
    if not np.isfinite(root.op.evaluate(_array(offset), _array(scale))).all():
        return NoMatch("their product is infinite")
    if any(u.op.opcode == "round-nearest-even" for u in root.users):
        return NoMatch("quantisation: what is rounded to a grid should be exact")
    return b.add(b.emit(root.op, product, factor), b.emit(root.op, shift, factor))


@rule(any_of("add"))
def merge_shifts(b: Builder, root: Instruction) -> Replacement:
    """(contraction + c) + d == contraction + (c + d), for constants."""
    total, shift = root.operands
    if total.op.opcode != "add" or len(total.users) != 1:
        return NoMatch("no sum below")
    product, first = total.operands
    side = _scalable(product)
    if side is None or _per_feature(shift, side.feature) is None or _per_feature(first, side.feature) is None:
        return NoMatch("not constants for each output feature of a contraction")
    return b.add(product, b.add(first, shift))


@rule(any_of("subtract"))
def subtract_shift(b: Builder, root: Instruction) -> Replacement:
    """x - c == x + -c, for a constant c that is spread over x: one form for shifts."""
    value, shift = root.operands
    source = shift.operands[0] if isinstance(shift.op, Broadcast) else shift
    if not isinstance(source.op, Constant) or not root.tensor_type.element.is_float:
        return NoMatch("no constant")
    if source is shift and shift.shape != ():
        return NoMatch("not spread")
    negated = b.constant(np.asarray(-source.op.literal.array))
    return b.add(value, negated if source is shift else b.emit(shift.op, negated))


@dataclasses.dataclass(frozen=True)
class _Side:
    """Where the constant weights of a contraction stand, and the output feature in them and in the result."""

    operand: int
    weights_feature: int
    feature: int


def _scalable(product: Instruction) -> _Side | None:
    """The weights of a contraction in f32 or f64 with one user, where they are constant."""
    op = product.op
    if not isinstance(op, Dot | Convolution) or len(product.users) != 1 or op.element not in (F32, F64):
        return None
    if any(o.tensor_type.element is not op.element for o in product.operands):
        return None
    lhs, rhs = product.operands
    if isinstance(op, Convolution):
        if not _is_weight(rhs):
            return None
        return _Side(1, op.dimensions.kernel_output_feature, op.dimensions.output_feature)
    left, right = op.lhs_free(len(lhs.shape)), op.rhs_free(len(rhs.shape))
    if _is_weight(rhs) and right:
        return _Side(1, right[-1], len(product.shape) - 1)
    if _is_weight(lhs) and left and not right:
        return _Side(0, left[-1], len(product.shape) - 1)
    return None


def _array(constant: Instruction) -> Array:
    assert isinstance(constant.op, Constant)
    return constant.op.literal.array


def _is_weight(instruction: Instruction) -> bool:
    """A constant, or one that folding is about to make one: scaled, reshaped or transposed."""
    while instruction.op.opcode in ("multiply", "divide", "reshape", "transpose"):
        instruction = instruction.operands[0]
    return isinstance(instruction.op, Constant)


def _per_feature(value: Instruction, feature: int) -> Instruction | None:
    """The finite constant that `value` spreads along dimension `feature`, a scalar or a vector; None for other values.

    With an infinite factor, sums of products would turn into NaN where the product of the sum is infinite.
    """
    op = value.op
    source = value.operands[0] if isinstance(op, Broadcast) else value
    if not isinstance(source.op, Constant) or not np.isfinite(source.op.literal.array).all():
        return None
    if source.shape == ():
        return source
    return source if isinstance(op, Broadcast) and op.dimensions == (feature,) else None
