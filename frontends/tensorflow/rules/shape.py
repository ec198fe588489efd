"""Shapes as values, and operations that only move data: reshape, transpose, join, cut, repeat, pad."""

import math
from collections.abc import Sequence

import numpy as np

from onnxla.frontends.onnx.broadcasting import shape_of_broadcast
from onnxla.frontends.onnx.node_view import MOST_PIECES
from onnxla.frontends.tensorflow.axes import normal_axes, normal_axis, require_enumerable
from onnxla.frontends.tensorflow.node_view import NodeView
from onnxla.frontends.tensorflow.registry import tf_op
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import S32, TensorType

_INT32 = 3


@tf_op("Shape")
def shape(node: NodeView, b: Builder) -> Instruction:
    return b.constant(np.array(node.input(0).shape), node.element("out_type", _INT32))


@tf_op("ShapeN")
def shape_n(node: NodeView, b: Builder) -> list[Instruction]:
    element = node.element("out_type", _INT32)
    return [b.constant(np.array(x.shape), element) for x in node.inputs()]


@tf_op("Size")
def size(node: NodeView, b: Builder) -> Instruction:
    return b.constant(node.input(0).tensor_type.size, node.element("out_type", _INT32))


@tf_op("Rank")
def rank(node: NodeView, b: Builder) -> Instruction:
    return b.constant(len(node.input(0).shape), S32)


@tf_op("Reshape")
def reshape(node: NodeView, b: Builder) -> Instruction:
    """One size may be -1: what is left."""
    x, sizes = node.input(0), list(node.constant_ints(1))
    if sizes.count(-1) > 1:
        node.shape_error(f"the shape {sizes} leaves more than one size open")
    if -1 in sizes:
        others = math.prod(n for n in sizes if n != -1)
        sizes[sizes.index(-1)] = x.tensor_type.size // others if others else 0
    if math.prod(sizes) != x.tensor_type.size or min(sizes, default=0) < 0:
        node.shape_error(f"{x.tensor_type} cannot take the shape {list(node.constant_ints(1))}")
    return b.reshape(x, sizes)


@tf_op("ExpandDims")
def expand_dims(node: NodeView, b: Builder) -> Instruction:
    x = node.input(0)
    axis = normal_axis(node, node.constant_int(1), len(x.shape) + 1)
    return b.reshape(x, (*x.shape[:axis], 1, *x.shape[axis:]))


@tf_op("Squeeze")
def squeeze(node: NodeView, b: Builder) -> Instruction:
    x = node.input(0)
    named = node.ints("squeeze_dims", node.ints("axis", ()))
    axes = normal_axes(node, named, len(x.shape)) or tuple(d for d, n in enumerate(x.shape) if n == 1)
    if any(x.shape[d] != 1 for d in axes):
        node.shape_error(f"the dimensions {list(axes)} of {x.tensor_type} are not all of size 1")
    return b.reshape(x, [n for d, n in enumerate(x.shape) if d not in axes])


@tf_op("Transpose", "ConjugateTranspose")
def transpose(node: NodeView, b: Builder) -> Instruction:
    x, permutation = node.input(0), node.constant_ints(1)
    x = b.transpose(x, [p % max(len(permutation), 1) for p in permutation])
    if node.op_type == "ConjugateTranspose" and x.tensor_type.element.is_complex:
        return b.binary("complex", b.unary("real", x), b.negate(b.unary("imag", x)))
    return x


@tf_op("InvertPermutation")
def invert_permutation(node: NodeView, b: Builder) -> Instruction:
    return b.constant(np.argsort(node.constant_ints(0)), node.input(0).tensor_type.element)


@tf_op("Pack")
def pack(node: NodeView, b: Builder) -> Instruction:
    values = node.inputs()
    shape = values[0].shape
    axis = normal_axis(node, node.int("axis", 0), len(shape) + 1)
    if any(v.shape != shape for v in values):
        node.shape_error("the inputs differ in shape")
    return b.concatenate([b.reshape(v, (*shape[:axis], 1, *shape[axis:])) for v in values], axis)


@tf_op("Unpack")
def unpack(node: NodeView, b: Builder) -> list[Instruction]:
    x = node.input(0)
    axis = normal_axis(node, node.int("axis", 0), len(x.shape))
    if node.int("num", x.shape[axis]) != x.shape[axis]:
        node.shape_error(f"dimension {axis} of {x.tensor_type} does not fall into {node.int('num')} parts")
    require_enumerable(node, x.shape[axis], MOST_PIECES)
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    return [b.reshape(part, shape) for part in _parts(b, x, axis, [1] * x.shape[axis])]


@tf_op("Concat")
def concat(node: NodeView, b: Builder) -> Instruction:
    return _concatenated(node, b, node.inputs(1), node.constant_int(0))


@tf_op("ConcatV2")
def concat_v2(node: NodeView, b: Builder) -> Instruction:
    return _concatenated(node, b, node.inputs()[:-1], node.constant_int(node.input_count - 1))


def _concatenated(node: NodeView, b: Builder, values: Sequence[Instruction], axis: int) -> Instruction:
    return b.concatenate(values, normal_axis(node, axis, len(values[0].shape)))


@tf_op("ConcatOffset")
def concat_offset(node: NodeView, b: Builder) -> list[Instruction]:
    """Where each part begins, for shapes that are known."""
    axis = node.constant_int(0)
    offsets, place = [], 0
    for i in range(1, node.input_count):
        sizes = node.constant_ints(i)
        offset = np.zeros(len(sizes), np.int64)
        offset[axis] = place
        offsets.append(b.constant(offset, node.input(i).tensor_type.element))
        place += sizes[axis]
    return offsets


@tf_op("Split")
def split(node: NodeView, b: Builder) -> list[Instruction]:
    x, count = node.input(1), node.int("num_split")
    axis = normal_axis(node, node.constant_int(0), len(x.shape))
    if count < 1 or x.shape[axis] % count:
        node.shape_error(f"dimension {axis} of {x.tensor_type} does not fall into {count} equal parts")
    require_enumerable(node, count, MOST_PIECES)
    return _parts(b, x, axis, [x.shape[axis] // count] * count)


@tf_op("SplitV")
def split_v(node: NodeView, b: Builder) -> list[Instruction]:
    """One size may be -1: what is left."""
    x, sizes = node.input(0), list(node.constant_ints(1))
    axis = normal_axis(node, node.constant_int(2), len(x.shape))
    if -1 in sizes:
        sizes[sizes.index(-1)] = x.shape[axis] - sum(n for n in sizes if n != -1)
    if sum(sizes) != x.shape[axis] or min(sizes, default=0) < 0:
        node.shape_error(f"dimension {axis} of {x.tensor_type} does not fall into parts of {sizes}")
    return _parts(b, x, axis, sizes)


def _parts(b: Builder, x: Instruction, axis: int, sizes: Sequence[int]) -> list[Instruction]:
    parts, place = [], 0
    for n in sizes:
        starts = [place if d == axis else 0 for d in range(len(x.shape))]
        limits = [place + n if d == axis else m for d, m in enumerate(x.shape)]
        parts.append(x if n == x.shape[axis] else b.slice(x, starts, limits))
        place += n
    return parts


@tf_op("Tile")
def tile(node: NodeView, b: Builder) -> Instruction:
    x, repeats = node.input(0), node.constant_ints(1)
    if len(repeats) != len(x.shape):
        node.shape_error(f"multiples {list(repeats)} do not fit {x.tensor_type}")
    spread = [n for pair in zip(repeats, x.shape, strict=True) for n in pair]
    repeated = b.broadcast(x, spread, range(1, len(spread), 2))
    return b.reshape(repeated, [r * n for r, n in zip(repeats, x.shape, strict=True)])


@tf_op("BroadcastTo")
def broadcast_to(node: NodeView, b: Builder) -> Instruction:
    x, sizes = node.input(0), node.constant_ints(1)
    if shape_of_broadcast(x.shape, sizes) != sizes:
        node.shape_error(f"{x.tensor_type} does not stretch to {list(sizes)}")
    return b.numpy_broadcast(x, sizes)


@tf_op("BroadcastArgs")
def broadcast_args(node: NodeView, b: Builder) -> Instruction:
    sizes = shape_of_broadcast(node.constant_ints(0), node.constant_ints(1))
    return b.constant(np.array(sizes), node.input(0).tensor_type.element)


@tf_op("BroadcastGradientArgs", outputs=("r0", "r1"))
def broadcast_gradient_args(node: NodeView, b: Builder) -> list[Instruction]:
    """The dimensions along which each of two shapes is repeated when they broadcast."""
    shapes = [node.constant_ints(0), node.constant_ints(1)]
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(s)) + s for s in shapes]
    element = node.input(0).tensor_type.element
    found = []
    for own, other in (padded, padded[::-1]):
        axes = [d for d in range(rank) if own[d] == 1 and (other[d] != 1 or own == other or own[d] == other[d] == 1)]
        found.append(b.constant(np.array(axes, np.int64), element))
    return found


@tf_op("Fill")
def fill(node: NodeView, b: Builder) -> Instruction:
    return b.broadcast_scalar(b.reshape(node.input(1), ()), node.constant_ints(0))


@tf_op("Range")
def range_(node: NodeView, b: Builder) -> Instruction:
    start, limit, delta = (node.constant(i).reshape(()).item() for i in range(3))
    if delta == 0:
        node.shape_error("the step of a range is 0")
    require_enumerable(node, max((limit - start) / delta, 0))
    return b.constant(np.arange(start, limit, delta), node.input(0).tensor_type.element)


@tf_op("LinSpace")
def lin_space(node: NodeView, b: Builder) -> Instruction:
    """`num` numbers from `start` to `stop`, both included."""
    start, stop, count = node.input(0), node.input(1), node.constant_int(2)
    element = start.tensor_type.element
    require_enumerable(node, count)
    steps = b.constant(np.arange(count), element)
    step = b.divide(b.subtract(stop, start), b.full((), max(count - 1, 1), element))
    return b.add(b.broadcast(start, (count,), []), b.multiply(steps, b.broadcast(step, (count,), [])))


@tf_op("ReverseV2")
def reverse_v2(node: NodeView, b: Builder) -> Instruction:
    x = node.input(0)
    axes = normal_axes(node, node.constant_ints(1), len(x.shape))
    return b.reverse(x, axes) if axes else x


@tf_op("Roll")
def roll(node: NodeView, b: Builder) -> Instruction:
    """Elements that leave at the end come back at the front."""
    x = node.input(0)
    for shift, axis in zip(node.constant_ints(1), node.constant_ints(2), strict=True):
        d = normal_axis(node, axis, len(x.shape))
        n = x.shape[d]
        if n and shift % n:
            head, tail = _parts(b, x, d, [n - shift % n, shift % n])
            x = b.concatenate([tail, head], d)
    return x


@tf_op("OneHot")
def one_hot(node: NodeView, b: Builder) -> Instruction:
    """`on` where the new dimension's position is the index, `off` elsewhere."""
    indices, depth = node.input(0), node.constant_int(1)
    on, off = (b.reshape(node.input(i), ()) for i in (2, 3))
    rank = len(indices.shape)
    axis = normal_axis(node, node.int("axis", -1), rank + 1)
    shape = (*indices.shape[:axis], depth, *indices.shape[axis:])
    spread = b.broadcast(indices, shape, [d for d in range(rank + 1) if d != axis])
    hot = b.compare(spread, b.iota(TensorType(indices.tensor_type.element, shape), axis), "EQ")
    return b.select(hot, b.broadcast_scalar(on, shape), b.broadcast_scalar(off, shape))
