"""Batch normalisation, in inference and training, and its gradient; local response normalisation."""

import math

from onnxla.frontends.onnx.rules.normalization import centred
from onnxla.frontends.onnx.rules.precision import widen
from onnxla.frontends.tensorflow.images import feature_dimension
from onnxla.frontends.tensorflow.node_view import NodeView
from onnxla.frontends.tensorflow.registry import tf_op
from onnxla.frontends.tensorflow.rules.elementwise import scaled
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import F32
from onnxla.hlo.window import Window, WindowDimension

OUTPUTS = ("y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2", "reserve_space_3")
GRADIENTS = ("x_backprop", "scale_backprop", "offset_backprop", "reserve_space_4", "reserve_space_5")


@tf_op("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3", outputs=OUTPUTS)
def fused_batch_norm(node: NodeView, b: Builder) -> list[Instruction]:
    """In training the statistics are the batch's, and the variance that comes out is the unbiased one; what is kept
    for the gradient is the mean and the biased variance."""
    given, scale, offset, mean, variance = (node.input(i) for i in range(5))
    x = widen(b, given)
    feature = feature_dimension(node, len(x.shape))
    others = [d for d in range(len(x.shape)) if d != feature]
    running_mean, running_variance = mean, variance
    if node.bool("is_training", True):
        count = math.prod(x.shape[d] for d in others)
        mean, variance, difference = centred(b, x, others)
        factor = node.float("exponential_avg_factor", 1.0)
        unbiased = scaled(b, variance, count / max(count - 1, 1))
        running_mean = _moved(b, running_mean, mean, factor)
        running_variance = _moved(b, running_variance, unbiased, factor)
    else:
        difference = b.subtract(x, b.broadcast(mean, x.shape, [feature]))
    factor_of = b.multiply(scale, _inverse_deviation(node, b, variance))
    normal = b.multiply(difference, b.broadcast(factor_of, x.shape, [feature]))
    y = b.convert(b.add(normal, b.broadcast(offset, x.shape, [feature])), given.tensor_type.element)
    return [y, running_mean, running_variance, mean, variance, b.full((0,), 0, F32)]


def _moved(b: Builder, old: Instruction, new: Instruction, factor: float) -> Instruction:
    """The moving average: `new` alone for a factor of 1, when there may be nothing old."""
    return new if factor == 1 else b.add(scaled(b, old, 1 - factor), scaled(b, new, factor))


def _inverse_deviation(node: NodeView, b: Builder, variance: Instruction) -> Instruction:
    return b.unary("rsqrt", b.add(variance, b.full_like(variance, node.float("epsilon", 1e-4))))


@tf_op("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3", outputs=GRADIENTS)
def fused_batch_norm_grad(node: NodeView, b: Builder) -> list[Instruction]:
    """dx = scale / s * (g - mean(g) - d * mean(g * d) / s^2), with d = x - mean and s^2 = variance + epsilon; without
    the two means where the statistics were given."""
    given_g, given_x, scale, mean, variance = (node.input(i) for i in range(5))
    g, x = widen(b, given_g), widen(b, given_x)
    feature = feature_dimension(node, len(x.shape))
    others = [d for d in range(len(x.shape)) if d != feature]
    count = math.prod(x.shape[d] for d in others)

    def spread(value: Instruction) -> Instruction:
        return b.broadcast(value, x.shape, [feature])

    inverse = _inverse_deviation(node, b, variance)
    difference = b.subtract(x, spread(mean))
    sum_g = b.reduce_by("add", g, others)
    sum_gd = b.reduce_by("add", b.multiply(g, difference), others)
    inner = g
    if node.bool("is_training", True):
        slope = scaled(b, b.multiply(sum_gd, b.multiply(inverse, inverse)), 1 / count)
        inner = b.subtract(b.subtract(g, spread(scaled(b, sum_g, 1 / count))), b.multiply(difference, spread(slope)))
    dx = b.convert(b.multiply(inner, spread(b.multiply(scale, inverse))), given_x.tensor_type.element)
    empty = b.full((0,), 0, F32)
    return [dx, b.multiply(sum_gd, inverse), sum_g, empty, empty]


@tf_op("LRN")
def local_response_normalization(node: NodeView, b: Builder) -> Instruction:
    """x / (bias + alpha * sum of squares over neighbouring channels) ** beta"""
    x, radius = node.input(0), node.int("depth_radius", 5)
    element = x.tensor_type.element
    around = WindowDimension(size=2 * radius + 1, pad_low=radius, pad_high=radius)
    window = Window((*[WindowDimension()] * (len(x.shape) - 1), around))
    squares = b.reduce_window([b.multiply(x, x)], [b.constant(0, element)], window, b.combiner("add", element))
    base = b.add(scaled(b, squares, node.float("alpha", 1.0)), b.full_like(x, node.float("bias", 1.0)))
    return b.divide(x, b.power(base, b.full_like(x, node.float("beta", 0.5))))
