"""Host memory for native code: addresses of arrays, and aligned blocks."""

import ctypes
import mmap
import sys
from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np

from onnxla.errors import ResourceLimitError

Bytes: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]
ALIGNMENT = 64
_MAPPED_FROM = 1 << 20
_HEADER_BYTES = object.__basicsize__
_word_at = ctypes.c_size_t.from_address


def _addresses_in_headers(arrays: Iterable[np.ndarray[Any, Any]]) -> list[int]:
    return [_word_at(id(array) + _HEADER_BYTES).value for array in arrays]


def _addresses_by_ctypes(arrays: Iterable[np.ndarray[Any, Any]]) -> list[int]:
    return [array.ctypes.data for array in arrays]


def _are_in_headers() -> bool:
    """In CPython, numpy's array objects have the address of their elements right behind the header of every object:
    numpy's binary interface, which extensions are compiled with. It takes a seventh of the time of `ctypes.data`."""
    array = np.arange(2)
    views = (array, array[1:])
    return sys.implementation.name == "cpython" and _addresses_in_headers(views) == _addresses_by_ctypes(views)


addresses_of = _addresses_in_headers if _are_in_headers() else _addresses_by_ctypes
"""The addresses of the first elements of arrays. Who uses them keeps the arrays."""


def address_of(array: np.ndarray[Any, Any]) -> int:
    """The address of an array's first element. Who uses it keeps the array."""
    return addresses_of([array])[0]


def aligned_bytes(size: int) -> Bytes:
    """`size` bytes whose address is a multiple of 64. Large blocks are their own mapping, zero until written.

    Raises ResourceLimitError where the system has not that much memory.
    """
    try:
        if size >= _MAPPED_FROM:
            block = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            if hasattr(mmap, "MADV_HUGEPAGE"):
                block.madvise(mmap.MADV_HUGEPAGE)
            return np.frombuffer(block, np.uint8)
        block_with_slack = np.empty(size + ALIGNMENT, np.uint8)
    except (MemoryError, OSError, ValueError, OverflowError) as error:
        raise ResourceLimitError(f"cannot allocate {size} bytes: {error}") from error
    start = -address_of(block_with_slack) % ALIGNMENT
    return block_with_slack[start : start + size]


def as_aligned(data: Bytes) -> Bytes:
    """`data` itself where its address is a multiple of 64, otherwise an aligned copy."""
    if address_of(data) % ALIGNMENT == 0:
        return data
    copy = aligned_bytes(data.size)
    copy[:] = data
    return copy
