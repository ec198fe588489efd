"""onnxruntime's fusions of products and convolutions with what follows, and its channels-last operators."""

from collections.abc import Sequence
from dataclasses import dataclass

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.convolution import convolve
from onnxla.frontends.onnx.rules.linear import matmul, product_and_addend
from onnxla.frontends.onnx.rules.pooling import max_over_windows
from onnxla.frontends.onnx.rules.precision import wide_element
from onnxla.frontends.onnx.rules.quantized_convolution import channels_first, channels_last
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction

MICROSOFT = "com.microsoft"


def activated(node: NodeView, b: Builder, x: Instruction, parameters: Sequence[float]) -> Instruction:
    """`x` after the attribute `activation`; `parameters` are alpha, beta or low, high, as the function needs."""
    element = x.tensor_type.element

    def parameter(i: int, default: float) -> Instruction:
        return b.full_like(x, parameters[i] if i < len(parameters) else default)

    match node.string("activation", ""):
        case "":
            return x
        case "Relu":
            return b.maximum(x, b.full_like(x, 0))
        case "Tanh":
            return b.unary("tanh", x)
        case "Sigmoid":
            return b.unary("logistic", x)
        case "LeakyRelu":
            return b.select(b.compare(x, b.full_like(x, 0), "GE"), x, b.multiply(x, parameter(0, 0.01)))
        case "Clip":
            return b.minimum(b.maximum(x, parameter(0, float("-inf"))), parameter(1, float("inf")))
        case "HardSigmoid":
            line = b.add(b.multiply(x, parameter(0, 0.2)), parameter(1, 0.5))
            return b.clamp(b.constant(0, element), line, b.constant(1, element))
        case other:
            node.unsupported(f"activation={other!r} is not known")


@onnx_op("FusedConv", domain=MICROSOFT)
def fused_conv(node: NodeView, b: Builder) -> Instruction:
    """activation(conv(x, w) + bias + z)"""
    y = convolve(node, b, node.input(0))
    z = node.optional_input(3)
    return activated(node, b, y if z is None else b.add(y, z), node.floats("activation_params", ()))


@onnx_op("NhwcConv", domain=MICROSOFT)
@onnx_op("NhwcFusedConv", domain=MICROSOFT)
def channels_last_conv(node: NodeView, b: Builder) -> Instruction:
    """As FusedConv with input, z and output channels last. The weights are channels first as ever."""
    y = channels_last(b, convolve(node, b, channels_first(b, node.input(0))))
    z = node.optional_input(3)
    return activated(node, b, y if z is None else b.add(y, z), node.floats("activation_params", ()))


@onnx_op("NhwcMaxPool", domain=MICROSOFT)
def channels_last_max_pool(node: NodeView, b: Builder) -> Instruction:
    return channels_last(b, max_over_windows(node, b, channels_first(b, node.input(0)))[0])


@onnx_op("FusedGemm", domain=MICROSOFT)
def fused_gemm(node: NodeView, b: Builder) -> Instruction:
    return activated(node, b, product_and_addend(node, b), _parameters(node))


def _parameters(node: NodeView) -> list[float]:
    names = ("activation_alpha", "activation_beta", "activation_gamma")
    return [node.float(name) for name in names if node.has(name)]


@onnx_op("FusedMatMul", domain=MICROSOFT)
@onnx_op("TransposeMatMul", domain=MICROSOFT)
def fused_matmul(node: NodeView, b: Builder) -> Instruction:
    return _product(node, b)


@onnx_op("FusedMatMulActivation", domain=MICROSOFT)
def fused_matmul_activation(node: NodeView, b: Builder) -> Instruction:
    return activated(node, b, _product(node, b), _parameters(node))


@dataclass(frozen=True)
class _Matrices:
    """Which dimensions of an operand of a product are batch, which the rows and which the columns."""

    batch: tuple[int, ...]
    row: int
    column: int


def _matrices(node: NodeView, rank: int, side: str) -> _Matrices:
    """By the attributes transA and transBatchA (or B), which a vector ignores."""
    if rank == 1:
        return _Matrices((), 0, 0)
    row, column, batch = rank - 2, rank - 1, tuple(range(rank - 2))
    if node.int(f"transBatch{side}", 0):
        row, batch = 0, tuple(range(1, rank - 1))
    return _Matrices(batch, column, row) if node.int(f"trans{side}", 0) else _Matrices(batch, row, column)


def _product(node: NodeView, b: Builder) -> Instruction:
    """alpha * A' B', where each side may have rows and columns swapped, or its first dimension for rows.

    Where no batch dimension has to stretch, the operands are contracted where they lie.
    """
    lhs, rhs = node.input(0), node.input(1)
    if not lhs.shape or not rhs.shape:
        node.shape_error("a scalar has no product as a matrix")
    left, right = _matrices(node, len(lhs.shape), "A"), _matrices(node, len(rhs.shape), "B")
    element, alpha = lhs.tensor_type.element, node.float("alpha", 1.0)
    if lhs.shape[left.column] != rhs.shape[right.row]:
        node.shape_error(f"the inner dimensions of {lhs.tensor_type} and {rhs.tensor_type} differ")
    if [lhs.shape[d] for d in left.batch] == [rhs.shape[d] for d in right.batch]:
        product = b.dot(lhs, rhs, [left.column], [right.row], left.batch, right.batch, wide_element(element))
        product = b.convert(product, element)
    else:
        lhs, rhs = _in_order(b, lhs, left), _in_order(b, rhs, right)
        product = matmul(b, lhs, rhs)
    return product if alpha == 1 else b.multiply(product, b.full_like(product, alpha))


def _in_order(b: Builder, value: Instruction, matrices: _Matrices) -> Instruction:
    """[batch..., rows, columns]; a vector as it is."""
    if len(value.shape) == 1:
        return value
    return b.transpose(value, [*matrices.batch, matrices.row, matrices.column])
