"""What TensorFlow's own optimiser makes of a convolution or product and what follows it, found in graphs for tfjs."""

from onnxla.frontends.tensorflow.images import feature_dimension
from onnxla.frontends.tensorflow.node_view import NodeView
from onnxla.frontends.tensorflow.registry import tf_op
from onnxla.frontends.tensorflow.rules.activation import leaky
from onnxla.frontends.tensorflow.rules.convolution import conv, depthwise_conv
from onnxla.frontends.tensorflow.rules.linear import mat_mul
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction

_OPERANDS = {"BiasAdd": 1, "Add": 1, "FusedBatchNorm": 4}
"""How many inputs an operation takes besides the value that runs through."""


@tf_op("_FusedConv2D")
def fused_conv(node: NodeView, b: Builder) -> Instruction:
    return _followed(node, b, conv(node, b))


@tf_op("_FusedDepthwiseConv2dNative", "FusedDepthwiseConv2dNative")
def fused_depthwise_conv(node: NodeView, b: Builder) -> Instruction:
    return _followed(node, b, depthwise_conv(node, b))


@tf_op("_FusedMatMul")
def fused_mat_mul(node: NodeView, b: Builder) -> Instruction:
    return _followed(node, b, mat_mul(node, b))


def _followed(node: NodeView, b: Builder, x: Instruction) -> Instruction:
    """`x` through the operations of the attribute `fused_ops`; their operands follow the first two inputs."""
    place = 2
    for name in node.strings("fused_ops"):
        operands = [node.input(place + k) for k in range(_OPERANDS.get(name, 0))]
        place += len(operands)
        x = _applied(node, b, name, x, operands)
    return x


def _applied(node: NodeView, b: Builder, name: str, x: Instruction, operands: list[Instruction]) -> Instruction:
    last = [feature_dimension(node, len(x.shape))]
    match name:
        case "BiasAdd":
            return b.add(x, b.broadcast(operands[0], x.shape, last))
        case "Add":
            return b.add(x, operands[0])
        case "FusedBatchNorm":
            scale, offset, mean, variance = operands
            deviation = b.add(variance, b.full_like(variance, node.float("epsilon", 1e-4)))
            factor = b.multiply(scale, b.unary("rsqrt", deviation))
            shift = b.subtract(offset, b.multiply(mean, factor))
            scaled = b.multiply(x, b.broadcast(factor, x.shape, last))
            return b.add(scaled, b.broadcast(shift, x.shape, last))
        case "Relu":
            return b.maximum(x, b.full_like(x, 0))
        case "Relu6":
            return b.minimum(b.maximum(x, b.full_like(x, 0)), b.full_like(x, 6))
        case "LeakyRelu":
            return leaky(b, x, node.float("leakyrelu_alpha", 0.2))
        case "Elu":
            above = b.compare(x, b.full_like(x, 0), "GT")
            return b.select(above, x, b.unary("exponential-minus-one", x))
        case "Tanh":
            return b.unary("tanh", x)
        case "Sigmoid":
            return b.unary("logistic", x)
        case other:
            node.unsupported(f"{node.op_type} with {other}", "write the operations out: turn grappler's remapping off")
