"""LU with partial pivoting (getrf): column after column, all matrices of a batch at once."""

import numpy as np

from onnxla.hlo.builder import Builder
from onnxla.hlo.matrices import compared_to, counted, kept, line, places, reduced, stretched, with_line
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import S32


def lu(b: Builder, a: Instruction) -> tuple[Instruction, Instruction, Instruction]:
    """L below the diagonal, which is 1 there, and U above; the row that each was swapped with, from 1; and for each
    matrix 0, or the first pivot, from 1, that is 0."""
    rank, (m, n) = len(a.shape), a.shape[-2:]
    row, column = rank - 2, rank - 1
    count, batch = min(m, n), a.shape[:-2]

    def body(s: Builder, j: Instruction, states: list[Instruction], _: list[Instruction]) -> list[Instruction]:
        matrix, pivots, status = states
        here = s.broadcast_scalar(j, (*batch, 1, 1))
        head = line(s, matrix, j, column)
        at = places(s, head, row)
        size = _magnitude(s, head)
        size = s.select(compared_to(s, at, "GE", here), size, s.full_like(size, -1))
        largest = s.compare(size, s.numpy_broadcast(reduced(s, "maximum", size, row), size.shape), "EQ")
        chosen = reduced(s, "minimum", s.select(largest, at, s.full_like(at, m - 1)), row)

        every = places(s, matrix, row)
        found = reduced(s, "add", kept(s, compared_to(s, every, "EQ", chosen), matrix), row)
        old = s.numpy_broadcast(line(s, matrix, j, row), matrix.shape)
        matrix = s.select(compared_to(s, every, "EQ", chosen), old, matrix)
        matrix = with_line(s, matrix, found, j, row)

        head, pivot = line(s, matrix, j, column), line(s, found, j, column)
        is_zero = s.compare(pivot, s.full_like(pivot, 0), "EQ")
        divisor = s.select(is_zero, s.full_like(pivot, 1), pivot)
        below = compared_to(s, at, "GT", here)
        factors = kept(s, below, stretched(s, "divide", head, divisor))
        right = kept(s, compared_to(s, places(s, found, column), "GT", here), found)
        matrix = s.subtract(matrix, stretched(s, "multiply", factors, right))
        matrix = with_line(s, matrix, s.select(below, factors, head), j, column)

        number = s.add(s.reshape(chosen, (*batch, 1)), s.full((*batch, 1), 1, S32))
        pivots = with_line(s, pivots, number, j, rank - 2)
        failed = s.and_(s.reshape(is_zero, batch), compared_to(s, status, "EQ", 0))
        one = s.full(batch, 1, S32)
        status = s.select(failed, s.add(s.broadcast_scalar(j, batch), one), status)
        return [matrix, pivots, status]

    states = [a, b.full((*batch, count), 0, S32), b.full(batch, 0, S32)]
    matrix, pivots, status = counted(b, count, states, [], body) if 0 not in a.shape else states
    return matrix, pivots, status


def _magnitude(b: Builder, x: Instruction) -> Instruction:
    """|x|, or |real| + |imaginary| as LAPACK has it; NaN counts as the largest, so that it shows."""
    if x.tensor_type.element.is_complex:
        size = b.add(*(b.unary("abs", b.unary(part, x)) for part in ("real", "imag")))
    else:
        size = b.unary("abs", x)
    return b.select(b.is_nan(size), b.full_like(size, np.inf), size)
