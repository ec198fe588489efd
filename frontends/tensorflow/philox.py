"""TensorFlow's random numbers: the counter-based generator Philox 4x32 with 10 rounds, in elementwise operations.

Salmon and others 2011. Each counter of 128 bits gives four words of 32; the words follow one another in the result. The
numbers are TensorFlow's own, bit for bit before arithmetic.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import F32, F64, S32, S64, U32, U64, ElementType, TensorType

_ROUNDS = 10
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_SCRAMBLING_KEY = (0x3EC8F720, 0x02461E29)
_SMALLEST = 1e-7
_CALLS = 4
"""Counters that are looked at for four numbers of a truncated distribution."""

Words = tuple[Instruction, ...]


@dataclass(frozen=True)
class Generator:
    """A key and the counter to begin with, each as two (four) scalars u32, the least first."""

    key: Words
    counter: Words


def words_of(b: Builder, numbers: Instruction) -> Words:
    """The halves of each element of a vector u64 as scalars u32, the lower half first."""
    found = []
    for i in range(numbers.shape[0]):
        number = b.reshape(b.slice(numbers, [i], [i + 1]), ())
        found += [b.convert(number, U32), b.convert(_high(b, number), U32)]
    return tuple(found)


def joined(b: Builder, words: Sequence[Instruction]) -> Instruction:
    """The inverse: a vector u64."""
    numbers = []
    for low, high in zip(words[::2], words[1::2], strict=True):
        wide = b.convert(high, U64)
        number = b.or_(b.convert(low, U64), b.binary("shift-left", wide, b.full_like(wide, 32)))
        numbers.append(b.reshape(number, (1,)))
    return b.concatenate(numbers, 0)


def generator_of_seed(b: Builder, seed: Instruction) -> Generator:
    """From a seed of two integers, scrambled so that it does not matter which of its bits differ."""
    counter = words_of(b, b.convert(b.convert(seed, S64) if seed.tensor_type.element.is_signed else seed, U64))
    key = tuple(b.constant(k, U32) for k in _SCRAMBLING_KEY)
    mixed = _philox(b, key, counter)
    zero = b.constant(0, U32)
    return Generator(mixed[:2], (zero, zero, *mixed[2:]))


def words(b: Builder, generator: Generator, count: int) -> Instruction:
    """`count` random words, u32 [count]."""
    groups = -(-count // 4)
    flat = b.reshape(_words_at(b, generator, b.iota(TensorType(U64, (groups,)), 0)), (4 * groups,))
    return b.slice(flat, [0], [count])


def _words_at(b: Builder, generator: Generator, number: Instruction) -> Instruction:
    """The four words of each counter that is `number` [n] behind the generator's: u32 [n, 4]."""
    shape = number.shape
    low = b.broadcast_scalar(b.reshape(joined(b, generator.counter[:2]), ()), shape)
    high = b.broadcast_scalar(b.reshape(joined(b, generator.counter[2:]), ()), shape)
    total = b.add(low, number)
    high = b.add(high, b.convert(b.compare(total, low, "LT"), U64))
    counter = tuple(b.convert(n, U32) for n in (total, _high(b, total), high, _high(b, high)))
    key = tuple(b.broadcast_scalar(k, shape) for k in generator.key)
    return b.concatenate([b.reshape(lane, (shape[0], 1)) for lane in _philox(b, key, counter)], 1)


def _philox(b: Builder, key: Words, counter: Words) -> Words:
    k0, k1 = key
    c0, c1, c2, c3 = counter
    for _ in range(_ROUNDS):
        high0, low0 = _product(b, c0, _MULTIPLIERS[0])
        high1, low1 = _product(b, c2, _MULTIPLIERS[1])
        c0, c1, c2, c3 = b.xor(b.xor(high1, c1), k0), low1, b.xor(b.xor(high0, c3), k1), low0
        k0, k1 = b.add(k0, b.full_like(k0, _WEYL[0])), b.add(k1, b.full_like(k1, _WEYL[1]))
    return c0, c1, c2, c3


def _product(b: Builder, x: Instruction, factor: int) -> tuple[Instruction, Instruction]:
    """The high and the low word of a product of words."""
    wide = b.convert(x, U64)
    product = b.multiply(wide, b.full_like(wide, factor))
    return b.convert(_high(b, product), U32), b.convert(product, U32)


def _high(b: Builder, number: Instruction) -> Instruction:
    return b.binary("shift-right-logical", number, b.full_like(number, 32))


def _unit(b: Builder, bits: Instruction) -> Instruction:
    """Words as f32 from 0 (included) to 1 (excluded): the lower 23 bits as the mantissa of a number in [1, 2)."""
    number = b.or_(b.and_(bits, b.full_like(bits, 0x7FFFFF)), b.full_like(bits, 0x3F800000))
    ones = b.bitcast_convert(number, number.tensor_type.with_element(F32))
    return b.subtract(ones, b.full_like(ones, 1))


def _unit_double(b: Builder, bits: Instruction) -> Instruction:
    """Pairs of words as f64: 20 bits of the first are the upper ones of the mantissa."""
    pairs = b.reshape(bits, (bits.shape[0] // 2, 2))
    first, second = (b.convert(_column(b, pairs, i), U64) for i in (0, 1))
    upper = b.binary("shift-left", b.and_(first, b.full_like(first, 0xFFFFF)), b.full_like(first, 32))
    number = b.or_(b.or_(upper, second), b.full_like(first, 0x3FF0000000000000))
    ones = b.bitcast_convert(number, number.tensor_type.with_element(F64))
    return b.subtract(ones, b.full_like(ones, 1))


def _column(b: Builder, pairs: Instruction, i: int) -> Instruction:
    count = pairs.shape[0]
    return b.reshape(b.slice(pairs, [0, i], [count, i + 1]), (count,))


def uniform(b: Builder, generator: Generator, shape: Sequence[int], element: ElementType) -> Instruction:
    """From 0 (included) to 1 (excluded), f32 or f64."""
    count = math.prod(shape)
    if element is F64:
        return b.reshape(_unit_double(b, words(b, generator, 2 * count)), shape)
    return b.reshape(_unit(b, words(b, generator, count)), shape)


def normal(b: Builder, generator: Generator, shape: Sequence[int]) -> Instruction:
    """Normally distributed f32 by the method of Box and Muller, two from a pair of words."""
    count = math.prod(shape)
    pairs = -(-count // 2)
    both = _box_muller(b, b.reshape(words(b, generator, 2 * pairs), (pairs, 2)))
    return b.reshape(b.slice(b.reshape(both, (2 * pairs,)), [0], [count]), shape)


def _box_muller(b: Builder, bits: Instruction) -> Instruction:
    """Two normally distributed numbers from each pair of words [n, 2]."""
    pairs = bits.shape[0]
    units = _unit(b, bits)
    first, second = (b.slice(units, [0, i], [pairs, i + 1]) for i in (0, 1))
    log = b.unary("log", b.maximum(first, b.full_like(first, _SMALLEST)))
    length = b.unary("sqrt", b.multiply(log, b.full_like(log, -2)))
    angle = b.multiply(second, b.full_like(second, 2 * math.pi))
    return b.concatenate([b.multiply(length, b.unary(f, angle)) for f in ("sine", "cosine")], 1)


def truncated_normal(b: Builder, generator: Generator, shape: Sequence[int]) -> Instruction:
    """Normally distributed f32 nearer to 0 than 2: of each group's candidates the first four that are.

    A group of four results has 256 counters to itself. TensorFlow looks at as many as it needs, here there are 4, for
    16 candidates: but for one group in 5e14 the four are among them, and where they are not the rest is 0.
    """
    count = math.prod(shape)
    groups = -(-count // 4)
    starts = b.iota(TensorType(U64, (groups, _CALLS)), 0)
    calls = b.iota(TensorType(U64, (groups, _CALLS)), 1)
    number = b.add(b.multiply(starts, b.full_like(starts, 256)), calls)
    bits = _words_at(b, generator, b.reshape(number, (groups * _CALLS,)))
    candidates = b.reshape(_box_muller(b, b.reshape(bits, (groups * 2 * _CALLS, 2))), (groups, 4 * _CALLS))
    near = b.compare(b.unary("abs", candidates), b.full_like(candidates, 2), "LT")
    # how many are near up to each candidate: a sum over a triangle
    ones = b.convert(near, S32)
    triangle = b.constant(np.triu(np.ones((4 * _CALLS, 4 * _CALLS), np.int32)))
    so_far = b.matmul(ones, triangle)
    wide = (groups, 4, 4 * _CALLS)
    wanted = b.iota(TensorType(S32, wide), 1)
    place = b.broadcast(so_far, wide, (0, 2))
    chosen = b.and_(b.broadcast(near, wide, (0, 2)), b.compare(place, b.add(wanted, b.full_like(wanted, 1)), "EQ"))
    values = b.select(chosen, b.broadcast(candidates, wide, (0, 2)), b.full(wide, 0, F32))
    flat = b.reshape(b.reduce_by("add", values, [2]), (4 * groups,))
    return b.reshape(b.slice(flat, [0], [count]), shape)


def integers(
    b: Builder, generator: Generator, shape: Sequence[int], low: Instruction, high: Instruction
) -> Instruction:
    """From `low` (included) to `high` (excluded), by the remainder; of the type of the limits, 32 or 64 bits."""
    count, element = math.prod(shape), low.tensor_type.element
    if element.bits == 64:
        pairs = b.reshape(words(b, generator, 2 * count), (count, 2))
        halves = [b.convert(_column(b, pairs, i), U64) for i in (0, 1)]
        bits = b.or_(halves[0], b.binary("shift-left", halves[1], b.full_like(halves[1], 32)))
    else:
        bits = words(b, generator, count)
    unsigned = bits.tensor_type.element
    span = b.broadcast_scalar(b.convert(b.subtract(high, low), unsigned), (count,))
    offset = b.convert(b.remainder(bits, span), element)
    return b.reshape(b.add(offset, b.broadcast_scalar(low, (count,))), shape)
