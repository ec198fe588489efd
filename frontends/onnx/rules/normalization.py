"""Normalisations with learned scale and bias: batch, instance, layer, group and RMS.

All compute in f32 for half precision (or in the type that stash_type names) and round once, at the end.
"""

import math
from collections.abc import Sequence

from onnxla.frontends.onnx.broadcasting import broadcast_from_axis
from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.axes import kept_shape, normal_axis
from onnxla.frontends.onnx.rules.precision import wide_element, widen
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import F32, F64, ElementType

EPSILON = 1e-5


def mean_over(b: Builder, x: Instruction, dimensions: Sequence[int]) -> Instruction:
    """The mean over `dimensions`, which go."""
    total = b.reduce_by("add", x, dimensions)
    return b.divide(total, b.full_like(total, math.prod(x.shape[d] for d in dimensions)))


def spread_over(b: Builder, statistic: Instruction, like: Instruction, dimensions: Sequence[int]) -> Instruction:
    """A reduction over `dimensions` of `like`, repeated along them."""
    return b.broadcast(statistic, like.shape, [d for d in range(len(like.shape)) if d not in dimensions])


def centred(b: Builder, x: Instruction, dimensions: Sequence[int]) -> tuple[Instruction, Instruction, Instruction]:
    """The mean and the variance over `dimensions`, which go from both, and `x` minus its mean.

    The variance is the mean of squared differences: no cancellation, however large the mean.
    """
    mean = mean_over(b, x, dimensions)
    difference = b.subtract(x, spread_over(b, mean, x, dimensions))
    return mean, mean_over(b, b.multiply(difference, difference), dimensions), difference


def inverse_deviation(b: Builder, variance: Instruction, epsilon: float) -> Instruction:
    """1 / sqrt(variance + epsilon)"""
    return b.unary("rsqrt", b.add(variance, b.full_like(variance, epsilon)))


@onnx_op("BatchNormalization", until=13)
def batch_normalization(node: NodeView, b: Builder) -> Instruction:
    """With the given statistics: the training outputs of opsets 1 to 13 are not made, as in onnxruntime."""
    if any(node.has_output(i) for i in range(1, node.output_count)):
        node.unsupported("the training outputs before opset 14 are not computed", "export the model for inference")
    return _normalized_by(node, b, node.input(3), node.input(4))


@onnx_op("BatchNormalization", since=14)
def batch_normalization_or_training(node: NodeView, b: Builder) -> list[Instruction]:
    """In training mode the batch's own statistics, and the running ones moved towards them."""
    mean, variance = node.input(3), node.input(4)
    if not node.int("training_mode", 0):
        return [_normalized_by(node, b, mean, variance)]
    x = _at_least(b, node.input(0), mean.tensor_type.element)
    batch_mean, batch_variance, _ = centred(b, x, [d for d in range(len(x.shape)) if d != 1])
    momentum = node.float("momentum", 0.9)

    def moved(running: Instruction, batch: Instruction) -> Instruction:
        wide = widen(b, running)
        kept = b.multiply(wide, b.full_like(wide, momentum))
        added = b.multiply(batch, b.full_like(batch, 1 - momentum))
        return b.convert(b.add(kept, b.convert(added, kept.tensor_type.element)), running.tensor_type.element)

    y = _normalized_by(node, b, batch_mean, batch_variance)
    return [y, moved(mean, batch_mean), moved(variance, batch_variance)]


def _at_least(b: Builder, x: Instruction, other: ElementType) -> Instruction:
    """`x` widened for sums, and to f64 where `other` is that."""
    return b.convert(x, F64) if other is F64 else widen(b, x)


def _normalized_by(node: NodeView, b: Builder, mean: Instruction, variance: Instruction) -> Instruction:
    """(x - mean) / sqrt(variance + epsilon) * scale + bias as one multiply and one add with small factors.

    The factors have a number for each channel, or before opset 9 with spatial=0 one for each element of an image.
    """
    given = node.input(0)
    x = widen(b, given)
    element = x.tensor_type.element
    scale, bias, mean, variance = (b.convert(v, element) for v in (node.input(1), node.input(2), mean, variance))
    factor = b.multiply(scale, inverse_deviation(b, variance, node.float("epsilon", EPSILON)))
    offset = b.subtract(bias, b.multiply(mean, factor))
    scaled = b.multiply(x, broadcast_from_axis(b, factor, x.shape, 1))
    return b.convert(b.add(scaled, broadcast_from_axis(b, offset, x.shape, 1)), given.tensor_type.element)


@onnx_op("InstanceNormalization")
def instance_normalization(node: NodeView, b: Builder) -> Instruction:
    """Statistics over the spatial dimensions of each channel of each image."""
    given = node.input(0)
    x = widen(b, given)
    spatial = range(2, len(x.shape))
    _, variance, difference = centred(b, x, spatial)
    deviation = spread_over(b, inverse_deviation(b, variance, node.float("epsilon", EPSILON)), x, spatial)
    y = _scaled_and_shifted(node, b, b.multiply(difference, deviation), 1)
    return b.convert(y, given.tensor_type.element)


def _scaled_and_shifted(node: NodeView, b: Builder, x: Instruction, axis: int) -> Instruction:
    """x * scale + bias, where inputs 1 and 2 begin at `axis`; the bias may be left out."""
    element = x.tensor_type.element
    y = b.multiply(x, broadcast_from_axis(b, b.convert(node.input(1), element), x.shape, axis))
    bias = node.optional_input(2)
    return y if bias is None else b.add(y, broadcast_from_axis(b, b.convert(bias, element), x.shape, axis))


def _stashed(b: Builder, x: Instruction, stash: ElementType) -> Instruction:
    """`x` in the type that the statistics are computed in, which is never narrower than its own."""
    return b.convert(x, F64 if x.tensor_type.element is F64 else wide_element(stash))


@onnx_op("LayerNormalization", since=17)
def layer_normalization(node: NodeView, b: Builder) -> list[Instruction]:
    """Statistics over the dimensions from `axis` on; also the mean and 1 / deviation, which keep their dimensions."""
    stash, given = node.element("stash_type", F32), node.input(0)
    axis = normal_axis(node, node.int("axis", -1), len(given.shape))
    x = _stashed(b, given, stash)
    dimensions = range(axis, len(x.shape))
    mean, variance, difference = centred(b, x, dimensions)
    deviation = inverse_deviation(b, variance, node.float("epsilon", EPSILON))
    normalized = b.multiply(difference, spread_over(b, deviation, x, dimensions))
    y = _scaled_by_trailing(node, b, normalized)
    kept = kept_shape(x.shape, dimensions)
    statistics = [b.convert(b.reshape(s, kept), stash) for s in (mean, deviation)]
    return [b.convert(y, given.tensor_type.element), *statistics]


def _scaled_by_trailing(node: NodeView, b: Builder, x: Instruction) -> Instruction:
    """x * scale + bias, where inputs 1 and 2 broadcast to `x` by numpy's rule; the bias may be left out."""
    element = x.tensor_type.element
    y = b.multiply(x, b.numpy_broadcast(b.convert(node.input(1), element), x.shape))
    bias = node.optional_input(2)
    return y if bias is None else b.add(y, b.numpy_broadcast(b.convert(bias, element), x.shape))


@onnx_op("RMSNormalization", since=23)
def rms_normalization(node: NodeView, b: Builder) -> Instruction:
    """x / sqrt(mean(x^2) + epsilon) * scale over the dimensions from `axis` on."""
    stash, given = node.element("stash_type", F32), node.input(0)
    axis = normal_axis(node, node.int("axis", -1), len(given.shape))
    x = _stashed(b, given, stash)
    dimensions = range(axis, len(x.shape))
    deviation = inverse_deviation(b, mean_over(b, b.multiply(x, x), dimensions), node.float("epsilon", EPSILON))
    y = _scaled_by_trailing(node, b, b.multiply(x, spread_over(b, deviation, x, dimensions)))
    return b.convert(y, given.tensor_type.element)


@onnx_op("GroupNormalization", since=18)
def group_normalization(node: NodeView, b: Builder) -> Instruction:
    """Statistics over groups of channels. Scale and bias are for each group until opset 20, then for each channel."""
    stash, groups, given = node.element("stash_type", F32), node.int("num_groups"), node.input(0)
    n, channels, *spatial = given.shape
    if groups < 1 or channels % groups:
        node.shape_error(f"{channels} channels do not divide into {groups} groups")
    x = b.reshape(_stashed(b, given, stash), (n, groups, channels // groups, *spatial))
    dimensions = range(2, len(x.shape))
    _, variance, difference = centred(b, x, dimensions)
    deviation = spread_over(b, inverse_deviation(b, variance, node.float("epsilon", EPSILON)), x, dimensions)
    normalized = b.multiply(difference, deviation)
    per_channel = node.input(1).tensor_type.size == channels
    y = _scaled_and_shifted(node, b, b.reshape(normalized, given.shape) if per_channel else normalized, 1)
    return b.convert(b.reshape(y, given.shape), given.tensor_type.element)
