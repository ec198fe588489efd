"""Runs the requests of one version of a model: which instance runs them, when they are too late, what came of them.

All of it is on the event loop but the runs. Short ones are on the thread that asks, others on the instances' threads.
An instance that has ended one takes the next jobs from the queue itself, and the loop tells those who wait while it
runs.
"""

import asyncio
import functools
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

from onnxla.errors import InputError, OnnxlaError, ResourceLimitError
from onnxla.serving.errors import DeadlineError, InvalidRequestError, NotReadyError, OverloadedError, ServingError
from onnxla.serving.instances import Instance, Runner, WorkerDied
from onnxla.serving.interface import Arranged
from onnxla.serving.job_queue import Job, JobQueue, clock
from onnxla.serving.model_config import Batching
from onnxla.serving.recorder import Recorder
from onnxla.serving.rows import RowsPlan, join, split
from onnxla.serving.variant import Variant

_LOG = logging.getLogger("onnxla.serving")
_MOST_TRIES = 3
"""Workers that one request may end before it is refused."""


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
        """Whoever takes one out may use it."""
        self._recorder = recorder
        self._delay = 0.0 if batching is None else batching.delay
        self._queue_size = queue_size
        self._inline = inline_seconds if runners[0].inline else 0.0
        self._has_state = has_state
        self._queue = JobQueue(batching, has_state)
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
        return len(self._queue)

    @property
    def running(self) -> int:
        """Instances at work."""
        return len(self._instances) - len(self._idle)

    @property
    def runs_now(self) -> bool:
        """Whether `run_now` is worth being asked."""
        return bool(self._inline and self._idle and not self._queue)

    async def run(self, variant: Variant, given: Arranged, expires: float | None, begin_by: float | None) -> list[Any]:
        """The outputs for one request. `expires` and `begin_by` (`time.monotonic()`): when nobody waits any more, and
        when it must have begun. Raises ServingErrors. Cancelling it takes the request out of the queue."""
        if (results := self.run_now(variant, given, expires)) is not None:
            return results
        waiting = len(self._queue)
        if waiting >= self._queue_size:
            wait = waiting * self._seconds / len(self._instances)
            raise OverloadedError(
                f"{waiting} requests wait for this model already",
                retry_after=round(min(max(wait, 0.05), 60.0), 3),
            )
        if self._closed or self._state_lost:
            raise NotReadyError(self._state_lost or "the model is unloaded")
        until = min((t for t in (expires, begin_by) if t is not None), default=None)
        job = Job(variant, given, self._queue.group_of(variant, given), self._loop.create_future(), until)
        if until is not None:
            job.timer = self._loop.call_later(until - time.monotonic(), self._too_late, job, expires)
        self._queue.add(job)
        self._dispatch()
        try:
            return await job.future
        except asyncio.CancelledError:
            self._queue.remove(job)
            raise
        finally:
            if job.timer is not None:
                job.timer.cancel()

    def run_now(self, variant: Variant, given: Arranged, expires: float | None) -> list[Any] | None:
        """On any thread, the outputs for one request, where its run is short, nothing waits and an instance is idle;
        None where it is not so. Raises ServingErrors."""
        if expires is not None and expires <= time.monotonic():
            raise DeadlineError("the request came after its deadline")
        if self._queue or not self._is_short(variant, given):
            return None
        try:
            instance = self._idle.pop()
        except IndexError:
            return None
        try:
            began = clock()
            size, results = _run_jobs(instance.runner, variant, [given])
        except Exception as error:
            raise serving_error(error) from error
        finally:
            self._idle.append(instance)
            if self._queue:
                self._tell(self._dispatch)
        ended = clock()
        variant.measured(size, (ended - began) / 1e9)
        self._recorder.run(given.rows or 1, began, ended)
        self._recorder.request(began, began, ended, given.rows or 1)
        return results[0]

    def close(self) -> None:
        """What waits is refused; what runs goes on."""
        self._closed = True
        self._refuse_all("the model is unloaded")
        if self._timer is not None:
            self._timer.cancel()
        for instance in self._instances:
            instance.close()

    def _refuse_all(self, text: str) -> None:
        for job in self._queue.clear():
            if not job.future.done():
                job.future.set_exception(NotReadyError(text))

    def _is_short(self, variant: Variant, given: Arranged) -> bool:
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

    # The queue

    def _too_late(self, job: Job, expires: float | None) -> None:
        if job.future.done():
            return
        if job.began:
            left = float("inf") if expires is None else expires - time.monotonic()
            if left <= 0:
                job.future.set_exception(DeadlineError("the deadline passed while the model ran"))
            elif expires is not None:  # the bound that is over was that of the queue
                job.timer = self._loop.call_later(left, self._too_late, job, expires)
            return
        self._queue.remove(job)
        job.future.set_exception(DeadlineError("the deadline passed while the request waited for the model"))

    def _dispatch(self) -> None:
        """Set idle instances to work, and look again when what waits for others has waited long enough."""
        while self._queue:
            try:
                instance = self._idle.pop()
            except IndexError:
                return
            batch = self._queue.take()
            if batch:
                instance.start(functools.partial(self._work, instance, batch))
                continue
            self._idle.append(instance)
            if (due := self._queue.due()) is not None:
                if self._timer is not None:
                    self._timer.cancel()
                self._timer = self._loop.call_later(max(0.0, (due - clock()) / 1e9), self._dispatch)
            return

    # On the thread of an instance

    def _work(self, instance: Instance, batch: list[Job], runner: Runner) -> None:
        """Run jobs, and those that come next, until there are none or a run fails."""
        while batch:
            began = clock()
            try:
                size, results = _run_jobs(runner, batch[0].variant, [job.given for job in batch])
            except BaseException as error:
                self._tell(self._failed, instance, batch, error)
                return
            ended = clock()
            done, batch = batch, self._queue.take()
            self._tell(self._done, done, size, results, began, ended)
        self._tell(self._rests, instance)

    # What came of runs

    def _done(self, batch: list[Job], size: int, results: list[list[Any]], began: int, ended: int) -> None:
        seconds = (ended - began) / 1e9
        batch[0].variant.measured(size, seconds)
        self._seconds += (seconds / len(batch) - self._seconds) * 0.05
        self._recorder.run(sum(job.rows for job in batch), began, ended)
        for job, result in zip(batch, results, strict=True):
            if not job.future.done():
                job.future.set_result(result)
                self._recorder.request(job.arrived, job.began, clock(), job.rows)

    def _rests(self, instance: Instance) -> None:
        self._idle.append(instance)
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
            self._tell(self._rests, instance)

        instance.start(prepare)

    def _failed(self, instance: Instance, batch: list[Job], error: BaseException) -> None:
        """Run again what may succeed: requests that were together, each alone; those whose worker died."""
        again = []
        died = isinstance(error, WorkerDied)
        for job in batch:
            job.tries += 1
            if job.future.done():
                continue
            if self._closed or (job.tries >= _MOST_TRIES if died else len(batch) == 1) or (died and self._has_state):
                job.future.set_exception(self._lost(job, error) if died else serving_error(error))
            else:
                again.append(job)
        self._queue.put_back(again)
        if isinstance(error, WorkerDied):
            self._replace(instance, error)
            self._dispatch()
        else:
            self._rests(instance)

    def _lost(self, job: Job, error: BaseException) -> ServingError:
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
