"""Pack buffers with known lifetimes into one block of memory: two that live at the same time never overlap.

Exact packing is NP-hard. Buffers are placed one by one, each into the tightest gap that its time leaves free, in three
orders: the largest first, the longest-lived first, and by the product of both. Each order is then repaired a few
times: the buffer that ends up on top is placed first in the next try. On the networks measured one of these tries
reaches the lower bound, `live_bytes`.
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


_ORDERS: tuple[Callable[[Lifetime], tuple[int, ...]], ...] = (
    lambda life: (-life.bytes, life.first),
    lambda life: (life.first - life.last, -life.bytes),
    lambda life: (-life.bytes * (life.last - life.first + 1),),
)
_TRIES = 12
_PLACEMENTS = 20_000
"""Most placements for each order, so that a program of thousands of buffers does not pack for seconds."""


@dataclass(frozen=True)
class Packing:
    """An offset for each lifetime, and the size of the block."""

    offsets: tuple[int, ...]
    bytes: int


def aligned(size: int) -> int:
    """`size` rounded up to `ALIGNMENT`."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def pack_arena(lifetimes: Sequence[Lifetime]) -> Packing:
    """The smallest of several packings; empty buffers lie at offset 0."""
    numbers = [k for k, life in enumerate(lifetimes) if life.bytes]
    tries = max(1, min(_TRIES, _PLACEMENTS // max(len(numbers), 1)))
    limit = live_bytes(lifetimes)
    best: Packing | None = None
    for order in _ORDERS:
        todo = sorted(numbers, key=lambda k: (order(lifetimes[k]), k))
        for _ in range(tries):
            packing = _pack(lifetimes, todo)
            best = packing if best is None or packing.bytes < best.bytes else best
            if best.bytes == limit:
                return best
            top = next(k for k in todo if packing.offsets[k] + aligned(lifetimes[k].bytes) == packing.bytes)
            todo.remove(top)
            todo.insert(0, top)
    assert best is not None
    return best


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


def _pack(lifetimes: Sequence[Lifetime], todo: Sequence[int]) -> Packing:
    """Place the buffers of `todo`, in this order."""
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
