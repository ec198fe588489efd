"""The watch over one compile: it says how far the work is, and ends the work when its time is over.

`watching(progress, seconds)` puts a watch over all that is called inside. Stages mark out their part of the work with
`span`, and say between their steps (a node, a pass, a kernel) how much of it is done: `part_done` and `check` are where
a compile that takes too long ends, by a ResourceLimitError. Without a watch they do nothing.
"""

import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

from onnxla.errors import ResourceLimitError

Progress: TypeAlias = Callable[[str, float], None]
"""Told the name of what is being done, and the part of the whole work that is done, from 0 to 1."""


class Watch:
    """The state of one compile, as those who wait for it see it."""

    def __init__(self, progress: Progress | None = None, seconds: float | None = None) -> None:
        self._progress = progress
        self._seconds = seconds
        self._end = None if seconds is None else time.monotonic() + seconds
        self._name = ""
        self._from, self._to = 0.0, 1.0

    @property
    def seconds_left(self) -> float | None:
        """None where there is no limit."""
        return None if self._end is None else max(0.0, self._end - time.monotonic())

    def check(self) -> None:
        """Raises ResourceLimitError when the time is over."""
        if self._end is not None and time.monotonic() > self._end:
            doing = f" (it stopped in: {self._name})" if self._name else ""
            raise ResourceLimitError(
                f"compiling takes longer than compile_timeout={self._seconds:g} seconds{doing}; "
                "a larger compile_timeout allows more"
            )

    def part_done(self, part: float) -> None:
        """`part` of the innermost span is done, from 0 to 1. Raises as `check`."""
        self.check()
        if self._progress is not None and self._name:  # before the first stage there is nothing to name
            self._progress(self._name, self._from + (self._to - self._from) * part)

    @contextmanager
    def span(self, name: str, begin: float, end: float) -> Iterator[None]:
        """What follows is the part from `begin` to `end` of the span around; an empty name keeps that one's."""
        around = self._name, self._from, self._to
        length = self._to - self._from
        self._name = name or self._name
        self._from, self._to = self._from + length * begin, self._from + length * end
        try:
            self.part_done(0.0)
            yield
            self.part_done(1.0)
        finally:
            self._name, self._from, self._to = around


def peak_memory() -> int:
    """The most bytes of memory that this process has had at once."""
    try:
        with open("/proc/self/status") as status:
            line = next(line for line in status if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


_NOBODY = Watch()
_current: ContextVar[Watch] = ContextVar("onnxla_watch", default=_NOBODY)


@contextmanager
def watching(progress: Progress | None = None, seconds: float | None = None) -> Iterator[Watch]:
    """A watch over what this thread does inside."""
    watch = Watch(progress, seconds)
    before = _current.set(watch)
    try:
        yield watch
    finally:
        _current.reset(before)


def check() -> None:
    """As `Watch.check`, of the watch over this thread."""
    _current.get().check()


def part_done(part: float) -> None:
    """As `Watch.part_done`, of the watch over this thread."""
    _current.get().part_done(part)


def seconds_left() -> float | None:
    """As `Watch.seconds_left`, of the watch over this thread."""
    return _current.get().seconds_left


@contextmanager
def span(name: str, begin: float, end: float) -> Iterator[None]:
    """As `Watch.span`, of the watch over this thread. A stage in which nobody watches the time leaves no trace."""
    watch = _current.get()
    if watch is _NOBODY:  # shared by all threads, so it keeps no state
        yield
        return
    with watch.span(name, begin, end):
        yield
