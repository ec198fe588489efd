"""Run compiled code with every tensor between pages that cannot be touched: what reads or writes outside one crashes.

Inputs, outputs, the weights, and each buffer of the arena end where a page without access begins, and another lies
before them. Arena buffers start on 64 bytes, so up to 63 bytes behind one are no guard; what is written there is seen
after the run.
"""

import ctypes
import mmap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

import onnxla
from onnxla.codegen.arena import Lifetime, Packing, aligned
from onnxla.hlo.types import Array
from tests.fuzz.graph import Case

_PAGE = mmap.PAGESIZE
_CANARY = 0xA5
_LIBC = ctypes.CDLL(None, use_errno=True)


class Overrun(AssertionError):
    """Code wrote behind a buffer."""


def _forbid(block: mmap.mmap, offset: int, size: int) -> None:
    address = ctypes.addressof(ctypes.c_char.from_buffer(block)) + offset
    if _LIBC.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(size), 0):
        raise OSError(ctypes.get_errno(), "mprotect")


def guarded(size: int) -> Array:
    """`size` bytes that end at a page without access, and begin behind one."""
    room = -(-size // _PAGE) * _PAGE
    block = mmap.mmap(-1, room + 2 * _PAGE)
    _forbid(block, 0, _PAGE)
    _forbid(block, _PAGE + room, _PAGE)
    return np.frombuffer(block, np.uint8, size, _PAGE + room - size)


def guarded_copy(array: Array) -> Array:
    copy = guarded(array.nbytes).view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


class _Arena:
    """The last packing, and arenas whose gaps are forbidden."""

    def __init__(self) -> None:
        self.buffers: list[tuple[int, int]] = []
        self.arena: Array | None = None

    def pack(self, lifetimes: Sequence[Lifetime]) -> Packing:
        """Pages of its own for every buffer, and one between."""
        top = _PAGE
        offsets, self.buffers = [], []
        for life in lifetimes:
            size = aligned(life.bytes)
            room = -(-size // _PAGE) * _PAGE
            offsets.append(top + room - size if size else 0)
            if size:
                self.buffers.append((offsets[-1], life.bytes))
                top += room + _PAGE
        return Packing(tuple(offsets), top)

    def make(self, size: int) -> Array:
        block = mmap.mmap(-1, max(size, _PAGE))
        arena = np.frombuffer(block, np.uint8)
        arena[:] = _CANARY
        free = 0
        for offset, length in sorted(self.buffers):
            first = offset // _PAGE * _PAGE
            _forbid(block, free, first - free)
            free = first + -(-(offset + aligned(length) - first) // _PAGE) * _PAGE
        _forbid(block, free, len(block) - free)
        self.arena = arena
        return arena

    def check(self) -> None:
        if self.arena is None:
            return
        for offset, length in self.buffers:
            behind = self.arena[offset + length : offset + aligned(length)]
            before = self.arena[offset // _PAGE * _PAGE : offset]
            if (behind != _CANARY).any() or (before != _CANARY).any():
                raise Overrun(f"bytes around the arena buffer at {offset} of {length} bytes were written")


@contextmanager
def guard_pages() -> Iterator[_Arena]:
    """Compile and run at once inside: one model, whose arena is laid out for guards."""
    arena = _Arena()
    with (
        patch("onnxla.codegen.planner.pack_arena", arena.pack),
        patch("onnxla.runtime.executable.aligned_bytes", arena.make),
        patch("onnxla.runtime.executable.as_aligned", lambda data: _guarded_weights(data)),
    ):
        yield arena


def _guarded_weights(data: Array) -> Array:
    size = aligned(data.size)
    copy = guarded(size)[: data.size]
    copy[:] = data
    return copy


def run_guarded(case: Case, like: Sequence[Array], options: Mapping[str, Any] | None = None) -> list[Array]:
    """The outputs of the model, arrays as those of `like`, from code compiled and run between guards."""
    with guard_pages() as arena:
        model = onnxla.compile(case.model.SerializeToString(), options=options, num_threads=2)
        feeds = {name: guarded_copy(a) for name, a in case.feeds.items()}
        out = [guarded_copy(np.zeros_like(a)) for a in like]
        results = model.run(None, feeds, out=out)
        arena.check()
    return results
