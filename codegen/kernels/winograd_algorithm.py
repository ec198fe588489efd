"""Winograd's convolutions F(m x m, 3x3) as matrices: Y = A^T [(G g G^T) * (B^T d B)] A.

`g` is a 3x3 kernel, `d` a square tile of the input, `*` multiplies place by place, Y is a tile of m x m outputs. In
floats the three matrices are Cook and Toom's. In integers they are scaled so that all their entries are integers, and
the result is D^2 Y for an integer D. With D^2 = 2^shift * odd the quotient is the result times the inverse of `odd`
modulo 2^32, shifted right. All of that is exact modulo 2^32, whatever wraps on the way: all that is asked for is that
transformed tiles and kernels fit 16 bits, which those of bytes do, and that Y itself fits 32 - shift bits.
(Lavin, Gray 2016; the points of the floating form after Barabasz et al. 2020.)
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import TypeAlias

import numpy as np

from onnxla.hlo.numerics import integer_limits
from onnxla.hlo.types import S8, S32, U8
from onnxla.hlo.types import Array as NumpyArray

KERNEL = 3
Matrix: TypeAlias = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Algorithm:
    """F(out x out, 3x3). `divisor` is D^2, 1 in floats."""

    out: int
    """Outputs of a tile, in each direction."""
    output: Matrix
    """A^T, out rows of `size`."""
    weights: Matrix
    """G, `size` rows of 3."""
    input: Matrix
    """B^T, `size` rows of `size`."""
    divisor: int = 1

    @property
    def size(self) -> int:
        """Inputs of a tile, in each direction."""
        return self.out + KERNEL - 1

    @property
    def places(self) -> int:
        return self.size * self.size

    @property
    def shift(self) -> int:
        """The exponent of 2 in the divisor."""
        return (self.divisor & -self.divisor).bit_length() - 1

    @property
    def inverse(self) -> int:
        """What a product with undoes the odd part of the divisor, modulo 2^32."""
        return pow(self.divisor >> self.shift, -1, 1 << 32)

    def transformed(self, kernel: NumpyArray) -> NumpyArray:
        """`[3, 3, channels, features]` as `[places, channels, features]`, in float64: exact for 8-bit integers."""
        g = np.array(self.weights)
        wide: NumpyArray = np.einsum("ij,jlck,ml->imck", g, kernel.astype(np.float64), g)
        return wide.reshape(self.places, *kernel.shape[2:])


@cache
def floating(out: int) -> Algorithm:
    """F(4x4, 3x3) at 0, 1, -1, 1/2, -2 and infinity, or F(2x2, 3x3) at the first three and infinity.

    The former errs by about 1.7e-6 norm-wise at 256 channels, where the direct sum errs by 2e-7; the latter by less.
    """
    points = [Fraction(0), Fraction(1), Fraction(-1), Fraction(1, 2), Fraction(-2)][: out + 1]
    return _cook_toom(points, [Fraction(1)] * (len(points) + 1), 1)


@cache
def exact(out: int) -> Algorithm:
    """F(2x2, 3x3) or F(4x4, 3x3) in integers: 1 / 2.25 and 1 / 4 of the products of the direct sum.

    Each row of G is multiplied by D, but for the powers of two in its factor, which the column of A^T takes over. So
    transformed bytes fit 16 bits: of weights they stay within 49 times the largest, of inputs within 68 times.
    """
    points = [Fraction(p) for p in (0, 1, -1, 2, -2)[: out + 1]]
    scales = [*(_scale(p, points) for p in points), Fraction(1)]
    common = math.lcm(*(int(s) for s in scales))
    kept = []
    for scale in scales:
        whole = int(common / scale)
        kept.append(Fraction(whole & -whole))
    return _cook_toom(points, kept, common)


def _scale(point: Fraction, points: Sequence[Fraction]) -> Fraction:
    return math.prod((point - q for q in points if q != point), start=Fraction(1))


def _cook_toom(points: list[Fraction], kept: list[Fraction], common: int) -> Algorithm:
    """The construction from points and infinity; place k of A^T is multiplied by `kept[k]`, G by `common / kept[k]`."""
    count = len(points)
    out = count - 1

    def product(roots: list[Fraction]) -> list[Fraction]:
        """The coefficients of the polynomial with these roots, constant first."""
        coefficients = [Fraction(1)]
        for root in roots:
            shifted = [Fraction(0), *coefficients]
            coefficients = [s - root * c for s, c in zip(shifted, [*coefficients, Fraction(0)], strict=True)]
        return coefficients

    others = [[q for q in points if q != p] for p in points]
    none = Fraction(0)
    a = [[*(p**i for p in points), Fraction(i == out - 1)] for i in range(out)]
    g = [[p**j / _scale(p, points) for j in range(KERNEL)] for p in points]
    g.append([none, none, Fraction(1)])
    b = [product(rest) + [none] * (out + 2 - count) for rest in others]
    b.append(product(points))
    return Algorithm(
        out,
        tuple(tuple(float(x * k) for x, k in zip(row, kept, strict=True)) for row in a),
        tuple(tuple(float(x * common / k) for x in row) for row, k in zip(g, kept, strict=True)),
        tuple(tuple(float(x) for x in row) for row in b),
        common * common,
    )


def is_exact(algorithm: Algorithm, kernel: NumpyArray) -> bool:
    """Whether the integers of an exact algorithm fit for this kernel of bytes, `[3, 3, channels, features]`, and any
    input of bytes with zeros around it."""
    return sum_bits(kernel) <= S32.bits - algorithm.shift


def sum_bits(kernel: NumpyArray) -> int:
    """The bits of the longest sum of products of a kernel of bytes and an input of bytes: up to 26, up to 30, or 32.

    Kernels for which it differs have no lowering in common.
    """
    flat = kernel.reshape(-1, kernel.shape[-1])
    up, down = flat.clip(min=0).sum(axis=0, dtype=np.int64), flat.clip(max=0).sum(axis=0, dtype=np.int64)
    most = 0
    for low, high in map(integer_limits, (U8, S8)):
        sums = np.concatenate([up * high + down * low, -(up * low + down * high)])
        most = max(most, int(sums.max(initial=0)))
    return next((bits for bits in (26, 30) if most < 1 << bits - 1), S32.bits)
