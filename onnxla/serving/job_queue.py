"""`JobQueue`: requests of one version of a model that wait, and which of them run next, together.

Requests that fit together are a group: they have the same code, and what all rows share is equal. Others are a group
for each of them, in effect. The event loop adds and removes; instances take, so that one that has ended a run begins
the next at once. A lock is all that both need.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Hashable, Sequence
from typing import Any

from onnxla.serving.interface import Arranged
from onnxla.serving.model_config import Batching
from onnxla.serving.variant import Variant

clock = time.perf_counter_ns


class Job:
    """A request in the queue."""

    __slots__ = ("variant", "given", "group", "future", "arrived", "began", "until", "timer", "tries")

    def __init__(
        self,
        variant: Variant,
        given: Arranged,
        group: Hashable,
        future: "asyncio.Future[list[Any]]",
        until: float | None,
    ) -> None:
        """`until` (`time.monotonic()`): when it must have begun."""
        self.variant, self.given, self.group, self.future = variant, given, group, future
        self.until = float("inf") if until is None else until
        self.arrived = clock()
        self.began = 0
        """When it was taken; 0 while it waits."""
        self.timer: asyncio.TimerHandle | None = None
        self.tries = 0

    @property
    def rows(self) -> int:
        return self.given.rows or 1


class JobQueue:
    """Everything may be called on any thread."""

    def __init__(self, batching: Batching | None, has_state: bool) -> None:
        self._batching = None if has_state else batching
        self._delay = 0 if batching is None else int(batching.delay * 1e9)
        self._lock = threading.Lock()
        self._groups: dict[Hashable, deque[Job]] = {}
        self._waiting = 0

    def __len__(self) -> int:
        return self._waiting

    def group_of(self, variant: Variant, given: Arranged) -> Hashable:
        """Equal for requests that may run together."""
        if self._batching is None or variant.rows is None or not variant.rows.combines:
            return None
        return (id(variant), given.shared)

    def add(self, job: Job) -> None:
        with self._lock:
            self._groups.setdefault(job.group, deque()).append(job)
            self._waiting += 1

    def put_back(self, jobs: Sequence[Job]) -> None:
        """Jobs that were taken, before all others of their groups."""
        with self._lock:
            for job in reversed(jobs):
                job.began = 0
                self._groups.setdefault(job.group, deque()).appendleft(job)
                self._waiting += 1

    def remove(self, job: Job) -> None:
        """Take one job out, where it still waits."""
        with self._lock:
            group = self._groups.get(job.group)
            if group is not None and not job.began and job in group:
                group.remove(job)
                self._waiting -= 1
                if not group:
                    del self._groups[job.group]

    def clear(self) -> list[Job]:
        """Take all out."""
        with self._lock:
            jobs = [job for group in self._groups.values() for job in group]
            self._groups.clear()
            self._waiting = 0
            return jobs

    def due(self) -> int | None:
        """When (`clock()`) the job that has waited longest waits no more for others; None where there is none."""
        with self._lock:
            return min((group[0].arrived + self._delay for group in self._groups.values()), default=None)

    def take(self) -> list[Job]:
        """The jobs that run next, out of the queue: of the group that has waited longest; none where all wait for
        others. Those that come too late are left to their timers."""
        if not self._waiting:
            return []
        with self._lock:
            now = clock()
            for key in sorted(self._groups, key=lambda k: self._groups[k][0].arrived):
                group = self._groups[key]
                while group and (count := self._count(group, now)):
                    batch = self._in_time([group.popleft() for _ in range(count)])
                    self._waiting -= count
                    if batch:
                        for job in batch:
                            job.began = now
                        if not group:
                            del self._groups[key]
                        return batch
                if not group:
                    del self._groups[key]
            return []

    def _in_time(self, batch: list[Job]) -> list[Job]:
        seconds = time.monotonic()
        return [job for job in batch if job.until > seconds]

    def _count(self, group: "deque[Job]", now: int) -> int:
        """How many of a group run together; 0 where it is worth waiting for more."""
        head = group[0]
        plan = head.variant.rows
        if self._batching is None or plan is None or not plan.combines or head.tries:
            return 1
        rows = best = preferred = 0
        for k, job in enumerate(group):
            if job.tries or rows + job.rows > plan.most:
                break
            rows += job.rows
            best = k + 1
            if rows in self._batching.preferred:
                preferred = k + 1
        is_full = rows == plan.most or best < len(group)
        if is_full or now - head.arrived >= self._delay:
            return max(best, 1)
        return preferred
