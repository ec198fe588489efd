"""Eigenvalues and vectors of symmetric and Hermitian matrices (syevd, heevd) by Jacobi's rotations from both sides.

In each round half as many rotations as lines happen at once. A sweep of rounds lets every two lines meet; sweeps go on
until one finds nothing to rotate. Vectors are LAPACK's up to a factor, and up to a rotation where values are equal.
"""

from collections.abc import Mapping

import numpy as np

from onnxla.hlo.builder import Builder
from onnxla.hlo.lapack.jacobi import (
    MOST_SWEEPS,
    epsilon_of,
    gone_around,
    halves,
    padded_to_even,
    part,
    rotation,
    scaled_to_one,
    sorted_by,
)
from onnxla.hlo.matrices import (
    adjoint,
    all_finite,
    conjugate,
    counted,
    identity,
    kept,
    places,
    real,
    reduced,
    squared,
    stretched,
    swapped,
)
from onnxla.hlo.module import Instruction
from onnxla.hlo.op import require
from onnxla.hlo.types import S32, TensorType


def eigenvalues(b: Builder, a: Instruction, letters: Mapping[str, str]) -> tuple[Instruction, Instruction, Instruction]:
    """Vectors as columns, values in ascending order, and for each matrix 0, or 1 where it is not finite."""
    require(letters.get("uplo") in ("U", "L"), "LAPACK's argument uplo is U or L")
    rank, n, batch = len(a.shape), a.shape[-1], a.shape[:-2]
    require(a.shape[-2] == n, f"eigenvalues are of square matrices, not {a.type}")
    finite = all_finite(b, a)
    status = b.select(finite, b.full(batch, 0, S32), b.full(batch, 1, S32))
    if 0 in a.shape:
        return a, real(b, b.reshape(a, (*batch, n))), b.full(batch, 0, S32)
    clean = kept(b, b.numpy_broadcast(b.reshape(finite, (*batch, 1, 1)), a.shape), a)
    matrix, scale = scaled_to_one(b, _hermitian(b, clean, letters["uplo"] == "L"))
    matrix = padded_to_even(b, matrix, rank - 2, rank - 1)
    size = matrix.shape[-1]
    vectors = identity(b, TensorType(matrix.tensor_type.element, matrix.shape))
    length = b.unary("sqrt", b.reduce_by("add", squared(b, matrix), [rank - 2, rank - 1]))
    small = b.multiply(length, b.full_like(length, 2 * epsilon_of(a.tensor_type.element) / size**0.5))

    def sweep(s: Builder, _: Instruction, states: list[Instruction], others: list[Instruction]) -> list[Instruction]:
        start = [states[0], states[1], s.constant(False)]
        return counted(s, size - 1, start, others, _round)

    states = [matrix, vectors, b.constant(True)]
    matrix, vectors, _ = counted(b, MOST_SWEEPS, states, [small], sweep, lambda s, _, now: now[2])
    values = _diagonal(b, matrix)
    values, vectors = (part(b, x, rank - 2, 0, n) for x in (values, vectors))
    vectors = part(b, vectors, rank - 1, 0, n)
    values = stretched(b, "multiply", values, scale)
    values, rows = sorted_by(b, values, vectors, rank - 2, "LT")
    nan = b.full((*batch, n), np.nan, values.tensor_type.element)
    known = b.numpy_broadcast(b.reshape(finite, (*batch, 1)), (*batch, n))
    return swapped(b, rows), b.select(known, b.reshape(values, (*batch, n)), nan), status


def _hermitian(b: Builder, a: Instruction, lower: bool) -> Instruction:
    """The matrix of which one triangle is given."""
    rank = len(a.shape)
    rows, columns = places(b, a, rank - 2), places(b, a, rank - 1)
    strict = kept(b, b.compare(rows, columns, "GT" if lower else "LT"), a)
    middle = b.convert(real(b, kept(b, b.compare(rows, columns, "EQ"), a)), a.tensor_type.element)
    return b.add(middle, b.add(strict, adjoint(b, strict)))


def _diagonal(b: Builder, x: Instruction) -> Instruction:
    """The real diagonals of square matrices as columns."""
    rank = len(x.shape)
    on = b.compare(places(b, x, rank - 2), places(b, x, rank - 1), "EQ")
    return real(b, reduced(b, "add", kept(b, on, x), rank - 1))


def _round(s: Builder, _: Instruction, states: list[Instruction], others: list[Instruction]) -> list[Instruction]:
    """One rotation of each pair of lines, where what is off the diagonal is not small; then all lines go around."""
    (matrix, vectors, moved), (small,) = states, others
    rank = len(matrix.shape)
    row, column = rank - 2, rank - 1
    upper, lower = halves(s, matrix, row)
    corners = [*halves(s, upper, column), *halves(s, lower, column)]
    alpha, beta = _diagonal(s, corners[0]), _diagonal(s, corners[3])
    on = s.compare(places(s, corners[1], row), places(s, corners[1], column), "EQ")
    gamma = reduced(s, "add", kept(s, on, corners[1]), column)
    limit = s.numpy_broadcast(s.reshape(small, (*small.shape, 1, 1)), alpha.shape)
    wanted = s.compare(s.unary("abs", gamma), limit, "GT")
    c, t, phase = rotation(s, alpha, beta, gamma, wanted)

    def turned(x: Instruction, dimension: int, phase: Instruction) -> Instruction:
        first, second = halves(s, x, dimension)
        cosine, sine, unit = (v if dimension == row else swapped(s, v) for v in (c, t, phase))
        second = stretched(s, "multiply", second, unit)
        left = s.subtract(stretched(s, "multiply", first, cosine), stretched(s, "multiply", second, sine))
        right = s.add(stretched(s, "multiply", first, sine), stretched(s, "multiply", second, cosine))
        return gone_around(s, s.concatenate([left, right], dimension), dimension)

    # columns by the rotations, rows by their adjoints; the vectors are rows here
    backwards = conjugate(s, phase)
    matrix = turned(turned(matrix, column, backwards), row, phase)
    vectors = turned(vectors, row, backwards)
    some = s.reduce_by("or", wanted, range(rank))
    return [matrix, vectors, s.or_(moved, some)]
