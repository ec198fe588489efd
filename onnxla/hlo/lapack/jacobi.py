"""What the Jacobi methods share: the angle of a rotation, and rounds in which every two lines meet once.

Lines are in two halves; in a round each line of one half meets the line beside it of the other, and after
`lines - 1` rounds, in which one line stays and the others go around, each is where it began.
"""

import numpy as np

from onnxla.hlo.builder import Builder
from onnxla.hlo.matrices import real_element
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import ElementType

MOST_SWEEPS = 30
"""Ten are much already: the methods converge quadratically."""


def epsilon_of(element: ElementType) -> float:
    """The distance from 1 to the next number of the type or its real part."""
    return float(np.finfo(real_element(element).dtype).eps)


def rotation(
    b: Builder, alpha: Instruction, beta: Instruction, gamma: Instruction, wanted: Instruction
) -> tuple[Instruction, Instruction, Instruction]:
    """(c, s, phase) for the pairs of which [[alpha, gamma], [conj(gamma), beta]] is to become diagonal.

    With q' = q conj(phase): p becomes c p - s q', and q becomes s p + c q'. Not wanted: (1, 0, 1).
    """
    element = gamma.tensor_type.element
    one = b.full_like(gamma, 1)
    length = b.unary("abs", gamma)
    some = b.select(wanted, length, b.full_like(length, 1))
    phase = b.select(wanted, b.divide(gamma, b.convert(some, element)), one)
    zeta = b.divide(b.subtract(beta, alpha), b.add(some, some))
    root = b.unary("sqrt", b.add(b.full_like(zeta, 1), b.multiply(zeta, zeta)))
    tangent = b.divide(b.full_like(zeta, 1), b.add(b.unary("abs", zeta), root))
    tangent = b.select(b.compare(zeta, b.full_like(zeta, 0), "LT"), b.negate(tangent), tangent)
    cosine = b.divide(b.full_like(zeta, 1), b.unary("sqrt", b.add(b.full_like(zeta, 1), b.multiply(tangent, tangent))))
    c = b.select(wanted, cosine, b.full_like(cosine, 1))
    s = b.select(wanted, b.multiply(cosine, tangent), b.full_like(cosine, 0))
    return b.convert(c, element), b.convert(s, element), phase


def halves(b: Builder, x: Instruction, dimension: int) -> tuple[Instruction, Instruction]:
    """The lines of each half."""
    count = x.shape[dimension] // 2
    return part(b, x, dimension, 0, count), part(b, x, dimension, count, 2 * count)


def part(b: Builder, x: Instruction, dimension: int, start: int, limit: int) -> Instruction:
    """Lines from `start` to before `limit`."""
    starts, limits = [0] * len(x.shape), list(x.shape)
    starts[dimension], limits[dimension] = start, limit
    return b.slice(x, starts, limits)


def gone_around(b: Builder, x: Instruction, dimension: int) -> Instruction:
    """Every line but the first one place on, around through both halves."""
    upper, lower = halves(b, x, dimension)
    count = upper.shape[dimension]
    if count == 1:
        return x
    return b.concatenate(
        [
            part(b, upper, dimension, 0, 1),
            part(b, lower, dimension, 0, 1),
            part(b, upper, dimension, 1, count - 1),
            part(b, lower, dimension, 1, count),
            part(b, upper, dimension, count - 1, count),
        ],
        dimension,
    )


def padded_to_even(b: Builder, x: Instruction, *dimensions: int) -> Instruction:
    """One more line of zeros where there is an odd number of them."""
    high = [n % 2 if d in dimensions else 0 for d, n in enumerate(x.shape)]
    if not any(high):
        return x
    return b.pad(x, b.constant(0, x.tensor_type.element), [0] * len(high), high)


def sorted_by(b: Builder, keys: Instruction, x: Instruction, dimension: int, direction: str) -> list[Instruction]:
    """Keys (of size 1 in all dimensions of a line) and lines of `x` in the order of the keys, equals as they were."""
    comparator = Builder("comes_before")
    pairs = [[comparator.parameter(v.tensor_type.with_shape(())) for _ in range(2)] for v in (keys, x)]
    before = comparator.build(comparator.compare(pairs[0][0], pairs[0][1], direction))
    wide = b.numpy_broadcast(keys, x.shape)
    both = b.sort([wide, x], dimension, before)
    ordered = b.get_tuple_element(both, 0)
    limits = [n if n == m else 1 for n, m in zip(keys.shape, x.shape, strict=True)]
    return [b.slice(ordered, [0] * len(limits), limits), b.get_tuple_element(both, 1)]


def scaled_to_one(b: Builder, x: Instruction) -> tuple[Instruction, Instruction]:
    """Each matrix divided by the size of its largest element, and that size; 1 for a matrix of zeros."""
    rank = len(x.shape)
    size = b.reduce_by("maximum", b.unary("abs", x), [rank - 2, rank - 1])
    positive = b.compare(size, b.full_like(size, 0), "GT")
    scale = b.reshape(b.select(positive, size, b.full_like(size, 1)), (*x.shape[:-2], 1, 1))
    return b.divide(x, b.numpy_broadcast(b.convert(scale, x.tensor_type.element), x.shape)), scale
