"""The checksum of TensorFlow's files: CRC-32C (Castagnoli), of long data in many lanes at once by numpy.

A CRC without its initial value and final complement is linear: that of a joined text is that of its first part,
pushed through as many zero bytes as the second part has, plus (exclusive or) that of the second.
"""

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

_POLYNOMIAL = 0x82F63B78
_MOST_LANES = 1 << 12
_SHORT = 1 << 10
_SHORTEST_LANE = 1 << 6
_ONES = 0xFFFFFFFF
_Words = npt.NDArray[np.uint32]


def _tables() -> _Words:
    """Table k, entry v: the remainder of byte v followed by k zero bytes."""
    table = np.zeros((4, 256), np.uint32)
    values = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        values = np.where(values & 1, (values >> 1) ^ np.uint32(_POLYNOMIAL), values >> 1).astype(np.uint32)
    table[0] = values
    for k in range(1, 4):
        table[k] = (table[k - 1] >> 8) ^ table[0][table[k - 1] & 255]
    return table


_TABLES = _tables()
_BYTES = [int(v) for v in _TABLES[0]]


def extend_crc32c(crc: int, data: Any) -> int:
    """The checksum of what `crc` is the checksum of, followed by `data` (anything with the buffer interface)."""
    view: npt.NDArray[np.uint8] = np.frombuffer(data, np.uint8)
    state = crc ^ _ONES
    while view.size >= _SHORT:
        size = 1 << (view.size.bit_length() - 1)
        state = _many_lanes(view[:size], min(_MOST_LANES, size // _SHORTEST_LANE), state)
        view = view[size:]
    for byte in view.tobytes():
        state = (state >> 8) ^ _BYTES[(state ^ byte) & 255]
    return state ^ _ONES


def crc32c(data: Any) -> int:
    """The checksum of `data`."""
    return extend_crc32c(0, data)


def masked(crc: int) -> int:
    """A checksum as it is stored, so that the checksum of data with checksums in it is no trivial number."""
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & _ONES


def _many_lanes(data: npt.NDArray[np.uint8], count: int, state: int) -> int:
    """The state after `data`, of a power of two of bytes, cut into `count` lanes; the first begins with `state`."""
    length = data.size // count
    columns = np.ascontiguousarray(np.frombuffer(data, "<u4").reshape(count, length // 4).T)
    lanes = np.zeros(count, np.uint32)
    lanes[0] = state
    for column in columns:
        lanes = _looked_up(_TABLES[::-1], lanes ^ column)
    while lanes.size > 1:
        lanes = _looked_up(_zeros_after(length), lanes[0::2]) ^ lanes[1::2]
        length *= 2
    return int(lanes[0])


def _looked_up(tables: _Words, states: _Words) -> _Words:
    """A linear map of states, given by its values at each of their four bytes."""
    found: _Words = (
        tables[0][states & 255]
        ^ tables[1][(states >> 8) & 255]
        ^ tables[2][(states >> 16) & 255]
        ^ tables[3][states >> 24]
    )
    return found


@cache
def _zeros_after(count: int) -> _Words:
    """The map from a state to that after `count` zero bytes, a power of two."""
    if count == 1:
        values = np.arange(256, dtype=np.uint32)
        states: _Words = np.stack([values << np.uint32(8 * k) for k in range(4)])
        after: _Words = (states >> 8) ^ _TABLES[0][states & 255]
        return after
    half = _zeros_after(count // 2)
    return _looked_up(half, half)
