"""onnxruntime's fused activations: Gelu and its relatives with a bias, softmax with a bias, split gates."""

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.activation import gelu_of, tanh_gelu_of
from onnxla.frontends.onnx.rules.axes import normal_axis
from onnxla.frontends.onnx.rules.linear import matmul
from onnxla.frontends.onnx.rules.precision import widen
from onnxla.frontends.onnx.rules.softmax import softmax_over
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction

MICROSOFT = "com.microsoft"


def _biased(b: Builder, x: Instruction, bias: Instruction | None) -> Instruction:
    """x + bias over the last dimension; half precision is widened."""
    x = widen(b, x)
    return x if bias is None else b.add(x, b.numpy_broadcast(widen(b, bias), x.shape))


def _like(b: Builder, y: Instruction, x: Instruction) -> Instruction:
    return b.convert(y, x.tensor_type.element)


@onnx_op("Gelu", domain=MICROSOFT)
@onnx_op("BiasGelu", domain=MICROSOFT)
def bias_gelu(node: NodeView, b: Builder) -> Instruction:
    x = node.input(0)
    return _like(b, gelu_of(b, _biased(b, x, node.optional_input(1))), x)


@onnx_op("FastGelu", domain=MICROSOFT)
def fast_gelu(node: NodeView, b: Builder) -> Instruction:
    """The form with tanh."""
    x = node.input(0)
    return _like(b, tanh_gelu_of(b, _biased(b, x, node.optional_input(1))), x)


@onnx_op("GemmFastGelu", domain=MICROSOFT)
def gemm_fast_gelu(node: NodeView, b: Builder) -> Instruction:
    product = matmul(b, node.input(0), node.input(1))
    return _like(b, tanh_gelu_of(b, _biased(b, product, node.optional_input(2))), product)


@onnx_op("QuickGelu", domain=MICROSOFT)
def quick_gelu(node: NodeView, b: Builder) -> Instruction:
    """x * sigmoid(alpha * x)"""
    x = widen(b, node.input(0))
    gate = b.unary("logistic", b.multiply(x, b.full_like(x, node.float("alpha", 1.702))))
    return _like(b, b.multiply(x, gate), node.input(0))


@onnx_op("BiasAdd", domain=MICROSOFT)
def bias_add(node: NodeView, b: Builder) -> Instruction:
    """x + bias + skip"""
    x = node.input(0)
    return _like(b, b.add(_biased(b, x, node.input(1)), widen(b, node.input(2))), x)


@onnx_op("BiasSplitGelu", domain=MICROSOFT)
def bias_split_gelu(node: NodeView, b: Builder) -> Instruction:
    """The first half of the features times the Gelu of the second, both after the bias."""
    x = _biased(b, node.input(0), node.input(1))
    *lead, width = x.shape
    start = [0] * len(lead)
    left = b.slice(x, [*start, 0], [*lead, width // 2])
    right = b.slice(x, [*start, width // 2], [*lead, width])
    return _like(b, b.multiply(left, gelu_of(b, right)), node.input(0))


@onnx_op("BiasSoftmax", domain=MICROSOFT)
def bias_softmax(node: NodeView, b: Builder) -> Instruction:
    """Softmax of data + bias over the dimensions from `axis` on.

    The bias has the data's last dimensions, or its first ones where is_inner_broadcast is 0.
    """
    data, bias = node.input(0), node.input(1)
    rank = len(data.shape)
    axis = normal_axis(node, node.int("axis", 1), rank)
    if not node.int("is_inner_broadcast", 1) and len(bias.shape) < rank:
        node.unsupported("is_inner_broadcast=0 with a bias of lower rank is not known", "give the bias all dimensions")
    x = _biased(b, data, bias)
    return _like(b, softmax_over(b, x, range(axis, rank)), data)


@onnx_op("BiasDropout", domain=MICROSOFT)
def bias_dropout(node: NodeView, b: Builder) -> list[Instruction]:
    """data + bias + residual; nothing is dropped outside of training."""
    training = node.optional_constant(4)
    if training is not None and training.any():
        node.unsupported("dropout in training mode is random", "export the model for inference")
    x, residual = node.input(0), node.optional_input(2)
    y = _biased(b, x, node.input(1))
    if residual is not None:
        y = b.add(y, widen(b, residual))
    return [_like(b, y, x)]
