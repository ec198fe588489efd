"""ConvInteger and QLinearConv: convolutions of s8 and u8 with exact sums in s32.

Where the weights are known to have no zero point, the operands stay as they are: the input is padded
with its own zero point, whose share in every sum is then the same number for each output channel and
is taken off afterwards. Otherwise both zero points are taken off first, in s16.
"""

from onnxla.frontends.onnx.broadcasting import broadcast_from_axis
from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.quantized_values import (
    is_known_zero,
    optional_scalar,
    requantize,
    scalar,
)
from onnxla.frontends.onnx.rules.windows import read_auto_pad, read_sliding
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import F32, S16, S32
from onnxla.hlo.window import ConvolutionDimensions, Window, WindowDimension


def integer_convolution(
    node: NodeView, b: Builder, x: Instruction, weight: Instruction, x_zero: int, weight_zero: int
) -> Instruction:
    """The s32 sums of `x` [N, C, spatial] and `weight` [M, C / group, spatial]; zero points are inputs by number."""
    _check_operands(node, x, weight)
    rank = len(x.shape) - 2
    sliding = read_sliding(node, node.ints("kernel_shape", ()) or weight.shape[2:], x.shape[2:])
    window = Window(tuple(s.dimension for s in sliding))
    dimensions, groups = ConvolutionDimensions.nchw(rank), node.int("group", 1)
    zero = optional_scalar(node, b, x_zero)
    if not is_known_zero(node, weight_zero):
        shifted_weight = _minus(b, weight, _of_channels(node, b, weight_zero, weight))
        shifted = b.convert(x, S16) if zero is None else _minus(b, x, b.broadcast_scalar(zero, x.shape))
        return b.convolution(shifted, shifted_weight, window, dimensions, groups, element=S32)
    if zero is None:
        return b.convolution(x, weight, window, dimensions, groups, element=S32)
    low, high = [s.pad_low for s in sliding], [s.reach for s in sliding]
    if any(low) or any(high):
        x = b.pad(x, zero, [0, 0, *low], [0, 0, *high])
        window = Window(
            tuple(WindowDimension(size=s.kernel, stride=s.stride, window_dilation=s.dilation) for s in sliding)
        )
    sums = b.convolution(x, weight, window, dimensions, groups, element=S32)
    taken = b.reduce_by("add", b.convert(weight, S32), range(1, rank + 2))
    share = b.multiply(taken, b.broadcast_scalar(b.convert(zero, S32), taken.shape))
    return b.subtract(sums, b.broadcast(share, sums.shape, [1]))


def _check_operands(node: NodeView, x: Instruction, weight: Instruction) -> None:
    for value in (x, weight):
        if not value.tensor_type.element.is_integer or value.tensor_type.element.bits != 8:
            node.unsupported(f"convolutions of {value.tensor_type.element} are not known here", "s8 and u8 are")
    if len(x.shape) < 3 or len(weight.shape) != len(x.shape):
        node.shape_error("a convolution needs [N, C, spatial...] and weights of the same rank")
    if weight.shape[1] * node.int("group", 1) != x.shape[1]:
        node.shape_error(f"{x.shape[1]} channels do not fit weights {weight.tensor_type}")


def _minus(b: Builder, x: Instruction, zero: Instruction) -> Instruction:
    return b.subtract(b.convert(x, S16), b.convert(zero, S16))


def _of_channels(node: NodeView, b: Builder, i: int, weight: Instruction) -> Instruction:
    """Input `i`, one number or one for each output channel, stretched to the weights' shape."""
    value = node.input(i)
    if value.tensor_type.size == 1:
        return b.broadcast_scalar(b.reshape(value, ()), weight.shape)
    return broadcast_from_axis(b, value, weight.shape, 0)


@onnx_op("ConvInteger", since=10)
def conv_integer(node: NodeView, b: Builder) -> Instruction:
    read_auto_pad(node)  # it may be wrong whatever the inputs are
    return integer_convolution(node, b, node.input(0), node.input(1), 2, 3)


@onnx_op("QLinearConv", since=10)
def qlinear_conv(node: NodeView, b: Builder) -> Instruction:
    read_auto_pad(node)
    return _qlinear_conv(node, b, node.input(0))


@onnx_op("QLinearConv", domain="com.microsoft")
def qlinear_conv_of_any_layout(node: NodeView, b: Builder) -> Instruction:
    """As ai.onnx, or with channels last in input and output. The weights are channels first in both."""
    read_auto_pad(node)
    x = node.input(0)
    if not node.int("channels_last", 0):
        return _qlinear_conv(node, b, x)
    return channels_last(b, _qlinear_conv(node, b, channels_first(b, x)))


def channels_first(b: Builder, x: Instruction) -> Instruction:
    """[N, spatial, C] as [N, C, spatial]."""
    rank = len(x.shape)
    return b.transpose(x, [0, rank - 1, *range(1, rank - 1)])


def channels_last(b: Builder, x: Instruction) -> Instruction:
    """[N, C, spatial] as [N, spatial, C]."""
    return b.transpose(x, [0, *range(2, len(x.shape)), 1])


def _qlinear_conv(node: NodeView, b: Builder, x: Instruction) -> Instruction:
    """The bias has the scale of the product and is added to the sums."""
    weight = node.input(3)
    sums = integer_convolution(node, b, x, weight, 2, 5)
    bias = node.optional_input(8)
    if bias is not None:
        sums = b.add(sums, broadcast_from_axis(b, bias, sums.shape, 1))
    weight_scale = b.convert(node.input(4), F32)
    if weight_scale.tensor_type.size == 1:
        weight_scale = b.reshape(weight_scale, ())
    x_scale, y_scale = (b.broadcast_scalar(scalar(node, b, i), weight_scale.shape) for i in (1, 6))
    factor = b.divide(b.multiply(x_scale, weight_scale), y_scale)
    if factor.shape:
        factor = broadcast_from_axis(b, factor, sums.shape, 1)
    zero_point = scalar(node, b, 7)
    return requantize(b, sums, factor, zero_point, zero_point.tensor_type.element)
