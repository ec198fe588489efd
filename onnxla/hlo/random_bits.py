"""Counter-based random bits, as XLA's rng-bit-generator defines them: threefry and philox.

Both turn a counter into bits under a key; the state is the key followed by the counter, and the
next state has the counter advanced by the number of counters used. See Salmon et al., "Parallel
random numbers: as easy as 1, 2, 3" (2011).
"""

import math

import numpy as np

from onnxla.hlo.types import Array, TensorType

_LOW = np.uint64(0xFFFFFFFF)


def three_fry(state: Array, type: TensorType) -> tuple[Array, Array]:
    """The next state (u64[2]) and bits of `type`. A counter gives two words: one u64, or two u32 a dimension apart."""
    key, first = state[0], state[1]
    if type.element.bits == 64:
        count = type.size
        low, high = _three_fry_block(key, first + np.arange(count, dtype=np.uint64))
        bits = _join(low, high).reshape(type.shape)
    else:
        shape = type.shape or (1,)
        # the words of a counter are neighbours along the first even dimension, or else the longest
        even = [d for d, n in enumerate(shape) if n % 2 == 0]
        split = even[0] if even else int(np.argmax(shape))
        half = tuple((n + 1) // 2 if d == split else n for d, n in enumerate(shape))
        count = math.prod(half)
        words = _three_fry_block(key, first + np.arange(count, dtype=np.uint64))
        paired = np.stack([w.reshape(half) for w in words], axis=split + 1)
        bits = paired.reshape([2 * n if d == split else n for d, n in enumerate(half)])
        bits = bits[tuple(slice(n) for n in shape)].reshape(type.shape).astype(type.element.dtype)
    return np.array([key, first + np.uint64(count)]), bits


def philox(state: Array, type: TensorType) -> tuple[Array, Array]:
    """The next state (u64[2] or u64[3]) and bits of `type`, from four u32 words a counter of 128 bits.

    A state of two has its key as the upper half of the first counter too.
    """
    key, low, high = state[0], state[1], state[2] if state.size == 3 else state[0]
    wide = type.element.bits == 64
    count = -(-type.size * (2 if wide else 1) // 4)
    lows = low + np.arange(count, dtype=np.uint64)
    highs = high + (lows < low)
    words = np.stack(_philox_block(key, lows, highs), axis=-1).reshape(-1)
    values = _join(words[::2], words[1::2]) if wide else words
    bits = values[: type.size].reshape(type.shape).astype(type.element.dtype)
    advanced = low + np.uint64(count)
    return np.array([key, advanced, high + (advanced < low)])[: state.size], bits


def _split(values: Array) -> tuple[Array, Array]:
    """The low and the high u32 of u64 values."""
    return (values & _LOW).astype(np.uint32), (values >> np.uint64(32)).astype(np.uint32)


def _join(low: Array, high: Array) -> Array:
    return np.asarray(low.astype(np.uint64) | (high.astype(np.uint64) << np.uint64(32)))


_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def _three_fry_block(key: Array, counters: Array) -> tuple[Array, Array]:
    """Threefry 2x32 of 20 rounds: two words for each counter."""
    k0, k1 = _split(np.asarray([key]))
    keys = (k0, k1, k0 ^ k1 ^ np.uint32(0x1BD11BDA))
    low, high = _split(counters)
    x, y = low + keys[0], high + keys[1]
    for group in range(5):
        for distance in _ROTATIONS[group % 2]:
            x = x + y
            y = ((y << np.uint32(distance)) | (y >> np.uint32(32 - distance))) ^ x
        x = x + keys[(group + 1) % 3]
        y = y + keys[(group + 2) % 3] + np.uint32(group + 1)
    return x, y


def _philox_block(key: Array, lows: Array, highs: Array) -> tuple[Array, Array, Array, Array]:
    """Philox 4x32 of 10 rounds: four words for each counter."""
    k0, k1 = _split(np.asarray([key]))
    (a, b), (c, d) = _split(lows), _split(highs)
    for _ in range(10):
        low0, high0 = _split(a.astype(np.uint64) * np.uint64(0xD2511F53))
        low1, high1 = _split(c.astype(np.uint64) * np.uint64(0xCD9E8D57))
        a, b, c, d = high1 ^ b ^ k0, low1, high0 ^ d ^ k1, low0
        k0, k1 = k0 + np.uint32(0x9E3779B9), k1 + np.uint32(0xBB67AE85)
    return a, b, c, d
