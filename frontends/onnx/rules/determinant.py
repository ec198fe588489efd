"""Det: Gaussian elimination with partial pivoting, one unrolled step a row, for a batch of matrices."""

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.ordering import extreme_position
from onnxla.frontends.onnx.rules.precision import widen
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import S32, TensorType

MAX_ROWS = 64


@onnx_op("Det", since=11)
def det(node: NodeView, b: Builder) -> Instruction:
    given = node.input(0)
    if len(given.shape) < 2 or given.shape[-1] != given.shape[-2]:
        node.shape_error(f"{given.tensor_type} is not a batch of square matrices")
    rows, batch = given.shape[-1], given.shape[:-2]
    if rows > MAX_ROWS:
        node.unsupported(f"the determinant of {rows} x {rows} is not unrolled", f"up to {MAX_ROWS} rows are")
    matrix = widen(b, given)
    result = b.full(batch, 1, matrix.tensor_type.element)
    for _ in range(rows):
        pivot, matrix = _eliminate(node, b, matrix)
        result = b.multiply(result, pivot)
    return b.convert(result, given.tensor_type.element)


def _eliminate(node: NodeView, b: Builder, matrix: Instruction) -> tuple[Instruction, Instruction]:
    """The signed pivot, and the smaller matrix [..., m - 1, m - 1] whose determinant is left to find.

    The row with the largest first element trades places with row 0. A pivot of 0 makes the product 0.
    """
    rank, m = len(matrix.shape), matrix.shape[-1]
    row_axis, batch = rank - 2, matrix.shape[:-2]
    each = list(range(rank - 2))

    def block(x: Instruction, first_row: int, first_column: int, rows: int, columns: int) -> Instruction:
        starts = [*(0 for _ in batch), first_row, first_column]
        return b.slice(x, starts, [*batch, first_row + rows, first_column + columns])

    column = b.reshape(block(matrix, 0, 0, m, 1), (*batch, m))
    chosen = extreme_position(node, b, b.unary("abs", column), rank - 2, largest=True)
    is_chosen = b.compare(
        b.iota(TensorType(S32, matrix.shape), row_axis), b.broadcast(chosen, matrix.shape, each), "EQ"
    )
    chosen_row = b.reduce_by("add", b.select(is_chosen, matrix, b.full_like(matrix, 0)), [row_axis])
    first_row = b.broadcast(b.reshape(block(matrix, 0, 0, 1, m), (*batch, m)), matrix.shape, [*each, rank - 1])
    others = block(b.select(is_chosen, first_row, matrix), 1, 0, m - 1, m)
    value = b.reshape(b.slice(chosen_row, [0] * (rank - 1), [*batch, 1]), batch)
    zero = b.full_like(value, 0)
    sign = b.select(b.compare(chosen, b.full_like(chosen, 0), "EQ"), b.full_like(value, 1), b.full_like(value, -1))
    divisor = b.select(b.compare(value, zero, "EQ"), b.full_like(value, 1), value)
    heads = b.reshape(block(others, 0, 0, m - 1, 1), (*batch, m - 1))
    factors = b.divide(heads, b.broadcast(divisor, heads.shape, each))
    tail = b.slice(chosen_row, [*(0 for _ in batch), 1], [*batch, m])
    rest = block(others, 0, 1, m - 1, m - 1)
    product = b.multiply(
        b.broadcast(factors, rest.shape, [*each, row_axis]), b.broadcast(tail, rest.shape, [*each, rank - 1])
    )
    return b.multiply(value, sign), b.subtract(rest, product)
