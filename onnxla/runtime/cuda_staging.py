"""Memory of the host that the GPU reads and writes by itself (pinned): copies through it do not hold up the caller.

Buffers have sizes that are powers of two, and are used again when the copy before has been passed. All together they
stay below a bound, but for one more where all are in use: uploads wait for a buffer then, and downloads do without.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from onnxla.runtime.cuda_driver import checked

LARGEST = 8 << 20
"""Bytes of the largest buffer: longer copies go in several pieces."""
BOUND = 128 << 20
"""Bytes of all buffers."""
_SMALLEST = 4 << 10


@dataclass
class Buffer:
    """`size` bytes of pinned memory, free when `mark` has been passed."""

    address: int
    size: int
    mark: Any = None


class Staging:
    """The pinned memory of one device. `passed` and `await_mark` ask and wait for marks of the device."""

    def __init__(self, driver: Any, passed: Callable[[Any], bool], await_mark: Callable[[Any], None]) -> None:
        self._driver, self._passed, self._await = driver, passed, await_mark
        self._lock = threading.Lock()
        self._idle: list[Buffer] = []
        """Buffers that were given back, those used last at the end."""
        self._bytes = 0

    def take(self, size: int) -> Buffer:
        """A buffer of at least `size` bytes, at most LARGEST."""
        while True:
            buffer, oldest = self._find(size)
            if buffer is not None:
                return buffer
            if oldest is None:  # every buffer is in somebody's hands: one more than the bound allows
                return self._allocated(_rounded(size))
            self._await(oldest.mark)

    def take_free(self, size: int) -> Buffer | None:
        """The same without waiting; None where the bound is reached."""
        return self._find(size)[0]

    def give_back(self, buffer: Buffer, mark: Any) -> None:
        """It is used again when `mark` has been passed; at once for None."""
        buffer.mark = mark
        with self._lock:
            self._idle.append(buffer)

    def release(self) -> None:
        """Give all buffers that are not in use back to the system, when their copies are done."""
        with self._lock:
            idle, self._idle = self._idle, []
            self._bytes -= sum(b.size for b in idle)
        for buffer in idle:
            if buffer.mark is not None:
                self._await(buffer.mark)
            checked(self._driver, self._driver.cuMemFreeHost(buffer.address))

    def _find(self, size: int) -> tuple[Buffer | None, Buffer | None]:
        """A buffer, or the one to wait for."""
        wanted = _rounded(size)
        with self._lock:
            for k, buffer in enumerate(self._idle):
                if buffer.size == wanted and (buffer.mark is None or self._passed(buffer.mark)):
                    return self._idle.pop(k), None
            if self._bytes + wanted > BOUND:
                under_way = [b for b in self._idle if b.mark is not None and not self._passed(b.mark)]
                for buffer in self._idle:
                    if buffer not in under_way:
                        checked(self._driver, self._driver.cuMemFreeHost(buffer.address))
                        self._bytes -= buffer.size
                self._idle = under_way
                if self._bytes + wanted > BOUND:
                    return None, under_way[0] if under_way else None
        return self._allocated(wanted), None

    def _allocated(self, size: int) -> Buffer:
        address = int(checked(self._driver, self._driver.cuMemHostAlloc(size, 0)))
        with self._lock:
            self._bytes += size
        return Buffer(address, size)


def _rounded(size: int) -> int:
    return max(1 << (size - 1).bit_length(), _SMALLEST)
