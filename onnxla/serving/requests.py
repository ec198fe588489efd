"""What protocols hand to the engine and get back: requests in numpy arrays, whatever they looked like on the wire."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy.typing as npt

from onnxla.serving.measurements import EngineMeasurements

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class InferRequest:
    """One run of one model, for one client."""

    model: str
    inputs: Mapping[str, Array]
    """By name. Strings are arrays of `object` that hold `bytes`, or `str`."""
    version: str = ""
    """Empty for the version that the model's policy serves by default: the newest."""
    outputs: tuple[str, ...] | None = None
    """Names of the outputs that are wanted, in this order; None for all in the model's order."""
    id: str = ""
    deadline: float | None = None
    """The time (`time.monotonic()`) after which nobody waits for the result."""
    wait: bool = True
    """Whether to wait where these shapes must be compiled first; else `NotReadyError` at once, and they compile."""


@dataclass(frozen=True, slots=True)
class InferResponse:
    """The outputs of one run."""

    model: str
    version: str
    outputs: Mapping[str, Array]
    """In the order asked for, each a fresh array in C order."""
    id: str = ""


@dataclass(frozen=True, slots=True)
class TensorMetadata:
    """An input or output as the protocol describes it."""

    name: str
    datatype: str
    """Of the Open Inference Protocol: `FP32`, `INT64`, `BYTES`, ..."""
    shape: tuple[int, ...]
    """-1 where any size fits."""


@dataclass(frozen=True, slots=True)
class ModelMetadata:
    name: str
    versions: tuple[str, ...]
    platform: str
    inputs: tuple[TensorMetadata, ...]
    outputs: tuple[TensorMetadata, ...]


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """One line of the repository's index."""

    name: str
    version: str
    state: str
    """`READY`, `LOADING`, `UNLOADING` or `UNAVAILABLE`."""
    reason: str = ""


@dataclass(slots=True)
class ModelStatistics:
    """Counts since the version was loaded; times in nanoseconds, summed, as Triton's statistics extension has them."""

    name: str
    version: str
    last_inference: int = 0
    """Milliseconds since the epoch."""
    inferences: int = 0
    """Requests, each counted by its rows."""
    executions: int = 0
    """Runs of the model: fewer than requests where they are batched."""
    success: "Duration" = field(default_factory=lambda: Duration())
    fail: "Duration" = field(default_factory=lambda: Duration())
    queue: "Duration" = field(default_factory=lambda: Duration())
    compute: "Duration" = field(default_factory=lambda: Duration())
    batches: dict[int, "Duration"] = field(default_factory=dict)
    """Rows of a batch to the runs of this size."""
    queued: int = 0
    """Requests that wait now."""
    running: int = 0
    """Requests that run now."""
    compiles: "Duration" = field(default_factory=lambda: Duration())
    """Sets of shapes that were compiled, those of the load included."""
    cache_hits: int = 0
    """Sets of shapes whose code was found in the compile cache or the artifact."""
    memory_bytes: int = 0
    """Weights and arenas of all instances, as far as they are known."""


@dataclass(slots=True)
class Duration:
    count: int = 0
    ns: int = 0

    def add(self, ns: int) -> None:
        self.count += 1
        self.ns += ns


class Engine(Protocol):
    """What a protocol asks of the engine. All of it but `infer_now` runs on the server's one event loop.

    Every method raises `ServingError`s only. Cancelling the task that awaits `infer` cancels the request.
    """

    async def start(self) -> None:
        """Find and load the models that are to be loaded. A model that does not load is a line of the index."""
        ...

    async def drain(self, seconds: float) -> None:
        """Take no more requests (`NotReadyError`), and return when those begun have ended, at most so long after."""
        ...

    async def close(self) -> None:
        """Let go of models and workers; requests that still run fail. The server has stopped to listen, and drained."""
        ...

    async def infer(self, request: InferRequest) -> InferResponse: ...

    def infer_now(self, request: InferRequest) -> InferResponse | None:
        """The answer, where the model takes some microseconds and nothing waits for it; None where `infer` is to be
        asked. The one method that any thread may call."""
        ...

    def ready(self) -> bool:
        """Whether all models that were to be loaded are, or cannot be (the index says why), and the server does not
        drain."""
        ...

    def model_ready(self, model: str, version: str = "") -> bool: ...

    def metadata(self, model: str, version: str = "") -> ModelMetadata: ...

    def config(self, model: str, version: str = "") -> dict[str, Any]:
        """The model's configuration in the JSON form of Triton's `ModelConfig`."""
        ...

    def statistics(self, model: str = "", version: str = "") -> Sequence[ModelStatistics]: ...

    def measurements(self) -> EngineMeasurements:
        """What is to be exported as metrics. Read it, do not change it."""
        ...

    def index(self) -> Sequence[ModelStatus]:
        """Every version of every model in the repository, loaded or not."""
        ...

    async def load(self, model: str, parameters: Mapping[str, Any] | None = None) -> None:
        """Load a model, or load it again: requests that have begun end on what they began on.

        Of Triton's parameters there is `config`, JSON that replaces the model's configuration. Returns when the new
        versions are ready; raises with the reason where one does not load, and then what was loaded stays.
        """
        ...

    async def unload(self, model: str) -> None:
        """Returns when the requests that have begun have ended."""
        ...

    async def explain(self, model: str, version: str = "") -> str:
        """The page that tells all about a model (`onnxla.page`), as HTML. It takes seconds, on another thread."""
        ...
