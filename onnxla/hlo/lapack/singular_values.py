"""Singular values and vectors (gesdd) by Jacobi's rotations from one side.

QR first, so that what is rotated is square. Rotations of its columns make them orthogonal to each other; their lengths
are the values then. Another QR gives the directions of the columns, those of columns that are 0 too.
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
from onnxla.hlo.lapack.qr import product_of_reflections, qr
from onnxla.hlo.matrices import (
    adjoint,
    all_finite,
    conjugate,
    counted,
    identity,
    kept,
    places,
    real,
    real_element,
    reduced,
    squared,
    stretched,
    swapped,
)
from onnxla.hlo.module import Instruction
from onnxla.hlo.op import require
from onnxla.hlo.types import S32, TensorType


def singular_values(b: Builder, a: Instruction, letters: Mapping[str, str]) -> list[Instruction]:
    """What is left of the matrix (itself), values in descending order, U, V^H, and for each matrix 0, or 1 where it is
    not finite. `mode` A gives square U and V, S as many columns as values; N computes none and fills them with NaN."""
    mode = letters.get("mode")
    require(mode in ("A", "S", "N"), "LAPACK's argument mode is A, S or N")
    (m, n), batch = a.shape[-2:], a.shape[:-2]
    element, count = a.tensor_type.element, min(m, n)
    finite = all_finite(b, a)
    status = b.select(finite, b.full(batch, 0, S32), b.full(batch, 1, S32))
    left, right = ((m, m), (n, n)) if mode != "S" else ((m, count), (count, n))
    if 0 in a.shape:
        values = b.full((*batch, count), 0, real_element(element))
        units = [identity(b, TensorType(element, (*batch, *shape))) for shape in (left, right)]
        return [a, values, *units, b.full(batch, 0, S32)]
    clean = kept(b, b.numpy_broadcast(b.reshape(finite, (*batch, 1, 1)), a.shape), a)
    matrix, scale = scaled_to_one(b, clean)
    tall = matrix if m >= n else adjoint(b, matrix)
    values, u, v = _of_tall(b, tall, vectors=mode != "N", whole=mode == "A")
    values = stretched(b, "multiply", values, b.reshape(scale, (*batch, 1)))
    nan = b.full_like(values, np.nan)
    values = b.select(b.numpy_broadcast(b.reshape(finite, (*batch, 1)), values.shape), values, nan)
    if u is None or v is None:
        return [a, values, *(b.full((*batch, *shape), np.nan, element) for shape in (left, right)), status]
    u, v = (u, v) if m >= n else (v, u)
    return [a, values, u, adjoint(b, v), status]


def _of_tall(
    b: Builder, a: Instruction, vectors: bool, whole: bool
) -> tuple[Instruction, Instruction | None, Instruction | None]:
    """Values, and U and V as columns, of matrices with at least as many rows as columns."""
    rank, (m, n), batch = len(a.shape), a.shape[-2:], a.shape[:-2]
    row, column = rank - 2, rank - 1
    packed, factors = qr(b, a)
    square = part(b, packed, row, 0, n)
    upper = kept(b, b.compare(places(b, square, row), places(b, square, column), "LE"), square)
    turned, turns = _orthogonal_rows(b, swapped(b, upper), vectors)
    lengths = b.unary("sqrt", reduced(b, "add", squared(b, turned), column))
    if not vectors:
        values, _ = sorted_by(b, lengths, lengths, row, "GT")
        return b.reshape(values, (*batch, n)), None, None
    both = b.concatenate([turned, turns], column)
    values, both = sorted_by(b, lengths, both, row, "GT")
    turned, turns = part(b, both, column, 0, n), part(b, both, column, n, 2 * n)
    inner, weights = qr(b, swapped(b, turned))
    directions = product_of_reflections(b, inner, weights)
    # R is diagonal but for rounding, and its signs belong to the directions
    on = b.compare(places(b, inner, row), places(b, inner, column), "EQ")
    signs = real(b, reduced(b, "add", kept(b, on, inner), row))
    negative = b.compare(signs, b.full_like(signs, 0), "LT")
    signs = b.select(negative, b.full_like(signs, -1), b.full_like(signs, 1))
    directions = stretched(b, "multiply", directions, b.convert(signs, a.tensor_type.element))
    if not whole or m == n:
        u = b.matmul(product_of_reflections(b, packed, factors), directions)
    else:
        zero = b.constant(0, a.tensor_type.element)
        wide = b.pad(packed, zero, [0] * rank, [*[0] * (rank - 1), m - n])
        every = product_of_reflections(b, wide, factors)
        first = b.matmul(part(b, every, column, 0, n), directions)
        u = b.concatenate([first, part(b, every, column, n, m)], column)
    return b.reshape(values, (*batch, n)), u, swapped(b, turns)


def _orthogonal_rows(b: Builder, x: Instruction, vectors: bool) -> tuple[Instruction, Instruction]:
    """Rows of square matrices, rotated until they are orthogonal to each other, and the rotations of rows of I."""
    rank, n = len(x.shape), x.shape[-1]
    row, column = rank - 2, rank - 1
    lines = padded_to_even(b, x, row)
    if vectors:
        unit = padded_to_even(b, identity(b, x.tensor_type), row)
        lines = b.concatenate([lines, unit], column)
    epsilon = epsilon_of(x.tensor_type.element)

    def sweep(s: Builder, _: Instruction, states: list[Instruction], others: list[Instruction]) -> list[Instruction]:
        return counted(s, lines.shape[row] - 1, [states[0], s.constant(False)], others, one_round)

    def one_round(s: Builder, _: Instruction, states: list[Instruction], __: list[Instruction]) -> list[Instruction]:
        p, q = halves(s, states[0], row)
        own = [part(s, v, column, 0, n) for v in (p, q)]
        alpha, beta = (reduced(s, "add", squared(s, v), column) for v in own)
        gamma = reduced(s, "add", s.multiply(conjugate(s, own[0]), own[1]), column)
        limit = s.multiply(s.multiply(s.unary("sqrt", alpha), s.unary("sqrt", beta)), s.full_like(alpha, epsilon))
        wanted = s.compare(s.unary("abs", gamma), limit, "GT")
        c, t, phase = rotation(s, alpha, beta, gamma, wanted)
        q = stretched(s, "multiply", q, conjugate(s, phase))
        first = s.subtract(stretched(s, "multiply", p, c), stretched(s, "multiply", q, t))
        second = s.add(stretched(s, "multiply", p, t), stretched(s, "multiply", q, c))
        around = gone_around(s, s.concatenate([first, second], row), row)
        return [around, s.or_(states[1], s.reduce_by("or", wanted, range(rank)))]

    found, _ = counted(b, MOST_SWEEPS, [lines, b.constant(True)], [], sweep, lambda s, _, now: now[1])
    found = part(b, found, row, 0, n)
    return part(b, found, column, 0, n), part(b, found, column, n, 2 * n) if vectors else found
