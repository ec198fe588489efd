"""Memory of the simulated device, and who touched it: out-of-bounds, misaligned, uninitialised and racing accesses.

Two accesses to one byte race when at least one writes, different threads made them, and no barrier stands between:
threads of different blocks have none at all. That does not depend on the order in which the simulator runs threads.
"""

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
BASE = 1 << 32
"""Address of the first byte of global memory."""
_NOBODY, _MANY = 0, -1
"""In place of the numbers of threads and blocks, which begin with 1: memory of zeros takes room once it is written."""


class Reports(Counter[tuple[str, str]]):
    """How often each fault occurred, by kind and instruction."""

    def take(self, other: "Reports") -> None:
        """Count what another run reported as well."""
        self.update(other)
        self.conflicts.update(other.conflicts)
        self.sectors.update(other.sectors)
        self.full_sectors.update(other.full_sectors)

    def note(self, fault: str, text: str, where: Array) -> None:
        if where.any():
            self[fault, text] += int(where.sum())

    def __init__(self) -> None:
        super().__init__()
        self.conflicts: Counter[str] = Counter()
        """Rounds lost to bank conflicts of shared memory, by instruction: slow, but no fault."""
        self.sectors: Counter[str] = Counter()
        """Pieces of 32 bytes of global memory that warps touched, by instruction, each time they did."""
        self.full_sectors: Counter[str] = Counter()
        """As many as would hold the bytes they asked for."""

    @property
    def kinds(self) -> set[str]:
        return {kind for kind, _ in self}


def bank_conflicts(offset: Array, warp: Array, lane: Array, size: int) -> int:
    """How many extra rounds an access to shared memory takes: the 32 banks are 4 bytes wide and give one word a round.

    Accesses of 8 and 16 bytes are made by half and quarter warps at a time.
    """
    words = max(size // 4, 1)
    turn = warp.astype(np.int64) * words + lane // (32 // words)
    word = offset[:, None] // 4 + np.arange(words)
    turns, asked = _apart(np.unique(_together(turn[:, None], word)))
    which = np.cumsum(np.diff(turns, prepend=turns[:1]) != 0)
    counts = np.bincount(32 * which + asked % 32, minlength=32 * (which[-1] + 1)).reshape(-1, 32)
    return int((counts.max(axis=1) - 1).clip(0).sum())


def _together(high: Array, low: Array) -> Array:
    """Pairs of numbers as one number each: numpy finds the distinct ones of these fastest."""
    return np.asarray(high << 40 | low).ravel()


def _apart(pairs: Array) -> tuple[Array, Array]:
    return pairs >> 40, pairs & ((1 << 40) - 1)


SECTOR = 32
"""Bytes of global memory that are brought together."""


def sectors(offset: Array, warp: Array, size: int) -> tuple[int, int]:
    """How many sectors the warps touch, and how many would hold the bytes that they ask for."""
    byte = np.unique(_together(warp.astype(np.int64)[:, None], offset[:, None] + np.arange(size)))
    warps, places = _apart(byte)
    touched = np.unique(_together(warps, places // SECTOR)).size
    asked = np.unique(warps, return_counts=True)[1]
    return touched, int((-(-asked // SECTOR)).sum())


class RaceLog:
    """Who last read and wrote each of `size` bytes."""

    def __init__(self, size: int, threads: int) -> None:
        self.threads = threads
        self.writer = np.zeros(size, np.int64)
        self.written = np.zeros(size, np.int32)
        self.reader = np.zeros(size, np.int64)
        self.reading_block = np.zeros(size, np.int64)
        self.read = np.zeros(size, np.int32)

    def access(self, at: Array, thread: Array, epoch: Array, writes: bool) -> Array:
        """Note an access of each thread (numbered through all blocks) to a byte; returns which accesses race."""
        block, thread = thread // self.threads + 1, thread + 1
        writer = self.writer[at]
        other = (writer != _NOBODY) & (writer != thread)
        race = other & (((writer - 1) // self.threads + 1 != block) | (self.written[at] == epoch))
        reader, reading_block = self.reader[at], self.reading_block[at]
        if writes:
            race |= (reading_block != _NOBODY) & (reading_block != block)
            race |= (reading_block == block) & (self.read[at] == epoch) & (reader != thread)
            self.writer[at], self.written[at] = thread, epoch
            return np.asarray(race | (self.writer[at] != thread))
        crowd = (reading_block == block) & (self.read[at] == epoch) & (reader != thread)
        now = np.where(crowd, _MANY, thread)
        self.reader[at] = now
        self.reader[at[self.reader[at] != now]] = _MANY
        blocks = np.where((reading_block == _NOBODY) | (reading_block == block), block, _MANY)
        self.reading_block[at] = blocks
        self.reading_block[at[self.reading_block[at] != blocks]] = _MANY
        self.read[at] = epoch
        return np.asarray(race)


class GlobalMemory:
    """The device's memory: allocations lie apart, so that reaching past one is noticed."""

    def __init__(self, size: int = 1 << 12) -> None:
        self.data = np.zeros(size, np.uint8)
        self.allocated = np.zeros(size, bool)
        self._next = 256

    def allocate(self, size: int) -> int:
        """An address with 256-byte alignment."""
        start = self._next
        self._next = -(-(start + size) // 256) * 256 + 256
        if self._next > self.data.size:
            grown = max(2 * self.data.size, self._next)
            self.data, self.allocated = _lengthened(self.data, grown), _lengthened(self.allocated, grown)
        self.allocated[start : start + size] = True
        return BASE + start

    def free(self, address: int, size: int) -> None:
        """Accesses to it are faults from here on."""
        self.allocated[address - BASE : address - BASE + size] = False

    def write(self, address: int, array: Array) -> None:
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        self.data[address - BASE : address - BASE + data.size] = data

    def read(self, address: int, size: int) -> Array:
        return self.data[address - BASE : address - BASE + size].copy()

    def checked(self, address: Array, size: int, text: str, reports: Reports) -> Array:
        """Offsets of accesses of `size` bytes; faulty ones are reported and led to offset 0."""
        offset = address - BASE
        reports.note("misaligned global access", text, offset % size != 0)
        outside = (offset < 0) | (offset + size > self.data.size)
        safe = np.where(outside, 0, offset)
        outside |= ~(self.allocated[safe] & self.allocated[safe + size - 1])
        reports.note("out-of-bounds global access", text, outside)
        return np.where(outside, 0, offset)


def _lengthened(array: Array, size: int) -> Array:
    longer = np.zeros(size, array.dtype)
    longer[: array.size] = array
    return longer
