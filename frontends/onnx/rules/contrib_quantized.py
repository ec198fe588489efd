"""onnxruntime's quantised elementwise, pooling and data-movement operators (com.microsoft.QLinear...).

Each computes in f32 between a dequantisation and a quantisation of 8-bit values, in the order of
operations that onnxruntime's own kernels have, so that results agree to the last bit or nearly so.
"""

import math

from onnxla.frontends.onnx.broadcasting import broadcast_together
from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.axes import kept_shape, normal_axes, normal_axis
from onnxla.frontends.onnx.rules.pooling import average_over_windows
from onnxla.frontends.onnx.rules.quantized_convolution import channels_first, channels_last
from onnxla.frontends.onnx.rules.quantized_values import (
    dequantize,
    optional_scalar,
    quantize,
    requantize,
    round_to,
    scalar,
)
from onnxla.frontends.onnx.rules.softmax import softmax_over
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import F32, S32

MICROSOFT = "com.microsoft"
FIRST_OPSET_OF_ONE_SOFTMAX_AXIS = 13


def read_quantized(node: NodeView, b: Builder, i: int) -> Instruction:
    """Inputs i, i + 1, i + 2 are a value, its scale and its zero point: the value in f32."""
    return dequantize(b, node.input(i), scalar(node, b, i + 1), optional_scalar(node, b, i + 2))


def write_quantized(node: NodeView, b: Builder, x: Instruction, like: Instruction, i: int) -> Instruction:
    """`x` in the element type of `like`, with inputs i and i + 1 as scale and zero point."""
    return quantize(b, x, scalar(node, b, i), optional_scalar(node, b, i + 1), like.tensor_type.element)


@onnx_op("QLinearAdd", domain=MICROSOFT)
def qlinear_add(node: NodeView, b: Builder) -> Instruction:
    """a * (A_scale / C_scale) + b * (B_scale / C_scale) + constant, the zero points being in the constant."""
    a, c = node.input(0), node.input(3)
    out_scale, out_zero = scalar(node, b, 6), optional_scalar(node, b, 7)
    a_ratio, c_ratio = (b.divide(scalar(node, b, i), out_scale) for i in (1, 4))
    offset = b.constant(0, F32) if out_zero is None else b.convert(out_zero, F32)
    for ratio, i in ((a_ratio, 2), (c_ratio, 5)):
        zero = optional_scalar(node, b, i)
        if zero is not None:
            offset = b.subtract(offset, b.multiply(ratio, b.convert(zero, F32)))
    left, right = broadcast_together(b, a, c)

    def scaled(value: Instruction, ratio: Instruction) -> Instruction:
        return b.multiply(b.convert(value, F32), b.broadcast_scalar(ratio, value.shape))

    inner = b.add(scaled(right, c_ratio), b.broadcast_scalar(offset, left.shape))
    return round_to(b, b.add(scaled(left, a_ratio), inner), None, a.tensor_type.element)


@onnx_op("QLinearMul", domain=MICROSOFT)
def qlinear_mul(node: NodeView, b: Builder) -> Instruction:
    """(a - a_zero) * (b - b_zero) * (A_scale * B_scale / C_scale)"""
    left, right = broadcast_together(b, node.input(0), node.input(3))

    def centred(value: Instruction, i: int) -> Instruction:
        zero = optional_scalar(node, b, i)
        wide = b.convert(value, S32)
        return wide if zero is None else b.subtract(wide, b.broadcast_scalar(b.convert(zero, S32), value.shape))

    factor = b.divide(b.multiply(scalar(node, b, 1), scalar(node, b, 4)), scalar(node, b, 6))
    product = b.multiply(centred(left, 2), centred(right, 5))
    return requantize(b, product, factor, optional_scalar(node, b, 7), left.tensor_type.element)


@onnx_op("QLinearSigmoid", domain=MICROSOFT)
def qlinear_sigmoid(node: NodeView, b: Builder) -> Instruction:
    return write_quantized(node, b, b.unary("logistic", read_quantized(node, b, 0)), node.input(0), 3)


@onnx_op("QLinearLeakyRelu", domain=MICROSOFT)
def qlinear_leaky_relu(node: NodeView, b: Builder) -> Instruction:
    x = read_quantized(node, b, 0)
    below = b.multiply(x, b.full_like(x, node.float("alpha", 0.01)))
    y = b.select(b.compare(x, b.full_like(x, 0), "GE"), x, below)
    return write_quantized(node, b, y, node.input(0), 3)


@onnx_op("QLinearSoftmax", domain=MICROSOFT)
def qlinear_softmax(node: NodeView, b: Builder) -> Instruction:
    """Softmax over one axis since its opset 13, before that over all dimensions from `axis` on."""
    x = read_quantized(node, b, 0)
    rank, opset = len(x.shape), node.int("opset")
    axis = normal_axis(node, node.int("axis", -1 if opset >= FIRST_OPSET_OF_ONE_SOFTMAX_AXIS else 1), rank)
    dimensions = [axis] if opset >= FIRST_OPSET_OF_ONE_SOFTMAX_AXIS else range(axis, rank)
    return write_quantized(node, b, softmax_over(b, x, dimensions), node.input(0), 3)


@onnx_op("QLinearConcat", domain=MICROSOFT)
def qlinear_concat(node: NodeView, b: Builder) -> Instruction:
    """Inputs: the output's scale and zero point, then a value, scale and zero point for each part."""
    out_zero = scalar(node, b, 1)
    element = out_zero.tensor_type.element
    parts = [
        quantize(b, read_quantized(node, b, i), scalar(node, b, 0), out_zero, element)
        for i in range(2, node.input_count, 3)
    ]
    return b.concatenate(parts, normal_axis(node, node.int("axis"), len(parts[0].shape)))


@onnx_op("QLinearWhere", domain=MICROSOFT)
def qlinear_where(node: NodeView, b: Builder) -> Instruction:
    out_zero = scalar(node, b, 8)
    element = out_zero.tensor_type.element
    x, y = (quantize(b, read_quantized(node, b, i), scalar(node, b, 7), out_zero, element) for i in (1, 4))
    condition, x, y = broadcast_together(b, node.input(0), x, y)
    return b.select(condition, x, y)


@onnx_op("QLinearAveragePool", domain=MICROSOFT)
def qlinear_average_pool(node: NodeView, b: Builder) -> Instruction:
    last = bool(node.int("channels_last", 0))
    x = read_quantized(node, b, 0)
    y = average_over_windows(node, b, channels_first(b, x) if last else x)
    return write_quantized(node, b, channels_last(b, y) if last else y, node.input(0), 3)


@onnx_op("QLinearGlobalAveragePool", domain=MICROSOFT)
def qlinear_global_average_pool(node: NodeView, b: Builder) -> Instruction:
    """The sum over the image in s32, times x_scale / (y_scale * count)."""
    x = node.input(0)
    rank = len(x.shape)
    image = list(range(1, rank - 1)) if node.int("channels_last", 0) else list(range(2, rank))
    count = math.prod(x.shape[d] for d in image)
    sums = b.reduce_by("add", b.convert(x, S32), image)
    x_zero = optional_scalar(node, b, 2)
    if x_zero is not None:
        share = b.multiply(b.convert(x_zero, S32), b.constant(count, S32))
        sums = b.subtract(sums, b.broadcast_scalar(share, sums.shape))
    factor = b.divide(scalar(node, b, 1), b.multiply(scalar(node, b, 3), b.constant(count, F32)))
    y = requantize(b, sums, factor, optional_scalar(node, b, 4), x.tensor_type.element)
    return b.reshape(y, kept_shape(x.shape, image))


@onnx_op("QLinearReduceMean", domain=MICROSOFT)
def qlinear_reduce_mean(node: NodeView, b: Builder) -> Instruction:
    x = read_quantized(node, b, 0)
    axes = normal_axes(node, node.ints("axes", ()) or range(len(x.shape)), len(x.shape))
    total = b.reduce_by("add", x, axes)
    mean = b.divide(total, b.full_like(total, math.prod(x.shape[d] for d in axes)))
    y = write_quantized(node, b, mean, node.input(0), 3)
    return b.reshape(y, kept_shape(x.shape, axes)) if node.int("keepdims", 1) else y
