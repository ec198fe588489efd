"""Host memory for native code: aligned blocks, and the arenas of concurrent runs."""

import mmap
import threading
from typing import Any, TypeAlias

import numpy as np

from onnxla.errors import ResourceLimitError

Bytes: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]
ALIGNMENT = 64
_MAPPED_FROM = 1 << 20


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
    start = -block_with_slack.ctypes.data % ALIGNMENT
    return block_with_slack[start : start + size]


def as_aligned(data: Bytes) -> Bytes:
    """`data` itself where its address is a multiple of 64, otherwise an aligned copy."""
    if data.ctypes.data % ALIGNMENT == 0:
        return data
    copy = aligned_bytes(data.size)
    copy[:] = data
    return copy


class ArenaPool:
    """Arenas of one size: `take` gives one that nobody else uses, `give` returns it for the next run."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._free: list[Bytes] = []
        self._lock = threading.Lock()

    def take(self) -> Bytes:
        with self._lock:
            if self._free:
                return self._free.pop()
        return aligned_bytes(self.size)

    def give(self, arena: Bytes) -> None:
        with self._lock:
            self._free.append(arena)

    def trim(self) -> None:
        """Give the memory of idle arenas back to the system."""
        with self._lock:
            self._free.clear()
