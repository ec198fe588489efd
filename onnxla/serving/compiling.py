"""Compiling, loading and reading of models for the engine, off the event loop, at most so many at once."""

import asyncio
import shutil
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from onnxla.api import Declaration, read_declaration
from onnxla.api import compile as compile_model
from onnxla.config import ChildLimits
from onnxla.errors import CompileError, OnnxlaError
from onnxla.frontends.explain import explain
from onnxla.runtime.loading import load_compiled
from onnxla.runtime.model import CompiledModel
from onnxla.serving.jobs.compile_and_save import require_code
from onnxla.serving.jobs.compile_in_child import run_in_child
from onnxla.serving.jobs.request import CompileRequest
from onnxla.serving.measurements import EngineMeasurements
from onnxla.serving.settings import EngineSettings

T = TypeVar("T")


@dataclass(frozen=True)
class Compiled:
    """A model with code, and where its artifact is."""

    model: CompiledModel
    artifact: Path | None
    """None where nobody else needs it."""
    cached: bool
    """Whether all of its code was in the compile cache."""


class CompileService:
    """What compiles for all models of one engine."""

    def __init__(self, settings: EngineSettings, measurements: EngineMeasurements) -> None:
        self._settings = settings
        self._measurements = measurements
        self._free = asyncio.Semaphore(settings.compiles)
        self._threads = ThreadPoolExecutor(settings.compiles + 1, "onnxla-serving-load")
        self.folder = Path(tempfile.mkdtemp(prefix="onnxla-serving-"))
        """Where artifacts are that are not of the repository; for this user only."""
        self._made = 0

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    async def in_thread(self, function: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, function)

    async def declaration(self, path: Path, signature: str | None) -> Declaration:
        """Raises what `read_declaration` raises."""
        return await self.in_thread(lambda: read_declaration(path, signature=signature))

    async def load(self, path: Path, num_threads: int | None, device: str | None) -> CompiledModel:
        """Raises what `load_compiled` raises."""
        return await self.in_thread(lambda: load_compiled(path, num_threads=num_threads, device=device))

    async def compile(self, path: Path, wanted: CompileRequest, device: str | None, keep: bool) -> Compiled:
        """Compile the model at `path`. `keep`: an artifact is needed.

        Raises what `onnxla.compile` raises, and for a model whose code must wait for the arrays of a run the
        CompileError that says for which; ResourceLimitError beyond the limits of the process.
        """
        counts = self._measurements
        counts.compiles_waiting += 1
        try:
            await self._free.acquire()
        finally:
            counts.compiles_waiting -= 1
        counts.compiling += 1
        start = time.perf_counter()
        self._made += 1
        artifact = self.folder / f"{self._made}.onnxla"
        try:
            if self._settings.compile_in == "process":
                made = await self._in_process(path, wanted, device, artifact)
            else:
                made = await self.in_thread(lambda: self._here(path, wanted, device, artifact if keep else None))
        except OnnxlaError as error:
            waits_for_values = isinstance(error, CompileError) and error.needs_constants
            counts.compiles_failed += not waits_for_values
            raise
        finally:
            counts.compiling -= 1
            counts.compile_seconds.add(time.perf_counter() - start)
            self._free.release()
        if self._settings.cache_dir is not None:
            counts.cache_hits += made.cached
            counts.cache_misses += not made.cached
        return made

    async def _in_process(self, path: Path, wanted: CompileRequest, device: str | None, artifact: Path) -> Compiled:
        settings = self._settings
        limits = ChildLimits.from_environment(
            memory_bytes=settings.compile_memory, wall_seconds=settings.compile_seconds
        )
        knobs = {} if settings.cache_dir is None else {"cache_dir": settings.cache_dir}
        outcome = await run_in_child(path, wanted, limits, output=artifact, knobs=knobs)
        if outcome.error is not None:
            raise outcome.error
        model = await self.load(artifact, wanted.num_threads, device)
        return Compiled(model, artifact, all(report.from_cache for report in outcome.reports))

    def _here(self, path: Path, wanted: CompileRequest, device: str | None, artifact: Path | None) -> Compiled:
        cache = {} if self._settings.cache_dir is None else {"cache_dir": self._settings.cache_dir}
        knobs = {"compile_timeout": self._settings.compile_seconds, **cache}
        model = compile_model(path, **wanted.arguments(**knobs), device=device)
        require_code(model, lambda: explain(path, **wanted.explain_arguments()))
        if artifact is not None:
            model.save(artifact)
        return Compiled(model, artifact, bool(model.reports) and all(report.from_cache for report in model.reports))
