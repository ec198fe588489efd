"""One version of a model that is served: its code, its queue, its counts."""

import asyncio
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from onnxla.errors import CompileError, OnnxlaError
from onnxla.serving.code import Code
from onnxla.serving.errors import (
    DeadlineError,
    InvalidRequestError,
    NotReadyError,
    OverloadedError,
    ServingError,
    load_error,
)
from onnxla.serving.instances import Runner, WorkerDied
from onnxla.serving.interface import Arranged
from onnxla.serving.measurements import ModelMeasurements
from onnxla.serving.model_config import ModelConfig, Warmup
from onnxla.serving.recorder import Recorder
from onnxla.serving.repository import VersionFiles
from onnxla.serving.requests import InferRequest, InferResponse, ModelStatistics
from onnxla.serving.scheduler import Scheduler, serving_error
from onnxla.serving.settings import EngineSettings
from onnxla.serving.variant import Variant

_LOG = logging.getLogger("onnxla.serving")
_KNOWN_FAILURES = 64
"""Sets of shapes of which it is remembered that they do not compile."""
_LIMIT_SECONDS = 60.0
"""How long that is remembered of a compile that met a limit of time or memory, or crashed, as another may not."""
_WARM_RUNS = 3
_KEPT_SHAPES = 4
"""Sets of shapes of the version before for which there is code before this one takes its place."""


class ServedVersion:
    """Answers requests, from `start` to `close`."""

    def __init__(
        self,
        name: str,
        files: VersionFiles,
        config: ModelConfig,
        code: Code,
        runners: Sequence[Runner],
        settings: EngineSettings,
    ) -> None:
        self.name, self.version = name, str(files.version)
        self.files, self.config, self.code = files, config, code
        self._recorder = Recorder(name, self.version)
        self._scheduler = Scheduler(
            runners,
            self._recorder,
            name=f"{name}-{self.version}",
            batching=config.batching,
            queue_size=config.queue_size or settings.queue_size,
            inline_seconds=settings.inline_seconds,
            has_state=code.has_state,
        )
        self._waiting_shapes = settings.waiting_shapes
        self._making: dict[Hashable, asyncio.Task[Variant]] = {}
        self._failed: OrderedDict[Hashable, tuple[ServingError, float]] = OrderedDict()
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._active = 0
        """Requests that have begun, on whatever thread."""
        self._over = False
        self._ended = asyncio.Event()
        """No request is active and none is begun any more."""

    # Requests

    async def infer(self, request: InferRequest) -> InferResponse:
        """Raises ServingErrors."""
        arrived = time.perf_counter_ns()
        if not self._begin():
            raise NotReadyError("the model is unloaded")
        try:
            given, wanted = self.code.interface.accept(request.inputs, request.outputs)
            variant = self.code.find(given)
            if variant is None:
                variant = await self._made(given, request)
            config = self.config
            until = None if config.queue_timeout is None else time.monotonic() + config.queue_timeout
            results = await self._scheduler.run(variant, given, request.deadline, until)
            return self._response(request, results, wanted)
        except BaseException as error:
            self._count(error, arrived)
            raise
        finally:
            self._end()

    def infer_now(self, request: InferRequest) -> InferResponse | None:
        """On any thread: the answer where it takes no waiting, else None. Raises ServingErrors."""
        arrived = time.perf_counter_ns()
        if not self._scheduler.runs_now or not self._begin():
            return None
        try:
            given, wanted = self.code.interface.accept(request.inputs, request.outputs)
            variant = self.code.find(given)
            results = None if variant is None else self._scheduler.run_now(variant, given, request.deadline)
            return None if results is None else self._response(request, results, wanted)
        except BaseException as error:
            self._count(error, arrived)
            raise
        finally:
            self._end()

    def _response(
        self, request: InferRequest, results: Sequence[Any], wanted: Sequence[tuple[str, int]]
    ) -> InferResponse:
        return InferResponse(self.name, self.version, {name: results[place] for name, place in wanted}, request.id)

    def _count(self, error: BaseException, arrived: int) -> None:
        """Count a request that failed. Raises the ServingError for an error that is none."""
        kind = "Cancelled" if isinstance(error, asyncio.CancelledError) else type(error).__name__
        self._recorder.failure(kind, arrived)
        if isinstance(error, Exception) and not isinstance(error, ServingError):
            raise serving_error(error) from error

    def _begin(self) -> bool:
        """Take on a request until `_end`; False where this version takes none any more."""
        with self._lock:
            if self._over:
                return False
            self._active += 1
            return True

    def _end(self) -> None:
        with self._lock:
            self._active -= 1
            if self._over and not self._active:
                self._loop.call_soon_threadsafe(self._ended.set)

    async def _made(self, given: Arranged, request: InferRequest) -> Variant:
        """The code for new shapes, which others may be waiting for already."""
        key = self.code.key(given)
        if key in self._failed:
            error, until = self._failed[key]
            if until > time.monotonic():
                raise type(error)(str(error))
        task = self._making.get(key)
        if task is None:
            if len(self._making) >= self._waiting_shapes:
                raise OverloadedError(
                    f"{len(self._making)} sets of shapes of this model wait for their code already", retry_after=1.0
                )
            task = self._making[key] = asyncio.create_task(self._make(key, given))
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
        if not request.wait:
            raise NotReadyError(
                f"the code for shapes {[list(a.shape) for a in given.arrays]} is being compiled", retry_after=1.0
            )
        left = None if request.deadline is None else request.deadline - time.monotonic()
        done, _ = await asyncio.wait([task], timeout=left)
        if not done:
            raise DeadlineError("the deadline passed while the code for these shapes was compiled")
        if task.cancelled():
            raise NotReadyError("the model is unloaded")
        return task.result()

    async def _make(self, key: Hashable, given: Arranged) -> Variant:
        """Raises ServingErrors."""
        try:
            return await self.code.make(given)
        except ServingError:
            raise
        except OnnxlaError as error:
            kind = ServingError if type(load_error(error)) is ServingError else InvalidRequestError
            told = kind(f"shapes {[list(a.shape) for a in given.arrays]} cannot be compiled: {error}")
            lasts = float("inf") if isinstance(error, CompileError) else _LIMIT_SECONDS
            self._failed[key] = (told, time.monotonic() + lasts)
            while len(self._failed) > _KNOWN_FAILURES:
                self._failed.popitem(last=False)
            raise told from error
        finally:
            self._making.pop(key, None)

    # Counts

    @property
    def statistics(self) -> ModelStatistics:
        counts = self._recorder.statistics
        counts.compiles, counts.cache_hits = self.code.compiles, self.code.cache_hits
        counts.queued, counts.running = self._scheduler.waiting, self._scheduler.running
        programs = {id(p): p for v in self.code.variants() for p in v.model.programs}.values()
        counts.memory_bytes = sum(p.weights.nbytes + p.arena_bytes for p in programs)
        return counts

    @property
    def measurements(self) -> ModelMeasurements:
        found = self._recorder.measurements
        found.specialisations = len(self.code.variants())
        return found

    # Begin and end

    def shapes(self) -> list[dict[str, tuple[int, ...]]]:
        """The shapes of the inputs, without their rows, for which there is code; those used last are at the end.

        Code for the values of inputs is left out.
        """
        found: dict[Hashable, dict[str, tuple[int, ...]]] = {}
        for variant in self.code.variants():
            for program in variant.model.programs:
                if program.constants or len(program.inputs) != len(self.code.interface.inputs):
                    continue
                rows = {t.name: self.code.interface.rows_of(t.name) for t in program.inputs}
                shapes = {t.name: tuple(n for k, n in enumerate(t.shape) if k != rows[t.name]) for t in program.inputs}
                found[tuple(shapes.items())] = shapes
        return list(found.values())

    async def warm_up(self, shapes: Sequence[dict[str, tuple[int, ...]]] = ()) -> None:
        """Start workers, and run what there is code for and what the configuration says, before anybody waits: its time
        is known then. `shapes` are those of the version before: the last few of them have code here too, where they
        fit.

        Raises OnnxlaErrors where a run fails.
        """
        room = self.config.specialisations - len(self.code.variants())
        for one in shapes[-min(room, _KEPT_SHAPES) :] if room > 0 else ():
            with suppress(ServingError):  # it is another model now: whoever asks for these shapes is told
                given = self._sample(Warmup(one, (), 1, 1))
                if self.code.find(given) is None:
                    await self._made(given, InferRequest(self.name, {}))
        try:
            await self._scheduler.prepare(self.code.variants(), self._run_zeros)
        except WorkerDied as error:
            raise NotReadyError(f"the worker ended while it loaded the model: {error}") from error
        for sample in self.config.warmup:
            given = self._sample(sample)
            for _ in range(sample.count):
                variant = self.code.find(given) or await self._made(given, InferRequest(self.name, {}))
                await self._scheduler.run(variant, given, None, None)

    def _run_zeros(self, runner: Runner) -> None:
        """On the thread of an instance. A model with a state is left as it is."""
        for variant in () if self.code.has_state else self.code.variants():
            for program in variant.model.programs if variant.rows is not None else variant.model.programs[:1]:
                if program.constants or len(program.inputs) != len(self.code.interface.inputs):
                    continue
                arrays = [np.zeros(t.shape, t.dtype) for t in program.inputs]
                if program.vocabularies:
                    continue
                size = 0
                if variant.rows is not None:
                    k = next(k for k, d in enumerate(variant.rows.inputs) if d is not None)
                    size = program.inputs[k].shape[variant.rows.inputs[k]]  # type: ignore[index]
                for k in range(_WARM_RUNS):
                    start = time.perf_counter()
                    runner.run(variant, arrays)
                    if k:
                        variant.measured(size, time.perf_counter() - start)

    def _sample(self, sample: Warmup) -> Arranged:
        interface = self.code.interface
        dtypes = interface.dtypes
        unknown = sorted(set(sample.shapes) ^ set(dtypes))
        if unknown:
            raise InvalidRequestError(f"model_warmup: inputs are missing or unknown: {', '.join(unknown)}")
        random = np.random.default_rng(0)
        arrays = {}
        for name, shape in sample.shapes.items():
            rows = interface.rows_of(name)
            if rows is not None:
                shape = (*shape[:rows], sample.batch, *shape[rows:])
            if dtypes[name].kind == "O":
                arrays[name] = np.full(shape, b"", object)
            elif name in sample.random:
                arrays[name] = random.random(shape).astype(dtypes[name])
            else:
                arrays[name] = np.zeros(shape, dtypes[name])
        return interface.arrange(arrays)

    async def drain(self) -> None:
        """Returns when the requests that have begun have ended. No other is begun."""
        with self._lock:
            self._over = True
            if not self._active:
                return
        await self._ended.wait()

    def close(self) -> None:
        """What waits is refused; instances end behind what they run."""
        for task in self._making.values():
            task.cancel()
        self._scheduler.close()
        self.code.close()
