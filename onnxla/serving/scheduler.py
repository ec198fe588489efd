"""The queue of one version of a model: which requests run next, together, on which instance.

All of it runs on the event loop; instances run what they are given on threads of their own. Requests that fit together
are a group: they have the same code, and what all rows share is equal. Others are a group for each of them, in effect.
"""

import asyncio
import functools
import logging
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from onnxla.errors import InputError, OnnxlaError, ResourceLimitError
from onnxla.serving.errors import DeadlineError, InvalidRequestError, NotReadyError, OverloadedError, ServingError
from onnxla.serving.instances import Instance, Runner, WorkerDied
from onnxla.serving.interface import Arranged
from onnxla.serving.model_config import Batching
from onnxla.serving.recorder import Recorder
from onnxla.serving.rows import RowsPlan, join, split
from onnxla.serving.variant import Variant

_LOG = logging.getLogger("onnxla.serving")
_MOST_TRIES = 3
"""Workers that one request may end before it is refused."""
_clock = time.perf_counter_ns


class _Job:
    """A request in the queue."""

    __slots__ = ("variant", "given", "group", "future", "arrived", "began", "timer", "tries")

    def __init__(self, variant: Variant, given: Arranged, group: Hashable, future: "asyncio.Future[list[Any]]") -> None:
        self.variant, self.given, self.group, self.future = variant, given, group, future
        self.arrived = _clock()
        self.began = 0
        self.timer: asyncio.TimerHandle | None = None
        self.tries = 0

    @property
    def rows(self) -> int:
        return self.given.rows or 1


class Scheduler:
    def __init__(
        self,
        runners: Sequence[Runner],
        recorder: Recorder,
        *,
        name: str,
        batching: Batching | None,
        queue_size: int,
        inline_seconds: float,
        has_state: bool,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._name = name
        self._instances = [Instance(r, f"onnxla-{name}-{k}") for k, r in enumerate(runners)]
        self._idle = list(self._instances)
        self._recorder = recorder
        self._batching = batching
        self._delay = 0.0 if batching is None else batching.delay
        self._queue_size = queue_size
        self._inline = inline_seconds if runners[0].inline else 0.0
        self._has_state = has_state
        self._groups: dict[Hashable, deque[_Job]] = {}
        self._waiting = 0
        self._timer: asyncio.TimerHandle | None = None
        self._seconds = 0.01
        """How long a request keeps an instance, about."""
        self._closed = False
        self._state_lost = ""

    async def prepare(self, variants: Sequence[Variant], work: Callable[[Runner], None]) -> None:
        """Get every instance ready, and let it do `work`. Nothing else may run yet. Raises what that raises."""
        done = [self._loop.create_future() for _ in self._instances]
        for instance, future in zip(self._instances, done, strict=True):
            instance.start(functools.partial(self._prepare, variants, work, future))
        for error in await asyncio.gather(*done):
            if error is not None:
                raise error

    def _prepare(
        self,
        variants: Sequence[Variant],
        work: Callable[[Runner], None],
        future: "asyncio.Future[BaseException | None]",
        runner: Runner,
    ) -> None:
        found: BaseException | None = None
        try:
            runner.prepare(variants)
            work(runner)
        except BaseException as error:
            found = error

        def finish() -> None:
            if not future.done():
                future.set_result(found)

        self._tell(finish)

    def _tell(self, call: Callable[..., Any], *arguments: Any) -> None:
        """Have the event loop call something; it may be closed already."""
        try:
            self._loop.call_soon_threadsafe(call, *arguments)
        except RuntimeError:
            _LOG.debug("a run ended behind its event loop")

    @property
    def waiting(self) -> int:
        return self._waiting

    @property
    def running(self) -> int:
        """Instances at work."""
        return len(self._instances) - len(self._idle)

    async def run(self, variant: Variant, given: Arranged, expires: float | None, begin_by: float | None) -> list[Any]:
        """The outputs for one request. `expires` and `begin_by` (`time.monotonic()`): when nobody waits any more, and
        when it must have begun. Raises ServingErrors. Cancelling it takes the request out of the queue."""
        if expires is not None and expires <= time.monotonic():
            raise DeadlineError("the request came after its deadline")
        if not self._waiting and self._idle and self._runs_inline(variant, given):
            return self._run_now(variant, given)
        if self._waiting >= self._queue_size:
            wait = self._waiting * self._seconds / len(self._instances)
            raise OverloadedError(
                f"{self._waiting} requests wait for this model already",
                retry_after=round(min(max(wait, 0.05), 60.0), 3),
            )
        if self._closed or self._state_lost:
            raise NotReadyError(self._state_lost or "the model is unloaded")
        job = _Job(variant, given, self._group_of(variant, given), self._loop.create_future())
        until = min((t for t in (expires, begin_by) if t is not None), default=None)
        if until is not None:
            job.timer = self._loop.call_later(until - time.monotonic(), self._too_late, job, expires)
        group = self._groups.get(job.group)
        if group is None:
            group = self._groups[job.group] = deque()
        group.append(job)
        self._waiting += 1
        self._dispatch()
        try:
            return await job.future
        except asyncio.CancelledError:
            self._remove(job)
            raise
        finally:
            if job.timer is not None:
                job.timer.cancel()

    def close(self) -> None:
        """What waits is refused; what runs goes on."""
        self._closed = True
        self._refuse_all("the model is unloaded")
        if self._timer is not None:
            self._timer.cancel()
        for instance in self._instances:
            instance.close()

    def _refuse_all(self, text: str) -> None:
        for group in list(self._groups.values()):
            for job in list(group):
                self._remove(job)
                if not job.future.done():
                    job.future.set_exception(NotReadyError(text))

    # Runs on the event loop

    def _runs_inline(self, variant: Variant, given: Arranged) -> bool:
        if not self._inline:
            return False
        plan = variant.rows
        size = 0
        if plan is not None:
            found = plan.size_for(given.rows)
            if found is None or (self._delay and plan.combines and given.rows < plan.most):
                return False
            size = found
        return variant.seconds.get(size, 1.0) <= self._inline

    def _run_now(self, variant: Variant, given: Arranged) -> list[Any]:
        began = _clock()
        runner = self._idle[-1].runner
        try:
            size, results = _run_jobs(runner, variant, [given])
        except Exception as error:
            raise serving_error(error) from error
        ended = _clock()
        variant.measured(size, (ended - began) / 1e9)
        self._recorder.run(given.rows or 1, began, ended)
        self._recorder.request(began, began, ended, given.rows or 1)
        return results[0]

    # The queue

    def _group_of(self, variant: Variant, given: Arranged) -> Hashable:
        if self._batching is None or variant.rows is None or not variant.rows.combines or self._has_state:
            return None
        return (id(variant), given.shared)

    def _remove(self, job: _Job) -> None:
        """Take a job out of the queue, where it still is."""
        group = self._groups.get(job.group)
        if group is None or job.began:
            return
        try:
            group.remove(job)
        except ValueError:
            return
        self._waiting -= 1
        if not group:
            del self._groups[job.group]

    def _too_late(self, job: _Job, expires: float | None) -> None:
        if job.future.done():
            return
        if job.began:
            left = float("inf") if expires is None else expires - time.monotonic()
            if left <= 0:
                job.future.set_exception(DeadlineError("the deadline passed while the model ran"))
            elif expires is not None:  # the bound that is over was that of the queue
                job.timer = self._loop.call_later(left, self._too_late, job, expires)
            return
        self._remove(job)
        job.future.set_exception(DeadlineError("the deadline passed while the request waited for the model"))

    def _dispatch(self) -> None:
        while self._idle and self._groups:
            batch = self._take()
            if not batch:
                return
            instance = self._idle.pop()
            now = _clock()
            for job in batch:
                job.began = now
            instance.start(functools.partial(self._work, instance, batch))

    def _take(self) -> list[_Job]:
        """The requests that run next, taken from the queue: the group that has waited longest; none where all wait."""
        now = _clock()
        earliest: int | None = None
        for key in sorted(self._groups, key=lambda k: self._groups[k][0].arrived):
            group = self._groups[key]
            count = self._count(group, now)
            if count:
                batch = [group.popleft() for _ in range(count)]
                if not group:
                    del self._groups[key]
                self._waiting -= count
                return batch
            until = group[0].arrived + int(self._delay * 1e9)
            earliest = until if earliest is None else min(earliest, until)
        if earliest is not None:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_later(max(0.0, (earliest - now) / 1e9), self._dispatch)
        return []

    def _count(self, group: "deque[_Job]", now: int) -> int:
        """How many of a group run together; 0 where it is worth waiting for more."""
        head = group[0]
        plan = head.variant.rows
        if self._batching is None or plan is None or not plan.combines or head.tries or self._has_state:
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
        if is_full or now - head.arrived >= self._delay * 1e9:
            return max(best, 1)
        return preferred

    # On the thread of an instance

    def _work(self, instance: Instance, batch: list[_Job], runner: Runner) -> None:
        began = _clock()
        outcome: Any
        size = 0
        try:
            size, outcome = _run_jobs(runner, batch[0].variant, [job.given for job in batch])
        except BaseException as error:
            outcome = error
        ended = _clock()
        self._tell(self._done, instance, batch, size, outcome, began, ended)

    def _done(self, instance: Instance, batch: list[_Job], size: int, outcome: Any, began: int, ended: int) -> None:
        if isinstance(outcome, WorkerDied):
            self._replace(instance, outcome)
        else:
            self._idle.append(instance)
        if isinstance(outcome, BaseException):
            self._failed(batch, outcome)
        else:
            rows = sum(job.rows for job in batch)
            seconds = (ended - began) / 1e9
            batch[0].variant.measured(size, seconds)
            self._seconds += (seconds / len(batch) - self._seconds) * 0.05
            self._recorder.run(rows, began, ended)
            for job, results in zip(batch, outcome, strict=True):
                if not job.future.done():
                    job.future.set_result(results)
                    self._recorder.request(job.arrived, job.began, _clock(), job.rows)
        self._dispatch()

    def _replace(self, instance: Instance, error: WorkerDied) -> None:
        """Let an instance whose worker died have another; until then the others serve."""
        self._recorder.measurements.worker_restarts += 1
        _LOG.error("a worker of %s died: %s", self._name, error)
        if self._has_state:
            self._state_lost = f"the model's state is lost with its worker, so it must be loaded again: {error}"
            self._refuse_all(self._state_lost)
            return

        def prepare(runner: Runner) -> None:
            try:
                runner.prepare(())
            except Exception as error:
                _LOG.error("no worker of %s can be started: %s", self._name, error)
            self._tell(ready)

        def ready() -> None:
            self._idle.append(instance)
            self._dispatch()

        instance.start(prepare)

    def _failed(self, batch: list[_Job], error: BaseException) -> None:
        """Run again what may succeed: requests that were together, each alone; those whose worker died."""
        again = []
        for job in batch:
            job.tries += 1
            died = isinstance(error, WorkerDied)
            if job.future.done():
                continue
            if self._closed or (job.tries >= _MOST_TRIES if died else len(batch) == 1) or (died and self._has_state):
                job.future.set_exception(self._lost(job, error) if died else serving_error(error))
            else:
                again.append(job)
        for job in reversed(again):
            job.began = 0
            self._groups.setdefault(job.group, deque()).appendleft(job)
            self._waiting += 1

    def _lost(self, job: _Job, error: BaseException) -> ServingError:
        if self._has_state:
            return ServingError(f"the worker ended while it ran this request, and the model's state with it: {error}")
        return ServingError(f"the worker ended while it ran this request, {job.tries} times: {error}")


def _run_jobs(runner: Runner, variant: Variant, given: Sequence[Arranged]) -> tuple[int, list[list[Any]]]:
    """(rows of the code, outputs of each request)."""
    plan = variant.rows
    if plan is None:
        return 0, [runner.run(variant, given[0].arrays)]
    counts = [g.rows for g in given]
    size = plan.size_for(sum(counts))
    if size is None:  # one request, for which there is no code
        raise InvalidRequestError(f"there is no code for {sum(counts)} rows; there is for {_sizes(plan)}")
    if len(counts) == 1 and counts[0] == size:
        return size, [runner.run(variant, given[0].arrays)]
    arrays = join(plan, [g.arrays for g in given], size)
    return size, split(plan, runner.run(variant, arrays), counts, size)


def _sizes(plan: RowsPlan) -> str:
    return ", ".join(str(rows) if least == rows else f"{least} to {rows}" for least, rows in plan.ranges)


def serving_error(error: BaseException) -> ServingError:
    """The error that a client is told."""
    match error:
        case ServingError():
            return error
        case InputError() | UnicodeDecodeError():
            return InvalidRequestError(str(error))
        case ResourceLimitError() | MemoryError():
            return OverloadedError(f"the run met a limit: {error}", retry_after=1.0)
        case OnnxlaError():
            _LOG.error("a run failed: %s", error)
            return ServingError(f"{type(error).__name__}: {error}")
    _LOG.error("a run failed", exc_info=error)
    return ServingError(f"the model failed: {type(error).__name__}")
