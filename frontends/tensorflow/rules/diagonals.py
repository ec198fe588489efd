"""Diagonals and bands of matrices, which are the last two dimensions."""

from collections.abc import Sequence

from onnxla.frontends.tensorflow.node_view import NodeView
from onnxla.frontends.tensorflow.registry import tf_op
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import S64, TensorType


@tf_op("MatrixBandPart")
def matrix_band_part(node: NodeView, b: Builder) -> Instruction:
    """Zero but within `lower` diagonals below and `upper` above the main one; a negative number is all of them."""
    x = node.input(0)
    distance = _column_minus_row(b, x.shape)
    lower, upper = (b.broadcast_scalar(b.reshape(b.convert(node.input(i), S64), ()), x.shape) for i in (1, 2))
    zero = b.full_like(distance, 0)
    below = b.or_(b.compare(lower, zero, "LT"), b.compare(b.negate(distance), lower, "LE"))
    above = b.or_(b.compare(upper, zero, "LT"), b.compare(distance, upper, "LE"))
    return b.select(b.and_(below, above), x, b.full_like(x, 0))


def _column_minus_row(b: Builder, shape: Sequence[int]) -> Instruction:
    type = TensorType(S64, tuple(shape))
    return b.subtract(b.iota(type, type.rank - 1), b.iota(type, type.rank - 2))


@tf_op("MatrixDiag", "MatrixDiagV2", "MatrixDiagV3")
def matrix_diag(node: NodeView, b: Builder) -> Instruction:
    """Matrices with a vector on one diagonal, and padding elsewhere."""
    vectors, offset, rows, columns = node.input(0), 0, -1, -1
    padding = b.constant(0, vectors.tensor_type.element)
    if node.input_count > 1:
        offset, rows, columns = _one_diagonal(node, 1), node.constant_int(2), node.constant_int(3)
        padding = b.reshape(node.input(4), ())
    length = vectors.shape[-1]
    least_rows, least_columns = length + max(-offset, 0), length + max(offset, 0)
    if rows == columns == -1:
        rows = columns = max(least_rows, least_columns)
    rows, columns = least_rows if rows == -1 else rows, least_columns if columns == -1 else columns
    shape = (*vectors.shape[:-1], rows, columns)
    lead = len(shape) - 2
    # The diagonal's k-th element stands in row k (below the main diagonal: column k).
    axis = lead if offset >= 0 else lead + 1
    fitted = _fitted(b, vectors, shape[axis])
    spread = b.broadcast(fitted, shape, [*range(lead), axis])
    distance = _column_minus_row(b, shape)
    on = b.compare(distance, b.full_like(distance, offset), "EQ")
    return b.select(on, spread, b.broadcast_scalar(padding, shape))


def _one_diagonal(node: NodeView, operand: int) -> int:
    band = set(node.constant_ints(operand))
    if len(band) != 1:
        node.unsupported(f"a band of diagonals {sorted(band)}", "a single diagonal is supported")
    return band.pop()


def _fitted(b: Builder, vectors: Instruction, length: int) -> Instruction:
    """Vectors cut or filled with zeros to `length`."""
    own = vectors.shape[-1]
    if own == length:
        return vectors
    lead = [0] * (len(vectors.shape) - 1)
    return b.pad(vectors, b.constant(0, vectors.tensor_type.element), [*lead, 0], [*lead, length - own])


@tf_op("MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3")
def matrix_diag_part(node: NodeView, b: Builder) -> Instruction:
    """One diagonal of each matrix."""
    x = node.input(0)
    offset = _one_diagonal(node, 1) if node.input_count > 1 else 0
    rows, columns = x.shape[-2:]
    length = min(rows + min(offset, 0), columns - max(offset, 0))
    if length < 1:
        node.shape_error(f"{x.tensor_type} has no diagonal {offset}")
    lead = len(x.shape) - 2
    starts = [*[0] * lead, max(-offset, 0), max(offset, 0)]
    square = b.slice(x, starts, [*x.shape[:-2], starts[-2] + length, starts[-1] + length])
    distance = _column_minus_row(b, square.shape)
    on = b.compare(distance, b.full_like(distance, 0), "EQ")
    return b.reduce_by("add", b.select(on, square, b.full_like(square, 0)), [lead + 1])


@tf_op("MatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3")
def matrix_set_diag(node: NodeView, b: Builder) -> Instruction:
    """The matrices with one diagonal replaced."""
    x, vectors = node.input(0), node.input(1)
    offset = _one_diagonal(node, 2) if node.input_count > 2 else 0
    lead = len(x.shape) - 2
    axis = lead if offset >= 0 else lead + 1
    spread = b.broadcast(_fitted(b, vectors, x.shape[axis]), x.shape, [*range(lead), axis])
    distance = _column_minus_row(b, x.shape)
    return b.select(b.compare(distance, b.full_like(distance, offset), "EQ"), spread, x)


@tf_op("Diag")
def diag(node: NodeView, b: Builder) -> Instruction:
    """A tensor on the diagonal of one of twice its rank."""
    x = node.input(0)
    count = x.tensor_type.size
    flat = b.reshape(x, (count,))
    distance = _column_minus_row(b, (count, count))
    spread = b.broadcast(flat, (count, count), [0])
    on = b.compare(distance, b.full_like(distance, 0), "EQ")
    return b.reshape(b.select(on, spread, b.full_like(spread, 0)), (*x.shape, *x.shape))
