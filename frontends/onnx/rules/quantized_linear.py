"""Products of quantised matrices: MatMulInteger, QLinearMatMul and onnxruntime's relatives of them.

Operands stay in s8 or u8 and sums are in s32, so results are exact. Zero points are taken off
afterwards: sum((a - p)(b - q)) = sum(ab) - p sum(b) - q sum(a) + K p q, modulo 2^32 like the sums.
"""

from collections.abc import Sequence

from onnxla.frontends.onnx.broadcasting import shape_of_broadcast
from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.quantized_values import (
    dynamic_quantize,
    is_known_zero,
    requantize,
    scalar,
)
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.shape import Broadcast, Reshape, Transpose
from onnxla.hlo.ops.structural import Constant
from onnxla.hlo.types import F32, S8, S32, U8, Shape


def integer_matmul(
    b: Builder,
    lhs: Instruction,
    rhs: Instruction,
    lhs_zero: Instruction | None,
    rhs_zero: Instruction | None,
) -> Instruction:
    """numpy.matmul of (lhs - lhs_zero) and (rhs - rhs_zero) in s32.

    A zero point of lhs stretches over [..., rows, 1], one of rhs over [..., 1, columns]; None is zero.
    """
    if rhs_zero is not None:
        rhs, rhs_zero = _signed(b, rhs, rhs_zero)
    if len(rhs.shape) == 2:
        sums = b.dot(lhs, rhs, [len(lhs.shape) - 1], [0], element=S32)
    else:
        batch = shape_of_broadcast(lhs.shape[:-2], rhs.shape[:-2])
        lhs = b.numpy_broadcast(lhs, (*batch, *lhs.shape[-2:]))
        rhs = b.numpy_broadcast(rhs, (*batch, *rhs.shape[-2:]))
        sums = b.matmul(lhs, rhs, S32)
    shape = sums.shape
    if lhs_zero is not None:
        columns = _sum_of(b, rhs, len(rhs.shape) - 2)
        sums = b.subtract(sums, _product(b, lhs_zero, columns, shape))
    if rhs_zero is not None:
        rows = _sum_of(b, lhs, len(lhs.shape) - 1)
        sums = b.subtract(sums, _product(b, rows, rhs_zero, shape))
    if lhs_zero is not None and rhs_zero is not None:
        depth = b.full((), rhs.shape[-2], S32)
        both = _product(b, lhs_zero, rhs_zero, shape)
        sums = b.add(sums, b.multiply(b.broadcast_scalar(depth, shape), both))
    return sums


def _signed(b: Builder, weights: Instruction, zero: Instruction) -> tuple[Instruction, Instruction | None]:
    """Constant u8 and their zero point, both less 128: bytes with a sign are what CPUs multiply with others."""
    source = weights
    while isinstance(source.op, Transpose | Reshape | Broadcast):
        (source,) = source.operands
    if weights.tensor_type.element is not U8 or not isinstance(source.op, Constant):
        return weights, zero
    moved = [b.add(b.convert(v, S32), b.full(v.shape, -128, S32)) for v in (weights, zero)]
    centred = isinstance(zero.op, Constant) and bool((zero.op.literal.array == 128).all())
    return b.convert(moved[0], S8), None if centred else moved[1]


def _sum_of(b: Builder, value: Instruction, dimension: int) -> Instruction:
    """The sums along a dimension, which stays with size 1."""
    total = b.reduce_by("add", b.convert(value, S32), [dimension])
    return b.reshape(total, (*value.shape[:dimension], 1, *value.shape[dimension + 1 :]))


def _product(b: Builder, x: Instruction, y: Instruction, shape: Shape) -> Instruction:
    """x * y in s32, stretched to `shape` as late as possible."""
    common = shape_of_broadcast(x.shape, y.shape)
    x, y = (b.numpy_broadcast(b.convert(v, S32), common) for v in (x, y))
    return b.numpy_broadcast(b.multiply(x, y), shape)


def lhs_parameter(node: NodeView, b: Builder, i: int, lhs: Instruction) -> Instruction:
    """A scale or zero point of the left operand: one number, one a row [rows], or [..., rows, 1]."""
    value = node.input(i)
    if value.tensor_type.size == 1:
        return b.reshape(value, ())
    if len(value.shape) == 1 and value.shape == lhs.shape[-2:-1]:
        return b.reshape(value, (*value.shape, 1))
    if value.shape[-1:] == (1,) and len(value.shape) <= len(lhs.shape):
        return value
    node.shape_error(f"input {node.input_name(i)} fits neither the rows of {lhs.tensor_type} nor one number")


def rhs_parameter(node: NodeView, b: Builder, i: int, rhs: Instruction) -> Instruction:
    """A scale or zero point of the right operand: one number, one a column [columns], or [..., 1, columns]."""
    value = node.input(i)
    if value.tensor_type.size == 1:
        return b.reshape(value, ())
    if value.shape == rhs.shape[-1:] or value.shape[-2:] == (1, rhs.shape[-1]):
        return value
    node.shape_error(f"input {node.input_name(i)} fits neither the columns of {rhs.tensor_type} nor one number")


def _checked_operands(node: NodeView, lhs: int, rhs: int) -> tuple[Instruction, Instruction]:
    left, right = node.input(lhs), node.input(rhs)
    for value in (left, right):
        if not value.tensor_type.element.is_integer or value.tensor_type.element.bits != 8:
            node.unsupported(f"products of {value.tensor_type.element} are not known", "s8 and u8 are")
    if not left.shape or len(right.shape) < 2 or left.shape[-1] != right.shape[-2]:
        node.shape_error(f"the inner dimensions of {left.tensor_type} and {right.tensor_type} differ")
    return left, right


def _zero_of_lhs(node: NodeView, b: Builder, i: int, lhs: Instruction) -> Instruction | None:
    return None if is_known_zero(node, i) else lhs_parameter(node, b, i, lhs)


def _zero_of_rhs(node: NodeView, b: Builder, i: int, rhs: Instruction) -> Instruction | None:
    return None if is_known_zero(node, i) else rhs_parameter(node, b, i, rhs)


@onnx_op("MatMulInteger", since=10)
def matmul_integer(node: NodeView, b: Builder) -> Instruction:
    lhs, rhs = _checked_operands(node, 0, 1)
    return integer_matmul(b, lhs, rhs, _zero_of_lhs(node, b, 2, lhs), _zero_of_rhs(node, b, 3, rhs))


def scale_product(b: Builder, scales: Sequence[Instruction], shape: Shape) -> Instruction:
    """The product of scales in f32, stretched to `shape`."""
    first, *others = (b.convert(s, F32) for s in scales)
    for other in others:
        common = shape_of_broadcast(first.shape, other.shape)
        first = b.multiply(b.numpy_broadcast(first, common), b.numpy_broadcast(other, common))
    return b.numpy_broadcast(first, shape)


@onnx_op("QLinearMatMul", since=10)
def qlinear_matmul(node: NodeView, b: Builder) -> Instruction:
    lhs, rhs = _checked_operands(node, 0, 3)
    sums = integer_matmul(b, lhs, rhs, _zero_of_lhs(node, b, 2, lhs), _zero_of_rhs(node, b, 5, rhs))
    scales = [lhs_parameter(node, b, 1, lhs), rhs_parameter(node, b, 4, rhs)]
    return _quantized_result(node, b, sums, scales, 6, 7)


def _quantized_result(
    node: NodeView, b: Builder, sums: Instruction, scales: Sequence[Instruction], scale: int, zero_point: int
) -> Instruction:
    """Sums of products at the product of `scales`, brought to the output's scale and zero point (inputs by number)."""
    factor = scale_product(b, scales, shape_of_broadcast(*(s.shape for s in scales)))
    out = b.broadcast_scalar(b.convert(scalar(node, b, scale), F32), factor.shape)
    factor = b.numpy_broadcast(b.divide(factor, out), sums.shape)
    element = node.input(zero_point).tensor_type.element
    return requantize(b, sums, factor, scalar(node, b, zero_point), element)


@onnx_op("QGemm", domain="com.microsoft")
def qgemm(node: NodeView, b: Builder) -> Instruction:
    """alpha * A' B', the bias added to the sums, whose scale it has. Quantised where y_scale is given."""
    lhs, rhs = node.input(0), node.input(3)
    lhs = b.transpose(lhs, [1, 0]) if node.int("transA", 0) else lhs
    rhs = b.transpose(rhs, [1, 0]) if node.int("transB", 0) else rhs
    sums = integer_matmul(b, lhs, rhs, _zero_of_lhs(node, b, 2, lhs), _zero_of_rhs(node, b, 5, rhs))
    bias = node.optional_input(6)
    if bias is not None:
        sums = b.add(sums, b.numpy_broadcast(bias, sums.shape))
    scales = [scalar(node, b, 1), rhs_parameter(node, b, 4, rhs)]
    alpha = node.float("alpha", 1.0)
    if alpha != 1:
        scales.insert(0, b.constant(alpha, F32))
    if node.has_input(7):
        return _quantized_result(node, b, sums, scales, 7, 8)
    return b.multiply(b.convert(sums, F32), scale_product(b, scales, sums.shape))


@onnx_op("MatMulIntegerToFloat", domain="com.microsoft")
def matmul_integer_to_float(node: NodeView, b: Builder) -> Instruction:
    lhs, rhs = _checked_operands(node, 0, 1)
    sums = integer_matmul(b, lhs, rhs, _zero_of_lhs(node, b, 4, lhs), _zero_of_rhs(node, b, 5, rhs))
    scales = [lhs_parameter(node, b, 2, lhs), rhs_parameter(node, b, 3, rhs)]
    return _float_result(node, b, sums, scales, 6)


@onnx_op("DynamicQuantizeMatMul", domain="com.microsoft")
def dynamic_quantize_matmul(node: NodeView, b: Builder) -> Instruction:
    """The left operand is quantised over its own range at run time."""
    rhs = node.input(1)
    lhs, scale, zero_point = dynamic_quantize(b, b.convert(node.input(0), F32))
    if not lhs.shape or len(rhs.shape) < 2 or lhs.shape[-1] != rhs.shape[-2]:
        node.shape_error("the inner dimensions differ")
    sums = integer_matmul(b, lhs, rhs, zero_point, _zero_of_rhs(node, b, 3, rhs))
    return _float_result(node, b, sums, [scale, rhs_parameter(node, b, 2, rhs)], 4)


def _float_result(
    node: NodeView, b: Builder, sums: Instruction, scales: Sequence[Instruction], bias: int
) -> Instruction:
    """sums * scales + bias (input by number), in the type of the scales that the node was given."""
    result = b.multiply(b.convert(sums, F32), scale_product(b, scales, sums.shape))
    addend = node.optional_input(bias)
    if addend is not None:
        result = b.add(result, b.numpy_broadcast(b.convert(addend, F32), sums.shape))
    return b.convert(result, scales[-1].tensor_type.element)
