"""Pack buffers with known lifetimes into one block of memory: two that live at the same time never overlap.

Exact packing is NP-hard. Placing the largest buffer first, each into the tightest gap that its time leaves free, is
within a few percent of the lower bound on real models; the order of first use is tried as well and the smaller
arena is kept.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

ALIGNMENT = 64
"""Of every arena buffer: a cache line, and the widest vector."""


@dataclass(frozen=True)
class Lifetime:
    """A buffer of `bytes` that is in use from step `first` to step `last`, both included."""

    first: int
    last: int
    bytes: int


@dataclass(frozen=True)
class Packing:
    """An offset for each lifetime, and the size of the block."""

    offsets: tuple[int, ...]
    bytes: int


def aligned(size: int) -> int:
    """`size` rounded up to `ALIGNMENT`."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def pack_arena(lifetimes: Sequence[Lifetime]) -> Packing:
    """The smaller of two packings; empty buffers lie at offset 0."""
    by_size: Callable[[int], tuple[int, ...]] = lambda k: (-lifetimes[k].bytes, lifetimes[k].first, k)  # noqa: E731
    by_time: Callable[[int], tuple[int, ...]] = lambda k: (lifetimes[k].first, -lifetimes[k].bytes, k)  # noqa: E731
    return min((_pack(lifetimes, order) for order in (by_size, by_time)), key=lambda packing: packing.bytes)


def live_bytes(lifetimes: Sequence[Lifetime]) -> int:
    """The most bytes alive at one step: no packing is smaller."""
    changes: dict[int, int] = {}
    for life in lifetimes:
        changes[life.first] = changes.get(life.first, 0) + aligned(life.bytes)
        changes[life.last + 1] = changes.get(life.last + 1, 0) - aligned(life.bytes)
    live = peak = 0
    for step in sorted(changes):
        live += changes[step]
        peak = max(peak, live)
    return peak


def _pack(lifetimes: Sequence[Lifetime], order: Callable[[int], tuple[int, ...]]) -> Packing:
    todo = sorted((k for k, life in enumerate(lifetimes) if life.bytes), key=order)
    offsets = [0] * len(lifetimes)
    first, last, start, end = (np.zeros(len(todo), np.int64) for _ in range(4))
    for count, k in enumerate(todo):
        life, size = lifetimes[k], aligned(lifetimes[k].bytes)
        rivals = np.flatnonzero((first[:count] <= life.last) & (last[:count] >= life.first))
        rivals = rivals[np.argsort(start[rivals], kind="stable")]
        offsets[k] = _tightest_gap(start[rivals].tolist(), end[rivals].tolist(), size)
        first[count], last[count], start[count], end[count] = life.first, life.last, offsets[k], offsets[k] + size
    return Packing(tuple(offsets), int(end.max(initial=0)))


def _tightest_gap(starts: list[int], ends: list[int], size: int) -> int:
    """The offset of the smallest gap of at least `size` between blocks sorted by start; else behind them all."""
    best, best_room, free = -1, 0, 0
    for start, end in zip(starts, ends, strict=True):
        room = start - free
        if room >= size and (best < 0 or room < best_room):
            best, best_room = free, room
        free = max(free, end)
    return free if best < 0 else best
