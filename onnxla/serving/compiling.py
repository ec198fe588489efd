"""Compiling, loading and reading of models for the engine, off the event loop, at most so many at once."""

import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from onnxla.api import Declaration, read_declaration
from onnxla.api import compile as compile_model
from onnxla.errors import OnnxlaError
from onnxla.runtime.model import CompiledModel, load_compiled
from onnxla.serving.measurements import EngineMeasurements
from onnxla.serving.settings import EngineSettings

T = TypeVar("T")


@dataclass(frozen=True)
class Compiled:
    """A model with code, and where its artifact is."""

    model: CompiledModel
    artifact: Path | None
    """None where nobody else needs it."""
    seconds: float
    cached: bool
    """Whether all of its code was in the compile cache."""

    def forget(self, folder: Path) -> None:
        """Remove the artifact, if it was made in `folder`."""
        if self.artifact is not None and self.artifact.parent == folder:
            self.artifact.unlink(missing_ok=True)


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

    async def compile(self, path: Path, arguments: Mapping[str, Any], device: str | None, keep: bool) -> Compiled:
        """Compile the model at `path`; `arguments` are keywords of `onnxla.compile`. `keep`: an artifact is needed.

        Raises what `onnxla.compile` raises.
        """
        counts = self._measurements
        counts.compiles_waiting += 1
        try:
            await self._free.acquire()
        finally:
            counts.compiles_waiting -= 1
        counts.compiling += 1
        start = time.perf_counter()
        try:
            made = await self._compile(path, arguments, device, keep)
        except OnnxlaError:
            counts.compiles_failed += 1
            raise
        finally:
            counts.compiling -= 1
            counts.compile_seconds.add(time.perf_counter() - start)
            self._free.release()
        if self._settings.cache_dir is not None:
            counts.cache_hits += made.cached
            counts.cache_misses += not made.cached
        return made

    async def _compile(self, path: Path, arguments: Mapping[str, Any], device: str | None, keep: bool) -> Compiled:
        self._made += 1
        artifact = self.folder / f"{self._made}.onnxla"
        options = dict(arguments.get("options") or {}) | {
            "compile_timeout": self._settings.compile_seconds or None,
            "cache_dir": self._settings.cache_dir or os.environ.get("ONNXLA_CACHE_DIR"),
        }

        def work() -> Compiled:
            start = time.perf_counter()
            model = compile_model(path, **{**arguments, "options": options}, device=device)
            cached = all(report.from_cache for report in model.reports) and bool(model.reports)
            if keep:
                model.save(artifact)
            return Compiled(model, artifact if keep else None, time.perf_counter() - start, cached)

        return await self.in_thread(work)
