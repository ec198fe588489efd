"""onnxruntime's quantised operators of ordered matrices (com.microsoft.QOrdered..., QuantizeWithOrder).

Numbers are s8 without zero points. An order is how a matrix lies in memory: 1 by rows, 0 by columns; a tensor
of the second kind keeps its declared shape, and its elements are those of the transposed matrix by rows. The
tiled orders 2 to 4 are made for one device's instructions, and refused.
"""

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.attention_core import heads_first, heads_last, sees_past
from onnxla.frontends.onnx.rules.axes import normal_axis
from onnxla.frontends.onnx.rules.contrib_attention import visible_keys
from onnxla.frontends.onnx.rules.normalization import centred, inverse_deviation, spread_over
from onnxla.frontends.onnx.rules.quantized_linear import integer_matmul
from onnxla.frontends.onnx.rules.quantized_values import dequantize, quantize, round_to, scalar
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import F32, S8, S32

MICROSOFT = "com.microsoft"
BY_COLUMNS, BY_ROWS = 0, 1
ORDERS = ("by columns", "by rows", "COL32", "COL4_4R2_8C", "COL32_2R_4R4")


def _order(node: NodeView, name: str, wanted: tuple[int, ...] = (BY_ROWS,), default: int | None = None) -> int:
    """The attribute, which must be one of `wanted`."""
    order: int = node.int(name) if default is None else node.int(name, default)
    if order not in wanted:
        kind = ORDERS[order] if 0 <= order < len(ORDERS) else str(order)
        node.unsupported(
            f"{name}={order} ({kind}) is not known", " and ".join(f"{n} ({ORDERS[n]})" for n in wanted) + " can be read"
        )
    return order


def _by_rows(b: Builder, x: Instruction, order: int) -> Instruction:
    """The matrix that lies in the memory of `x` in `order`, as one that lies by rows."""
    if order == BY_ROWS or len(x.shape) < 2:
        return x
    *lead, rows, columns = x.shape
    rank = len(x.shape)
    return b.transpose(b.reshape(x, (*lead, columns, rows)), [*range(rank - 2), rank - 1, rank - 2])


def _in_order(b: Builder, x: Instruction, order: int) -> Instruction:
    """The inverse of `_by_rows`."""
    if order == BY_ROWS or len(x.shape) < 2:
        return x
    rank = len(x.shape)
    return b.reshape(b.transpose(x, [*range(rank - 2), rank - 1, rank - 2]), x.shape)


@onnx_op("QuantizeWithOrder", domain=MICROSOFT)
def quantize_with_order(node: NodeView, b: Builder) -> Instruction:
    known = (BY_COLUMNS, BY_ROWS)
    x = _by_rows(b, node.input(0), _order(node, "order_input", known))
    q = quantize(b, b.convert(x, F32), scalar(node, b, 1), None, S8)
    return _in_order(b, q, _order(node, "order_output", known))


@onnx_op("DequantizeWithOrder", domain=MICROSOFT)
def dequantize_with_order(node: NodeView, b: Builder) -> Instruction:
    known, element = (BY_COLUMNS, BY_ROWS), node.element("to")
    x = _by_rows(b, node.input(0), _order(node, "order_input", known))
    value = b.convert(dequantize(b, x, scalar(node, b, 1), None), element)
    return _in_order(b, value, _order(node, "order_output", known))


@onnx_op("QOrderedGelu", domain=MICROSOFT)
def qordered_gelu(node: NodeView, b: Builder) -> Instruction:
    """x / 2 * (1 + erf(x / sqrt(2))); element by element, so in whatever order X and Y share."""
    if node.int("order_X", BY_ROWS) != node.int("order_Y", node.int("order_X", BY_ROWS)):
        node.unsupported("X and Y in different orders are not known")
    x = dequantize(b, node.input(0), scalar(node, b, 1), None)
    half, one = b.full_like(x, 0.5), b.full_like(x, 1)
    inside = b.add(one, b.unary("erf", b.multiply(x, b.full_like(x, 0.5**0.5))))
    return quantize(b, b.multiply(b.multiply(x, half), inside), scalar(node, b, 2), None, S8)


@onnx_op("QOrderedLayerNormalization", domain=MICROSOFT)
def qordered_layer_normalization(node: NodeView, b: Builder) -> Instruction:
    for name in ("order_X", "order_Y"):
        _order(node, name, default=BY_ROWS)
    x = dequantize(b, node.input(0), scalar(node, b, 1), None)
    rank = len(x.shape)
    axes = list(range(normal_axis(node, node.int("axis", -1), rank), rank))
    _, variance, difference = centred(b, x, axes)
    deviation = inverse_deviation(b, variance, node.float("epsilon", 1e-5))
    y = b.multiply(difference, spread_over(b, deviation, x, axes))
    y = b.multiply(y, b.numpy_broadcast(b.convert(node.input(2), F32), x.shape))
    bias = node.optional_input(3)
    if bias is not None:
        y = b.add(y, b.numpy_broadcast(b.convert(bias, F32), x.shape))
    return quantize(b, y, scalar(node, b, 4), None, S8)


def _column_scale(node: NodeView, b: Builder, i: int, columns: int) -> Instruction:
    """A scale of weights: one number, or one for each column."""
    scale = node.input(i)
    if scale.tensor_type.size != 1 and scale.shape != (columns,):
        node.shape_error(f"the scale {scale.tensor_type} is neither one number nor one for each of {columns} columns")
    return b.reshape(scale, ()) if scale.tensor_type.size == 1 else scale


def _stretched(b: Builder, value: Instruction, like: Instruction) -> Instruction:
    """One number, or one for each column, at the shape of `like`."""
    return b.broadcast(value, like.shape, [len(like.shape) - 1] if value.shape else [])


@onnx_op("QOrderedMatMul", domain=MICROSOFT)
def qordered_matmul(node: NodeView, b: Builder) -> Instruction:
    """scale_A * scale_B / scale_Y * (A B) + bias + scale_C / scale_Y * C, rounded; the bias is in units of Y."""
    for name in ("order_A", "order_Y"):
        _order(node, name)
    x, weights = node.input(0), _by_rows(b, node.input(2), _order(node, "order_B", (BY_COLUMNS,)))
    if len(x.shape) not in (2, 3) or len(weights.shape) not in (2, 3) or x.shape[-1] != weights.shape[-2]:
        node.shape_error(f"the inner dimensions of {x.tensor_type} and {weights.tensor_type} differ")
    if len(weights.shape) == 3 and weights.shape[0] == 1:
        weights = b.reshape(weights, weights.shape[1:])
    sums = integer_matmul(b, x, weights, None, None)
    scale_y = scalar(node, b, 4)
    factor = b.multiply(scalar(node, b, 1), b.constant(1, F32))
    columns = _column_scale(node, b, 3, weights.shape[-1])
    alpha = b.multiply(b.broadcast_scalar(factor, columns.shape), columns)
    alpha = b.divide(alpha, b.broadcast_scalar(scale_y, alpha.shape))
    y = b.multiply(b.convert(sums, F32), _stretched(b, alpha, sums))
    if node.has_input(5):
        y = b.add(y, _stretched(b, node.input(5), y))
    if node.has_input(6):
        beta = b.divide(scalar(node, b, 7), scale_y)
        added = b.convert(node.input(6), F32)
        y = b.add(y, b.multiply(b.numpy_broadcast(added, y.shape), b.broadcast_scalar(beta, y.shape)))
    return round_to(b, y, None, S8)


Q_WEIGHT, Q_WEIGHT_SCALE, Q_BIAS, SCORE_SCALE, SOFTMAX_SCALE, OUTPUT_SCALE, MASK, PAST, BIAS = (
    5,
    8,
    11,
    14,
    15,
    16,
    17,
    18,
    19,
)


@onnx_op("QOrderedAttention", domain=MICROSOFT)
def qordered_attention(node: NodeView, b: Builder) -> Instruction:
    """Queries, keys, values, scores, probabilities and output are each rounded to s8 with a scale of their own."""
    _order(node, "order_input"), _order(node, "order_output"), _order(node, "order_weight", (BY_COLUMNS,))
    for i, name in ((PAST, "past"), (BIAS, "attention_bias")):
        if node.has_input(i):
            node.unsupported(f"the input {name} is not known")
    heads = node.int("num_heads")
    q, k, v = (heads_first(b, _projected(node, b, i), heads) for i in range(3))
    batch, _, length, size = q.shape
    score_scale, softmax_scale = scalar(node, b, SCORE_SCALE), scalar(node, b, SOFTMAX_SCALE)
    product = b.multiply(scalar(node, b, 2), scalar(node, b, 3))
    scores = _requantized(b, b.dot(q, k, [3], [3], [0, 1], [0, 1], S32), product, score_scale)
    wide = b.multiply(b.convert(scores, F32), b.broadcast_scalar(score_scale, scores.shape))
    wide = b.multiply(wide, b.full_like(wide, size**-0.5))
    seen = sees_past(b, length, length, 0, left=None, right=0 if node.int("unidirectional", 0) else None)
    if node.has_input(MASK):
        visible = visible_keys(node, b, node.input(MASK), batch, length, length)
        shape = (batch, 1, length, length)
        seen = b.and_(b.numpy_broadcast(seen, shape), b.numpy_broadcast(visible, shape))
    seen = b.numpy_broadcast(seen, wide.shape)
    masked = b.select(seen, wide, b.full_like(wide, -1e30))
    rows = [0, 1, 2]
    shifted = b.subtract(masked, b.broadcast(b.reduce_by("maximum", masked, [3]), masked.shape, rows))
    exponentials = b.select(seen, b.exponential(shifted), b.full_like(wide, 0))
    # A query that sees no key has probabilities of zero.
    total = b.reduce_by("add", exponentials, [3])
    total = b.maximum(total, b.full_like(total, 1e-30))
    probabilities = b.divide(exponentials, b.broadcast(total, exponentials.shape, rows))
    probabilities = quantize(b, probabilities, softmax_scale, None, S8)
    output = b.dot(probabilities, v, [3], [2], [0, 1], [0, 1], S32)
    return heads_last(
        b, _requantized(b, output, b.multiply(softmax_scale, scalar(node, b, 4)), scalar(node, b, OUTPUT_SCALE))
    )


def _requantized(b: Builder, sums: Instruction, scale: Instruction, into: Instruction) -> Instruction:
    factor = b.divide(scale, into)
    return round_to(b, b.multiply(b.convert(sums, F32), b.broadcast_scalar(factor, sums.shape)), None, S8)


def _projected(node: NodeView, b: Builder, i: int) -> Instruction:
    """Queries, keys or values (0, 1, 2) [batch, length, hidden], in s8 with the scale of input 2 + i."""
    weights = _by_rows(b, node.input(Q_WEIGHT + i), BY_COLUMNS)
    sums = integer_matmul(b, node.input(0), weights, None, None)
    columns = _column_scale(node, b, Q_WEIGHT_SCALE + i, weights.shape[1])
    scale = scalar(node, b, 2 + i)
    ratio = b.divide(scalar(node, b, 1), scale)
    alpha = b.multiply(columns, b.broadcast_scalar(ratio, columns.shape))
    bias = node.input(Q_BIAS + i)
    bias = b.divide(bias, b.broadcast_scalar(scale, bias.shape))
    y = b.multiply(b.convert(sums, F32), _stretched(b, alpha, sums))
    return round_to(b, b.add(y, _stretched(b, bias, y)), None, S8)
