"""Products of matrices, Einsum, and adding biases."""

from onnxla.frontends.onnx.rules.einsum import einsum_of
from onnxla.frontends.onnx.rules.linear import matmul
from onnxla.frontends.tensorflow.images import feature_dimension
from onnxla.frontends.tensorflow.node_view import NodeView
from onnxla.frontends.tensorflow.registry import tf_op
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction


@tf_op("MatMul")
def mat_mul(node: NodeView, b: Builder) -> Instruction:
    lhs, rhs = node.input(0), node.input(1)
    if len(lhs.shape) != 2 or len(rhs.shape) != 2:
        node.shape_error("the operands must be matrices")
    contracting = 0 if node.bool("transpose_a", False) else 1, 1 if node.bool("transpose_b", False) else 0
    return b.dot(lhs, rhs, [contracting[0]], [contracting[1]])


@tf_op("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def batch_mat_mul(node: NodeView, b: Builder) -> Instruction:
    """The dimensions before the last two broadcast."""
    lhs, rhs = node.input(0), node.input(1)
    if min(len(lhs.shape), len(rhs.shape)) < 2:
        node.shape_error("the operands must have at least two dimensions")
    lhs = _last_two_turned(b, lhs) if node.bool("adj_x", False) else lhs
    rhs = _last_two_turned(b, rhs) if node.bool("adj_y", False) else rhs
    return matmul(b, lhs, rhs)


def _last_two_turned(b: Builder, x: Instruction) -> Instruction:
    """The adjoint: transposed, and of complex numbers the conjugate."""
    rank = len(x.shape)
    x = b.transpose(x, [*range(rank - 2), rank - 1, rank - 2])
    if x.tensor_type.element.is_complex:
        return b.binary("complex", b.unary("real", x), b.negate(b.unary("imag", x)))
    return x


@tf_op("Einsum")
def einsum(node: NodeView, b: Builder) -> Instruction:
    return einsum_of(node, b, node.string("equation"), node.inputs())


@tf_op("BiasAdd", "BiasAddV1")
def bias_add(node: NodeView, b: Builder) -> Instruction:
    x, bias = node.input(0), node.input(1)
    return b.add(x, b.broadcast(bias, x.shape, [feature_dimension(node, len(x.shape))]))


@tf_op("BiasAddGrad")
def bias_add_grad(node: NodeView, b: Builder) -> Instruction:
    g = node.input(0)
    feature = feature_dimension(node, len(g.shape))
    return b.reduce_by("add", g, [d for d in range(len(g.shape)) if d != feature])
