"""QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear, of ai.onnx and com.microsoft."""

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.cast import convert
from onnxla.frontends.onnx.rules.precision import wide_element
from onnxla.frontends.onnx.rules.quantized_values import (
    dequantize,
    dynamic_quantize,
    is_known_zero,
    quantize,
    spread,
)
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import F32, U8


@onnx_op("QuantizeLinear", since=10)
@onnx_op("QuantizeLinear", domain="com.microsoft")
def quantize_linear(node: NodeView, b: Builder) -> Instruction:
    """Computes in the type of the scale, or that of the attribute `precision`; half precision in f32.

    The result has the type of the zero point, else that of the attribute output_dtype, else u8.
    """
    precision, wished = node.optional_element("precision"), node.optional_element("output_dtype")
    x, scale = node.input(0), node.input(1)
    element = node.input(2).tensor_type.element if node.has_input(2) else wished or U8
    computed = wide_element(precision or scale.tensor_type.element)
    if not computed.is_float:
        computed = F32
    axis, block = node.int("axis", 1), node.int("block_size", 0)
    spread_scale = spread(node, b, b.convert(scale, computed), x.shape, axis, block)
    zero_point = None
    if not is_known_zero(node, 2):
        zero_point = spread(node, b, node.input(2), x.shape, axis, block)
    x = b.convert(x, computed)
    if element.is_integer:
        return quantize(b, x, spread_scale, zero_point, element)
    scaled = b.divide(x, spread_scale)
    if zero_point is not None:
        scaled = b.add(scaled, b.convert(zero_point, computed))
    return convert(node, b, scaled, element)


@onnx_op("DequantizeLinear", since=10)
@onnx_op("DequantizeLinear", domain="com.microsoft")
def dequantize_linear(node: NodeView, b: Builder) -> Instruction:
    """The product is computed in f32 and rounded once to the type of the scale, or to output_dtype."""
    wished = node.optional_element("output_dtype")
    x, scale = node.input(0), node.input(1)
    element = wished or scale.tensor_type.element
    axis, block = node.int("axis", 1), node.int("block_size", 0)
    spread_scale = spread(node, b, scale, x.shape, axis, block)
    zero_point = None if is_known_zero(node, 2) else spread(node, b, node.input(2), x.shape, axis, block)
    return b.convert(dequantize(b, x, spread_scale, zero_point), element)


@onnx_op("DynamicQuantizeLinear", since=11)
def dynamic_quantize_linear(node: NodeView, b: Builder) -> list[Instruction]:
    return list(dynamic_quantize(b, node.input(0)))
