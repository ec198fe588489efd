"""cholesky and triangular-solve as loops over columns and rows, all matrices of a batch at once."""

from onnxla.hlo.builder import Builder
from onnxla.hlo.matrices import adjoint, conjugate, counted, line, swapped, with_line
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.linear_algebra import Cholesky, TriangularSolve
from onnxla.hlo.types import S32, TensorType


def expand_cholesky(b: Builder, instruction: Instruction) -> Instruction:
    """Column j is what row j has not explained of column j of the matrix, divided by the root of its head."""
    op, (a,) = instruction.op, instruction.operands
    assert isinstance(op, Cholesky)
    rank, size = len(a.shape), a.shape[-1]
    row, column = rank - 2, rank - 1
    element = a.tensor_type.element
    matrix = a if op.lower else adjoint(b, a)

    def body(s: Builder, j: Instruction, states: list[Instruction], others: list[Instruction]) -> list[Instruction]:
        (factor,) = states
        explained = s.matmul(factor, adjoint(s, line(s, factor, j, row)))
        rest = s.subtract(line(s, others[0], j, column), explained)
        head = line(s, rest, j, row)
        pivot = s.unary("sqrt", s.unary("real", head) if element.is_complex else head)
        pivot = s.convert(pivot, element)
        below = s.divide(rest, s.numpy_broadcast(pivot, rest.shape))
        at = s.iota(TensorType(S32, rest.shape), row)
        here = s.broadcast_scalar(j, rest.shape)
        found = s.select(s.compare(at, here, "GT"), below, s.full_like(rest, 0))
        found = s.select(s.compare(at, here, "EQ"), s.numpy_broadcast(pivot, rest.shape), found)
        return [with_line(s, factor, found, j, column)]

    (factor,) = counted(b, size, [b.full_like(a, 0)], [matrix], body)
    return factor if op.lower else adjoint(b, factor)


def expand_triangular_solve(b: Builder, instruction: Instruction) -> Instruction:
    """Substitution, row after row, from the end of the triangle that has one unknown."""
    op, (a, right) = instruction.op, instruction.operands
    assert isinstance(op, TriangularSolve)
    rank, size = len(a.shape), a.shape[-1]
    row, column = rank - 2, rank - 1
    matrix = conjugate(b, a) if op.transpose_a == "ADJOINT" else a
    # x op(a) = b is op(a)^T x^T = b^T
    transposed = (op.transpose_a != "NO_TRANSPOSE") == op.left_side
    matrix = swapped(b, matrix) if transposed else matrix
    rows = right if op.left_side else swapped(b, right)
    forward = op.lower != transposed
    at, over = (b.iota(TensorType(S32, a.shape), d) for d in (row, column))
    inside = b.compare(over, at, "LT" if forward else "GT")
    strict = b.select(inside, matrix, b.full_like(matrix, 0))

    def body(s: Builder, k: Instruction, states: list[Instruction], others: list[Instruction]) -> list[Instruction]:
        (x,) = states
        i = k if forward else s.subtract(s.constant(size - 1, S32), k)
        total = s.matmul(line(s, others[0], i, row), x)
        found = s.subtract(line(s, others[1], i, row), total)
        if not op.unit_diagonal:
            pivot = line(s, line(s, others[2], i, row), i, column)
            found = s.divide(found, s.numpy_broadcast(pivot, found.shape))
        return [with_line(s, x, found, i, row)]

    others = [strict, rows] if op.unit_diagonal else [strict, rows, matrix]
    (x,) = counted(b, size, [b.full_like(rows, 0)], others, body)
    return x if op.left_side else swapped(b, x)
