"""cholesky and triangular-solve as loops over columns and rows, all matrices of a batch at once."""

from collections.abc import Callable

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.linear_algebra import Cholesky, TriangularSolve
from onnxla.hlo.types import S32, TensorType, TupleType

Body = Callable[[Builder, Instruction, Instruction, list[Instruction]], Instruction]
"""(builder, counter, state, constants of the loop) -> next state."""


def _counted(b: Builder, count: int, state: Instruction, others: list[Instruction], body: Body) -> Instruction:
    """`state` after `count` rounds; `others` do not change."""
    init = b.tuple(b.constant(0, S32), state, *others)
    assert isinstance(init.type, TupleType)
    test = Builder("counted_condition", source=b.source)
    at = test.get_tuple_element(test.parameter(init.type), 0)
    condition = test.build(test.compare(at, test.constant(count, S32), "LT"))
    step = Builder("counted_body", source=b.source)
    carried = step.parameter(init.type)
    at, value, *rest = (step.get_tuple_element(carried, k) for k in range(2 + len(others)))
    following = body(step, at, value, rest)
    done = step.build(step.tuple(step.add(at, step.constant(1, S32)), following, *rest))
    return b.get_tuple_element(b.while_(init, condition, done), 1)


def _swapped(b: Builder, x: Instruction) -> Instruction:
    rank = len(x.shape)
    return b.transpose(x, (*range(rank - 2), rank - 1, rank - 2))


def _conjugate(b: Builder, x: Instruction) -> Instruction:
    if not x.tensor_type.element.is_complex:
        return x
    return b.binary("complex", b.unary("real", x), b.negate(b.unary("imag", x)))


def _line(b: Builder, matrix: Instruction, at: Instruction, dimension: int) -> Instruction:
    """Row (dimension rank - 2) or column (rank - 1) `at`, with that dimension left at size 1."""
    zero = b.constant(0, S32)
    starts = [at if d == dimension else zero for d in range(len(matrix.shape))]
    return b.dynamic_slice(matrix, starts, matrix.tensor_type.with_size(dimension, 1).shape)


def _with_line(b: Builder, matrix: Instruction, line: Instruction, at: Instruction, dimension: int) -> Instruction:
    zero = b.constant(0, S32)
    return b.dynamic_update_slice(matrix, line, [at if d == dimension else zero for d in range(len(matrix.shape))])


def _product(b: Builder, x: Instruction, y: Instruction) -> Instruction:
    """The matrix product of the last two dimensions."""
    return b.matmul(x, y)


def expand_cholesky(b: Builder, instruction: Instruction) -> Instruction:
    """Column j is what row j has not explained of column j of the matrix, divided by the root of its head."""
    op, (a,) = instruction.op, instruction.operands
    assert isinstance(op, Cholesky)
    rank, size = len(a.shape), a.shape[-1]
    row, column = rank - 2, rank - 1
    element = a.tensor_type.element
    matrix = a if op.lower else _conjugate(b, _swapped(b, a))

    def body(s: Builder, j: Instruction, factor: Instruction, others: list[Instruction]) -> Instruction:
        explained = _product(s, factor, _swapped(s, _conjugate(s, _line(s, factor, j, row))))
        rest = s.subtract(_line(s, others[0], j, column), explained)
        head = _line(s, rest, j, row)
        pivot = s.unary("sqrt", s.unary("real", head) if element.is_complex else head)
        pivot = s.convert(pivot, element)
        below = s.divide(rest, s.numpy_broadcast(pivot, rest.shape))
        at = s.iota(TensorType(S32, rest.shape), row)
        here = s.broadcast_scalar(j, rest.shape)
        line = s.select(s.compare(at, here, "GT"), below, s.full_like(rest, 0))
        line = s.select(s.compare(at, here, "EQ"), s.numpy_broadcast(pivot, rest.shape), line)
        return _with_line(s, factor, line, j, column)

    factor = _counted(b, size, b.full_like(a, 0), [matrix], body)
    return factor if op.lower else _conjugate(b, _swapped(b, factor))


def expand_triangular_solve(b: Builder, instruction: Instruction) -> Instruction:
    """Substitution, row after row, from the end of the triangle that has one unknown."""
    op, (a, right) = instruction.op, instruction.operands
    assert isinstance(op, TriangularSolve)
    rank, size = len(a.shape), a.shape[-1]
    row, column = rank - 2, rank - 1
    matrix = _conjugate(b, a) if op.transpose_a == "ADJOINT" else a
    # x op(a) = b is op(a)^T x^T = b^T
    transposed = (op.transpose_a != "NO_TRANSPOSE") == op.left_side
    matrix = _swapped(b, matrix) if transposed else matrix
    rows = right if op.left_side else _swapped(b, right)
    forward = op.lower != transposed
    at, over = (b.iota(TensorType(S32, a.shape), d) for d in (row, column))
    inside = b.compare(over, at, "LT" if forward else "GT")
    strict = b.select(inside, matrix, b.full_like(matrix, 0))

    def body(s: Builder, k: Instruction, x: Instruction, others: list[Instruction]) -> Instruction:
        i = k if forward else s.subtract(s.constant(size - 1, S32), k)
        total = _product(s, _line(s, others[0], i, row), x)
        line = s.subtract(_line(s, others[1], i, row), total)
        if not op.unit_diagonal:
            pivot = _line(s, _line(s, others[2], i, row), i, column)
            line = s.divide(line, s.numpy_broadcast(pivot, line.shape))
        return _with_line(s, x, line, i, row)

    others = [strict, rows] if op.unit_diagonal else [strict, rows, matrix]
    x = _counted(b, size, b.full_like(rows, 0), others, body)
    return x if op.left_side else _swapped(b, x)
