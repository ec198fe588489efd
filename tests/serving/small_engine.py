"""An engine for the tests of protocols: models that are functions in numpy, and one that onnxla compiles."""

import asyncio
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from onnxla.serving.errors import DeadlineError, InvalidRequestError, NotReadyError, UnknownModelError
from onnxla.serving.measurements import EngineMeasurements, ModelMeasurements
from onnxla.serving.requests import (
    Array,
    InferRequest,
    InferResponse,
    ModelMetadata,
    ModelStatistics,
    ModelStatus,
    TensorMetadata,
)

Function = Callable[[Mapping[str, Array]], Mapping[str, Array]]


class SmallEngine:
    """`echo` answers with its inputs, `slow` once `release` is set, `broken` has a fault; others are functions.

    Those in `short` are answered at once.
    """

    def __init__(self, **models: Function) -> None:
        self.models: dict[str, Function] = {"echo": dict, "slow": dict, "broken": _broken, **models}
        self.short: set[str] = set()
        self.threads: set[str] = set()
        """Names of those that have answered at once."""
        self.release = asyncio.Event()
        self.started = asyncio.Event()
        self.cancelled = 0
        self.drained = self.closed = False
        self.measured = EngineMeasurements([ModelMeasurements(name, "1") for name in self.models])
        self.loads: list[tuple[str, dict[str, Any]]] = []
        self._statistics = {name: ModelStatistics(name, "1") for name in self.models}
        self.unloaded: set[str] = set()

    async def infer(self, request: InferRequest) -> InferResponse:
        self._model(request.model, request.version)
        if request.model == "slow":
            self.started.set()
            await self._wait(request.deadline)
        return self._answer(request)

    def infer_now(self, request: InferRequest) -> InferResponse | None:
        if request.model not in self.short:
            return None
        self.threads.add(threading.current_thread().name)
        return self._answer(request)

    def _answer(self, request: InferRequest) -> InferResponse:
        begin = time.perf_counter_ns()
        outputs = dict(self._model(request.model, request.version)(request.inputs))
        if request.outputs is not None:
            if missing := [name for name in request.outputs if name not in outputs]:
                raise InvalidRequestError(f"model '{request.model}' has no output '{missing[0]}'")
            outputs = {name: outputs[name] for name in request.outputs}
        one = self._statistics[request.model]
        one.inferences += 1
        one.executions += 1
        one.success.add(time.perf_counter_ns() - begin)
        return InferResponse(request.model, "1", outputs, request.id)

    async def _wait(self, deadline: float | None) -> None:
        try:
            await asyncio.wait_for(self.release.wait(), None if deadline is None else deadline - time.monotonic())
        except TimeoutError:
            raise DeadlineError("the deadline passed before the result was there") from None
        except asyncio.CancelledError:
            self.cancelled += 1
            raise

    def _model(self, model: str, version: str = "") -> Function:
        if model not in self.models:
            raise UnknownModelError(f"there is no model '{model}'")
        if version not in ("", "1"):
            raise UnknownModelError(f"model '{model}' has no version '{version}'")
        if model in self.unloaded:
            raise NotReadyError(f"model '{model}' is not loaded", retry_after=2.5)
        return self.models[model]

    def ready(self) -> bool:
        return not self.unloaded

    def model_ready(self, model: str, version: str = "") -> bool:
        return model in self.models and version in ("", "1") and model not in self.unloaded

    def metadata(self, model: str, version: str = "") -> ModelMetadata:
        self._model(model, version)
        tensor = TensorMetadata("x", "FP32", (-1, 3))
        return ModelMetadata(model, ("1",), "onnxla", (tensor,), (tensor,))

    def config(self, model: str, version: str = "") -> dict[str, Any]:
        self._model(model, version)
        return {
            "name": model,
            "platform": "onnxla",
            "max_batch_size": 8,
            "input": [{"name": "x", "data_type": "TYPE_FP32", "dims": ["-1", "3"]}],
        }

    def statistics(self, model: str = "", version: str = "") -> Sequence[ModelStatistics]:
        if model:
            self._model(model, version)
        return [one for name, one in self._statistics.items() if model in ("", name)]

    def measurements(self) -> EngineMeasurements:
        return self.measured

    def index(self) -> Sequence[ModelStatus]:
        return [
            ModelStatus(
                name, "1", "UNAVAILABLE" if name in self.unloaded else "READY", "unloaded" * (name in self.unloaded)
            )
            for name in self.models
        ]

    async def load(self, model: str, parameters: Mapping[str, Any] | None = None) -> None:
        if model not in self.models:
            raise UnknownModelError(f"there is no model '{model}'")
        self.loads.append((model, dict(parameters or {})))
        self.unloaded.discard(model)

    async def unload(self, model: str) -> None:
        self._model(model)
        self.unloaded.add(model)

    async def explain(self, model: str, version: str = "") -> str:
        self._model(model, version)
        return f"<!doctype html><title>{model}</title><p>All about {model}.</p>"

    async def start(self) -> None:
        pass

    async def drain(self, seconds: float) -> None:
        self.drained = True

    async def close(self) -> None:
        self.closed = True


def _broken(inputs: Mapping[str, Array]) -> Mapping[str, Array]:
    raise ZeroDivisionError("a secret of the server")


def doubled(inputs: Mapping[str, Array]) -> Mapping[str, Array]:
    return {"y": np.asarray(inputs["x"] * 2)}
