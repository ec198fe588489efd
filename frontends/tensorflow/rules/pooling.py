"""Pooling over windows, and its gradients. Half precision sums in f32."""

import math
from collections.abc import Sequence

import numpy as np

from onnxla.frontends.onnx.rules.precision import widen
from onnxla.frontends.tensorflow.axes import require_enumerable
from onnxla.frontends.tensorflow.images import Image, image_of, kernel_sizes
from onnxla.frontends.tensorflow.node_view import NodeView
from onnxla.frontends.tensorflow.registry import tf_op
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Computation, Instruction
from onnxla.hlo.ops.reduction import identity_of
from onnxla.hlo.types import Array, ElementType, TensorType
from onnxla.hlo.window import Window, WindowDimension


def _image(node: NodeView, shape: Sequence[int]) -> Image:
    return image_of(node, shape, kernel_sizes(node, node.ints("ksize"), len(shape)))


@tf_op("MaxPool", "MaxPool3D")
def max_pool(node: NodeView, b: Builder) -> Instruction:
    x = node.input(0)
    return _max_pool(b, x, _image(node, x.shape))


@tf_op("MaxPoolV2")
def max_pool_v2(node: NodeView, b: Builder) -> Instruction:
    """Window and strides are operands."""
    x = node.input(0)
    return _max_pool(b, x, _image_of_operands(node, x.shape, 1))


def _image_of_operands(node: NodeView, shape: Sequence[int], first: int) -> Image:
    rank = len(shape)
    strides = kernel_sizes(node, node.constant_ints(first + 1), rank)
    return image_of(node, shape, kernel_sizes(node, node.constant_ints(first), rank), strides)


def _max_pool(b: Builder, x: Instruction, image: Image) -> Instruction:
    element = x.tensor_type.element
    lowest = b.constant(identity_of("maximum", element))
    return b.reduce_window([x], [lowest], image.whole_window, b.combiner("maximum", element))


@tf_op("AvgPool", "AvgPool3D")
def avg_pool(node: NodeView, b: Builder) -> Instruction:
    """The sum over a window divided by how many elements of the input it covers."""
    given = node.input(0)
    image = _image(node, given.shape)
    total = _window_sum(b, widen(b, given), image.whole_window)
    return b.convert(_divided_by_counts(node, b, total, image), given.tensor_type.element)


def _window_sum(b: Builder, x: Instruction, window: Window) -> Instruction:
    element = x.tensor_type.element
    return b.reduce_window([x], [b.constant(0, element)], window, b.combiner("add", element))


def _divided_by_counts(node: NodeView, b: Builder, x: Instruction, image: Image) -> Instruction:
    require_enumerable(node, max((s.output * s.kernel for s in image.sliding), default=0))
    require_enumerable(node, math.prod(s.output for s in image.sliding))
    counts: Array = np.ones((), np.int64)
    for s in image.sliding:
        taps = np.arange(s.output)[:, None] * s.stride - s.pad_low + np.arange(s.kernel) * s.dilation
        counts = counts[..., None] * ((taps >= 0) & (taps < s.size)).sum(axis=1)
    if counts.size and counts.min() == counts.max():
        return b.divide(x, b.full_like(x, int(counts.flat[0])))
    return b.divide(x, b.broadcast(b.constant(counts, x.tensor_type.element), x.shape, image.spatial))


@tf_op("MaxPoolGrad", "MaxPool3DGrad")
def max_pool_grad(node: NodeView, b: Builder) -> Instruction:
    """Each gradient goes to where its window's maximum stood, the first of several."""
    x, g = node.input(0), node.input(2)
    return _max_pool_gradient(b, x, g, _image(node, x.shape))


@tf_op("MaxPoolGradV2")
def max_pool_grad_v2(node: NodeView, b: Builder) -> Instruction:
    x, g = node.input(0), node.input(2)
    return _max_pool_gradient(b, x, g, _image_of_operands(node, x.shape, 3))


def _max_pool_gradient(b: Builder, x: Instruction, g: Instruction, image: Image) -> Instruction:
    element = x.tensor_type.element
    return b.select_and_scatter(
        x, g, b.constant(0, element), image.whole_window, _not_less(element), b.combiner("add", element)
    )


def _not_less(element: ElementType) -> Computation:
    """Whether the value chosen so far stays chosen."""
    b = Builder(f"not_less_{element}")
    chosen, other = b.parameter(TensorType(element)), b.parameter(TensorType(element))
    return b.build(b.compare(chosen, other, "GE"))


@tf_op("AvgPoolGrad", "AvgPool3DGrad")
def avg_pool_grad(node: NodeView, b: Builder) -> Instruction:
    """Each gradient, divided by its count, spreads over its window: the windows seen from the input."""
    shape, g = node.constant_ints(0), node.input(1)
    image = _image(node, shape)
    if [s.output for s in image.sliding] != [g.shape[d] for d in image.spatial]:
        node.shape_error(f"pooling {list(shape)} does not give {g.tensor_type}")
    shares = _divided_by_counts(node, b, widen(b, g), image)
    dimensions = [WindowDimension()] * image.rank
    for s, d in zip(image.sliding, image.spatial, strict=True):
        spread = (s.output - 1) * s.stride + 1
        before = s.extent - 1 - s.pad_low
        after = s.size + s.extent - 1 - spread - before
        dimensions[d] = WindowDimension(
            size=s.kernel, pad_low=before, pad_high=after, base_dilation=s.stride, window_dilation=s.dilation
        )
    return b.convert(_window_sum(b, shares, Window(tuple(dimensions))), g.tensor_type.element)
