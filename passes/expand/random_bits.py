"""rng-bit-generator as elementwise operations on a counter.

Threefry 2x32 with 20 rounds and Philox 4x32 with 10 (Salmon and others 2011), word for word as XLA expands them; the
same bits come from `onnxla/hlo/random_bits.py`, where the numbers of a program are defined.
"""

import math

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.linear_algebra import RngBitGenerator
from onnxla.hlo.types import U32, U64, TensorType

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def expand_random_bits(b: Builder, instruction: Instruction) -> Instruction:
    """The pair of the next state and the bits."""
    op, (state,) = instruction.op, instruction.operands
    assert isinstance(op, RngBitGenerator)
    return (_three_fry if op.algorithm == "rng_three_fry" else _philox)(b, state, op.type)


def _word(b: Builder, state: Instruction, k: int) -> Instruction:
    return b.reshape(b.slice(state, (k,), (k + 1,)), ())


def _counters(b: Builder, first: Instruction, count: int) -> Instruction:
    return b.add(b.broadcast_scalar(first, (count,)), b.iota(TensorType(U64, (count,)), 0))


def _low(b: Builder, value: Instruction) -> Instruction:
    return b.convert(value, U32)


def _high(b: Builder, value: Instruction) -> Instruction:
    return b.convert(b.binary("shift-right-logical", value, b.full_like(value, 32)), U32)


def _join(b: Builder, low: Instruction, high: Instruction) -> Instruction:
    wide = b.convert(high, U64)
    return b.or_(b.convert(low, U64), b.binary("shift-left", wide, b.full_like(wide, 32)))


def _state(b: Builder, *words: Instruction) -> Instruction:
    return b.concatenate([b.reshape(w, (1,)) for w in words], 0)


def _three_fry(b: Builder, state: Instruction, type: TensorType) -> Instruction:
    key, first = _word(b, state, 0), _word(b, state, 1)
    if type.element.bits == 64:
        count = type.size
        low, high = _three_fry_block(b, key, _counters(b, first, count))
        bits = b.reshape(_join(b, low, high), type.shape)
    else:
        shape = type.shape or (1,)
        # the words of a counter are neighbours along the first even dimension, or else the longest
        even = [d for d, n in enumerate(shape) if n % 2 == 0]
        split = even[0] if even else shape.index(max(shape))
        half = tuple((n + 1) // 2 if d == split else n for d, n in enumerate(shape))
        count = math.prod(half)
        words = _three_fry_block(b, key, _counters(b, first, count))
        apart = (*half[: split + 1], 1, *half[split + 1 :])
        paired = b.concatenate([b.reshape(w, apart) for w in words], split + 1)
        joined = b.reshape(paired, tuple(2 * n if d == split else n for d, n in enumerate(half)))
        bits = b.convert(b.reshape(b.slice(joined, (0,) * len(shape), shape), type.shape), type.element)
    advanced = b.add(first, b.constant(count, U64))
    return b.tuple(_state(b, key, advanced), bits)


def _three_fry_block(b: Builder, key: Instruction, counters: Instruction) -> tuple[Instruction, Instruction]:
    """Two words for each counter."""
    k0, k1 = _low(b, key), _high(b, key)
    parity = b.xor(b.xor(k0, k1), b.constant(0x1BD11BDA, U32))
    keys = [b.broadcast_scalar(k, counters.shape) for k in (k0, k1, parity)]
    x, y = b.add(_low(b, counters), keys[0]), b.add(_high(b, counters), keys[1])
    for group in range(5):
        for distance in _ROTATIONS[group % 2]:
            x = b.add(x, y)
            left = b.binary("shift-left", y, b.full_like(y, distance))
            right = b.binary("shift-right-logical", y, b.full_like(y, 32 - distance))
            y = b.xor(b.or_(left, right), x)
        x = b.add(x, keys[(group + 1) % 3])
        y = b.add(b.add(y, keys[(group + 2) % 3]), b.full_like(y, group + 1))
    return x, y


def _philox(b: Builder, state: Instruction, type: TensorType) -> Instruction:
    """Counters have 128 bits; a state of two words has its key as the upper half of the first counter too."""
    words = state.shape[0]
    key, low, high = (_word(b, state, k) for k in (0, 1, 2 if words == 3 else 0))
    wide = type.element.bits == 64
    count = -(-type.size * (2 if wide else 1) // 4)
    lows = _counters(b, low, count)
    carry = b.convert(b.compare(lows, b.broadcast_scalar(low, (count,)), "LT"), U64)
    highs = b.add(b.broadcast_scalar(high, (count,)), carry)
    block = [b.reshape(w, (count, 1)) for w in _philox_block(b, key, lows, highs)]
    if wide:
        pairs = [_join(b, block[0], block[1]), _join(b, block[2], block[3])]
        values = b.reshape(b.concatenate(pairs, 1), (2 * count,))
    else:
        values = b.reshape(b.concatenate(block, 1), (4 * count,))
    bits = b.convert(b.reshape(b.slice(values, (0,), (type.size,)), type.shape), type.element)
    advanced = b.add(low, b.constant(count, U64))
    next_words = [key, advanced]
    if words == 3:
        next_words.append(b.add(high, b.convert(b.compare(advanced, low, "LT"), U64)))
    return b.tuple(_state(b, *next_words), bits)


def _philox_block(b: Builder, key: Instruction, lows: Instruction, highs: Instruction) -> tuple[Instruction, ...]:
    """Four words for each counter."""
    k0, k1 = (b.broadcast_scalar(k, lows.shape) for k in (_low(b, key), _high(b, key)))
    w, x, y, z = _low(b, lows), _high(b, lows), _low(b, highs), _high(b, highs)
    for _ in range(10):
        first = b.multiply(b.convert(w, U64), b.full(w.shape, 0xD2511F53, U64))
        second = b.multiply(b.convert(y, U64), b.full(w.shape, 0xCD9E8D57, U64))
        w, x = b.xor(b.xor(_high(b, second), x), k0), _low(b, second)
        y, z = b.xor(b.xor(_high(b, first), z), k1), _low(b, first)
        k0, k1 = b.add(k0, b.full_like(k0, 0x9E3779B9)), b.add(k1, b.full_like(k1, 0xBB67AE85))
    return w, x, y, z
