"""MatMul and Gemm as one `dot`, without copies: weights of two dimensions are contracted where they lie."""

from onnxla.frontends.onnx.broadcasting import shape_of_broadcast
from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.precision import wide_element, widen
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction


@onnx_op("MatMul")
def matmul_of_inputs(node: NodeView, b: Builder) -> Instruction:
    lhs, rhs = node.input(0), node.input(1)
    if not lhs.shape or not rhs.shape:
        node.shape_error("a scalar has no product as a matrix")
    if lhs.shape[-1] != rhs.shape[max(len(rhs.shape) - 2, 0)]:
        node.shape_error(f"the inner dimensions of {lhs.tensor_type} and {rhs.tensor_type} differ")
    return matmul(b, lhs, rhs)


def matmul(b: Builder, lhs: Instruction, rhs: Instruction) -> Instruction:
    """numpy.matmul, summed in f32 for half precision, as every `dot`.

    A matrix or vector on the right leaves every leading dimension of the left free, so neither side
    is broadcast. Raises HloError when the leading dimensions do not fit.
    """
    if len(rhs.shape) <= 2:
        return b.dot(lhs, rhs, [len(lhs.shape) - 1], [0])
    is_vector = len(lhs.shape) == 1
    rows = b.reshape(lhs, (1, *lhs.shape)) if is_vector else lhs
    batch = shape_of_broadcast(rows.shape[:-2], rhs.shape[:-2])
    if set(rhs.shape[:-2]) == {1}:
        product = b.dot(rows, b.reshape(rhs, rhs.shape[-2:]), [len(rows.shape) - 1], [0])
        product = b.reshape(product, (*batch, rows.shape[-2], rhs.shape[-1]))
    else:
        rows = b.numpy_broadcast(rows, (*batch, *rows.shape[-2:]))
        columns = b.numpy_broadcast(rhs, (*batch, *rhs.shape[-2:]))
        product = b.matmul(rows, columns)
    return b.reshape(product, (*batch, rhs.shape[-1])) if is_vector else product


@onnx_op("Gemm")
def gemm(node: NodeView, b: Builder) -> Instruction:
    return product_and_addend(node, b)


def product_and_addend(node: NodeView, b: Builder) -> Instruction:
    """alpha * A' @ B' + beta * C, where C broadcasts; half precision is rounded once."""
    lhs, rhs, addend = node.input(0), node.input(1), node.optional_input(2)
    if len(lhs.shape) != 2 or len(rhs.shape) != 2:
        node.shape_error("A and B must be matrices")
    lhs_contracting = 0 if node.int("transA", 0) else 1
    rhs_contracting = 1 if node.int("transB", 0) else 0
    if lhs.shape[lhs_contracting] != rhs.shape[rhs_contracting]:
        node.shape_error(f"the inner dimensions of {lhs.tensor_type} and {rhs.tensor_type} differ")
    element, beta = lhs.tensor_type.element, node.float("beta", 1.0)
    product = b.dot(lhs, rhs, [lhs_contracting], [rhs_contracting], element=wide_element(element))
    result = _scaled(b, product, node.float("alpha", 1.0))
    if addend is not None and beta != 0:
        result = b.add(result, b.numpy_broadcast(_scaled(b, widen(b, addend), beta), result.shape))
    return b.convert(result, element)


def _scaled(b: Builder, x: Instruction, factor: float) -> Instruction:
    return x if factor == 1 else b.multiply(x, b.full_like(x, factor))
