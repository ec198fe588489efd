"""`ServingEngine`: the models of a repository, loaded, reloaded and unloaded while requests run.

A version that is loaded again is loaded beside the old one, which takes no more requests from the moment that the new
one is ready, and ends when its last request has.
"""

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from onnxla.errors import OnnxlaError, harmless_line
from onnxla.runtime.thread_pool import default_threads
from onnxla.serving.code import Code, LoadCode, load_code
from onnxla.serving.compiling import CompileService
from onnxla.serving.config_json import config_json
from onnxla.serving.config_text import config_of_json, config_of_text
from onnxla.serving.errors import (
    InvalidRequestError,
    NotReadyError,
    ServingError,
    UnknownModelError,
    UnsupportedRequestError,
    load_error,
    worst_kind,
)
from onnxla.serving.instances import LocalRunner, Runner
from onnxla.serving.known_model import KnownModel
from onnxla.serving.measurements import EngineMeasurements
from onnxla.serving.model_config import ModelConfig
from onnxla.serving.repository import ModelFiles, Repository, VersionFiles
from onnxla.serving.requests import (
    InferRequest,
    InferResponse,
    ModelMetadata,
    ModelStatistics,
    ModelStatus,
)
from onnxla.serving.served_version import ServedVersion
from onnxla.serving.settings import EngineSettings
from onnxla.serving.worker_runner import WorkerRunner

_LOG = logging.getLogger("onnxla.serving")


class ServingEngine:
    """Implements `requests.Engine`. Create it on the event loop that it is used on."""

    def __init__(self, settings: EngineSettings, load_code: LoadCode = load_code) -> None:
        """`load_code` is another one for measurements that run models otherwise. Raises InvalidRequestError."""
        self.settings = settings
        self._repository = Repository(settings.repository)
        self._measurements = EngineMeasurements()
        self._compiling = CompileService(settings, self._measurements)
        self._load_code = load_code
        self._models: dict[str, KnownModel] = {}
        self._started = self._draining = False
        self._polling: asyncio.Task[None] | None = None
        self._ending: set[asyncio.Task[None]] = set()

    # Lifecycle

    async def start(self) -> None:
        names = self._names()
        wanted = self.settings.load_at_start
        if wanted is None:
            wanted = () if self.settings.control == "explicit" else tuple(names)
        for name in names:
            self._models.setdefault(name, KnownModel(name))
        results = await asyncio.gather(*(self._load(name) for name in wanted), return_exceptions=True)
        for name, result in zip(wanted, results, strict=True):
            if isinstance(result, BaseException):
                if not isinstance(result, ServingError):
                    raise result
                _LOG.error("model %s is not loaded: %s", harmless_line(name), result)
        self._started = True
        if self.settings.control == "poll":
            self._polling = asyncio.create_task(self._poll())

    async def drain(self, seconds: float) -> None:
        self._draining = True
        if self._polling is not None:
            self._polling.cancel()
        served = [v.drain() for m in self._models.values() for v in m.versions.values()]
        if served:
            _, late = await asyncio.wait([asyncio.create_task(d) for d in served], timeout=seconds)
            for task in late:
                task.cancel()

    async def close(self) -> None:
        self._draining = True
        if self._polling is not None:
            self._polling.cancel()
        for task in self._ending:
            task.cancel()
        for model in self._models.values():
            for served in model.versions.values():
                served.close()
            model.versions, model.newest = {}, None
        self._compiling.close()

    # Requests

    async def infer(self, request: InferRequest) -> InferResponse:
        if self._draining:
            raise NotReadyError("the server takes no more requests: it is shutting down")
        return await self._served(request.model, request.version).infer(request)

    def infer_now(self, request: InferRequest) -> InferResponse | None:
        model = self._models.get(request.model)
        if model is None or self._draining:
            return None
        served = model.versions.get(request.version) if request.version else model.newest
        return None if served is None else served.infer_now(request)

    def _served(self, name: str, version: str = "") -> ServedVersion:
        """Raises UnknownModelError, or NotReadyError for what is not loaded."""
        model = self._models.get(name)
        if model is None:
            raise UnknownModelError(f"there is no model {harmless_line(name)[:200]!r}")
        found = model.versions.get(version) if version else model.newest
        if found is None:
            raise self._missing(model, version)
        return found

    def _missing(self, model: KnownModel, version: str) -> ServingError:
        if version and version not in model.states:
            there = ", ".join(model.versions) or "none"
            return UnknownModelError(
                f"model {model.name} has no version {harmless_line(version)[:40]!r}; there are {there}"
            )
        states = [model.states[version]] if version else list(model.states.values())
        state, reason = states[-1] if states else ("UNAVAILABLE", "it was not loaded")
        return NotReadyError(f"model {model.name} is not ready: {state}" + (f": {reason}" if reason else ""))

    # Looking

    def ready(self) -> bool:
        return self._started and not self._draining

    def model_ready(self, model: str, version: str = "") -> bool:
        try:
            self._served(model, version)
        except NotReadyError:
            return False
        return not self._draining

    def metadata(self, model: str, version: str = "") -> ModelMetadata:
        served = self._served(model, version)
        interface = served.code.interface
        versions = tuple(sorted(self._models[model].versions, key=int))
        return ModelMetadata(model, versions, "onnxla", tuple(interface.inputs), tuple(interface.outputs))

    def config(self, model: str, version: str = "") -> dict[str, Any]:
        served = self._served(model, version)
        return config_json(served.config, served.code.interface)

    def statistics(self, model: str = "", version: str = "") -> Sequence[ModelStatistics]:
        if model:
            self._served(model, version)
        return [
            served.statistics
            for known in self._models.values()
            if not model or known.name == model
            for served in known.versions.values()
            if not version or served.version == version
        ]

    def measurements(self) -> EngineMeasurements:
        served = [v for m in self._models.values() for v in m.versions.values()]
        self._measurements.models = [v.measurements for v in served]
        return self._measurements

    def index(self) -> Sequence[ModelStatus]:
        rows = []
        for name in sorted({*self._models, *self._names()}):
            model = self._models.get(name)
            lines = {}
            if model is not None:
                lines = {v: ModelStatus(name, v, *state) for v, state in model.states.items()}
                lines |= {v: ModelStatus(name, v, "READY", model.states.get(v, ("", ""))[1]) for v in model.versions}
            rows += [lines[v] for v in sorted(lines, key=lambda v: int(v or 0))] or [
                ModelStatus(name, "", "UNAVAILABLE")
            ]
        return rows

    def _names(self) -> list[str]:
        try:
            return self._repository.names()
        except OSError as error:
            raise ServingError(f"the repository cannot be read: {error.strerror}") from error

    async def explain(self, model: str, version: str = "") -> str:
        served = self._served(model, version)
        programs = [p for v in served.code.variants() for p in v.model.programs]
        if not programs:
            raise NotReadyError(f"model {model} has no code yet: it is compiled when a request brings its shapes")
        about = served.code.variants()[0].model.about

        def page() -> str:
            from onnxla.page.model_page import model_page

            return model_page(programs[0], about, f"{model} {served.version}")

        try:
            return await self._compiling.in_thread(page)
        except OnnxlaError as error:
            raise UnsupportedRequestError(f"there is no page of model {model}: {error}") from error

    # Loading

    async def load(self, model: str, parameters: Mapping[str, Any] | None = None) -> None:
        self._require_explicit()
        given = dict(parameters or {})
        override = given.pop("config", None)
        if any(name.startswith("file:") for name in given):
            raise UnsupportedRequestError("file: models come from the repository, not with the request")
        if given or not isinstance(override, str | None):
            raise InvalidRequestError(f"no parameters {', '.join(map(harmless_line, given)) or 'but config, a text'}")
        try:
            await self._load(model, override, True)
        except UnknownModelError:
            raise
        except ServingError as error:
            text = f"model {harmless_line(model)} is not loaded: {error}"
            raise type(error)(text, retry_after=error.retry_after) from error

    async def unload(self, model: str) -> None:
        self._require_explicit()
        known = self._models.get(model)
        if known is None:
            raise UnknownModelError(f"there is no model {harmless_line(model)[:200]!r}")
        async with known.changing:
            await self._unload(known)

    def _require_explicit(self) -> None:
        if self.settings.control != "explicit":
            raise UnsupportedRequestError(
                "models are not loaded and unloaded by requests; control='explicit' allows it"
            )
        if self._draining:
            raise NotReadyError("the server is shutting down")

    async def _unload(self, model: KnownModel) -> None:
        served = list(model.versions.values())
        model.newest, model.versions = None, {}
        model.states = {v.version: ("UNLOADING", "") for v in served}
        model.override = model.tried = None
        await asyncio.gather(*(self._end(v) for v in served))
        model.states = {v.version: ("UNAVAILABLE", "unloaded") for v in served}

    async def _end(self, served: ServedVersion) -> None:
        """Close a version when its last request has ended. Nobody finds it any more."""
        try:
            await served.drain()
        finally:
            served.close()

    async def _load(self, name: str, override: str | None = None, again: bool = False) -> None:
        """Serve what is in the repository now. `again`: also where the files are those that are served.

        Raises ServingErrors; what was served stays then.
        """
        known = self._models.get(name) or KnownModel(name)
        async with known.changing:
            try:
                config, files, wanted = await self._compiling.in_thread(lambda: self._read(name, override))
            except UnknownModelError:
                raise
            except ServingError as error:
                self._measurements.loads_failed += 1
                self._models[name] = known
                if known.versions:
                    known.states |= dict.fromkeys(known.versions, ("READY", f"loading it again failed: {error}"))
                else:
                    known.states = {"": ("UNAVAILABLE", str(error))}
                raise
            self._models[name] = known
            known.override = override
            known.take(files)
            known.states = {v: state for v, state in known.states.items() if v not in known.versions}
            errors: dict[int, ServingError] = {v: InvalidRequestError(text) for v, text in files.problems.items()}
            for version in wanted:
                old = known.versions.get(str(version))
                if old is not None and not again and old.files == files.versions[version] and old.config == config:
                    continue
                try:
                    await self._load_version(known, files.versions[version], config)
                except ServingError as error:
                    errors[version] = error
                    if not (old is not None and str(version) in known.versions):
                        known.states[str(version)] = ("UNAVAILABLE", str(error))
                    else:
                        known.states[str(version)] = ("READY", f"loading it again failed: {error}")
            for version, reason in files.problems.items():
                if str(version) not in known.versions:
                    known.states[str(version)] = ("UNAVAILABLE", reason)
            self._settle(known, wanted, files)
            failed = {v: errors[v] for v in wanted if v in errors}
            if not wanted:
                failed = {0: InvalidRequestError("; ".join(files.problems.values()) or "it has no version to serve")}
                known.states.setdefault("", ("UNAVAILABLE", str(failed[0])))
            if failed:
                self._measurements.loads_failed += 1
                text = "\n".join(f"version {v}: {error}" for v, error in failed.items())
                failure = worst_kind(failed.values())(text)
                if self.settings.control == "poll":
                    known.plan_retry(failure, self.settings.poll_seconds)
                raise failure

    def _read(self, name: str, override: str | None) -> tuple[ModelConfig, ModelFiles, list[int]]:
        files = self._repository.read(name)
        if override is not None:
            config = config_of_json(name, override)
        else:
            config = ModelConfig(name) if files.config is None else config_of_text(name, files.config)
        if config.num_threads is None:
            instances = config.instances or self._workers(config) or 1
            config = replace(config, num_threads=max(1, default_threads() // instances))
        if config.file_name:
            files = self._repository.read(name, config.file_name)
        return config, files, config.versions.choose(list(files.versions))

    async def _load_version(self, model: KnownModel, files: VersionFiles, config: ModelConfig) -> None:
        """Load a version and let it take the place of the one before. Raises ServingErrors."""
        version = str(files.version)
        if version not in model.versions:
            model.states[version] = ("LOADING", "")
        start = time.perf_counter()
        code: Code | None = None
        try:
            code = await self._load_code(files, config, self._compiling, self._workers(config) > 0)
            served = ServedVersion(model.name, files, config, code, self._runners(config, code), self.settings)
            before = model.versions.get(version, model.newest)
            try:
                await served.warm_up([] if before is None else before.shapes())
            except BaseException:
                served.close()
                raise
        except ServingError:
            raise
        except OnnxlaError as error:
            if code is not None:
                code.close()
            raise load_error(error) from error
        except Exception as error:
            _LOG.exception("model %s is not loaded", harmless_line(model.name))
            raise ServingError(f"{type(error).__name__} while it was loaded; the log says more") from error
        for text in code.interface.left_out:
            _LOG.warning("model %s: %s; it is not served", harmless_line(model.name), harmless_line(text))
        self._measurements.load_seconds.add(time.perf_counter() - start)
        old = model.versions.get(version)
        model.versions[version] = served
        model.states.pop(version, None)
        if model.newest is old or model.newest is None or int(model.newest.version) < files.version:
            model.newest = served
        if old is not None:
            self._end_later(old)
        _LOG.info(
            "model %s version %s is ready after %.2f s", harmless_line(model.name), version, time.perf_counter() - start
        )

    def _runners(self, config: ModelConfig, code: Code) -> list[Runner]:
        workers = self._workers(config)
        count = 1 if code.has_state else config.instances or workers or 1
        if not workers:
            return [LocalRunner() for _ in range(count)]
        run_seconds, most = self.settings.run_seconds, config.specialisations + 1
        return [WorkerRunner(config.name, config.num_threads, config.device, most, run_seconds) for _ in range(count)]

    def _workers(self, config: ModelConfig) -> int:
        return self.settings.workers if config.workers is None else config.workers

    def _settle(self, model: KnownModel, wanted: Sequence[int], files: ModelFiles) -> None:
        """Versions that are not wanted any more end, once all that are wanted are there, or when their files are gone;
        the newest of the others is served by default."""
        complete = all(str(version) in model.versions for version in wanted)
        gone = [v for v in model.versions if int(v) not in wanted and (complete or int(v) not in files.versions)]
        for version in gone:
            self._end_later(model.versions.pop(version))
        for version in list(model.states):
            if version and int(version) not in files.versions and int(version) not in files.problems:
                del model.states[version]
        if model.versions:
            model.states.pop("", None)
        newest = max(model.versions, key=int, default=None)
        model.newest = None if newest is None else model.versions[newest]

    def _end_later(self, served: ServedVersion) -> None:
        task = asyncio.create_task(self._end(served))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _poll(self) -> None:
        """Look at the repository from time to time, until it is cancelled."""
        while True:
            await asyncio.sleep(self.settings.poll_seconds)
            try:
                await self._look()
            except Exception:
                _LOG.exception("the repository could not be looked at")

    async def _look(self) -> None:
        names = await self._compiling.in_thread(self._repository.names)
        for name in names:
            known = self._models.get(name)
            try:
                file_name = "" if known is None or known.tried is None else known.tried.file_name
                files = await self._compiling.in_thread(partial(self._repository.read, name, file_name))
                if known is None or known.is_due(files):
                    await self._load(name)
                    self._models[name].told = ""
            except ServingError as error:
                known = self._models.setdefault(name, KnownModel(name))
                if known.told != str(error):
                    known.told = str(error)
                    _LOG.error("model %s is not loaded: %s", harmless_line(name), error)
        for name in set(self._models) - set(names):
            async with self._models[name].changing:
                await self._unload(self._models[name])
            del self._models[name]
