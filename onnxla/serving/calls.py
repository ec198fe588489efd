"""What every call goes through, whichever protocol brings it: permission, rate, its place among those in flight.

And how an inference is counted, logged and traced.
"""

import logging
import threading
import time
import uuid
from dataclasses import dataclass, field

from onnxla.serving.access import Access, Kind
from onnxla.serving.errors import OverloadedError, ServingError
from onnxla.serving.logs import LOG, log
from onnxla.serving.metrics import Metrics
from onnxla.serving.rates import Rates
from onnxla.serving.requests import Engine, InferRequest, InferResponse
from onnxla.serving.server_settings import ServerSettings
from onnxla.serving.tracing import Tracer


@dataclass(slots=True)
class Call:
    """One inference call from its first byte to its last."""

    protocol: str
    model: str
    version: str = ""
    client: str = ""
    request_id: str = ""
    traceparent: str = ""
    tracestate: str = ""
    start: float = field(default_factory=time.perf_counter)


class Calls:
    """The way of every call to the engine: on the event loop, or on gRPC's thread while it neither waits nor fails."""

    def __init__(self, engine: Engine, settings: ServerSettings, access: Access, tracer: Tracer | None = None) -> None:
        self.engine, self.settings, self.access = engine, settings, access
        self.metrics = Metrics(engine)
        self.tracer = tracer or Tracer()
        self.draining = False
        self._rates = Rates(settings.rate)
        self._lock = threading.Lock()
        self._in_flight: dict[str, int] = {"http": 0, "grpc": 0}
        for protocol in self._in_flight:
            self.metrics.gauge(
                f"onnxla_{protocol}_requests",
                f"Inference requests in flight over {protocol}.",
                lambda protocol=protocol: self._in_flight[protocol],  # type: ignore[misc]
            )

    def in_flight(self, protocol: str) -> int:
        """Inference requests over `http` or `grpc` that are being answered."""
        return self._in_flight[protocol]

    def ready(self) -> bool:
        """Whether requests should be sent here."""
        return not self.draining and self.engine.ready()

    def admit(self, kind: Kind, authorization: bytes | str | None, address: str) -> str:
        """A name for the client, who may make this call now. Raises ServingError."""
        token = self.access.check(kind, authorization)
        if kind is not Kind.OPEN:
            with self._lock:
                self._rates.take(token or address)
        return token or address

    def begin(self, protocol: str) -> None:
        """Take a place among the requests in flight, until `end`. Raises OverloadedError where none is free."""
        with self._lock:
            if self._in_flight[protocol] < self.settings.max_requests:
                self._in_flight[protocol] += 1
                return
        raise OverloadedError(
            f"{self.settings.max_requests} requests are in flight already (--max-requests)", retry_after=1.0
        )

    def end(self, protocol: str) -> None:
        with self._lock:
            self._in_flight[protocol] -= 1

    async def infer(self, call: Call, request: InferRequest) -> InferResponse:
        """The engine's answer, in a span where there are traces. Raises ServingError."""
        if not self.tracer.on:
            return await self.engine.infer(request)
        with self.tracer.span(call.protocol, call.model, call.traceparent, call.tracestate) as span:
            response = await self.engine.infer(request)
            span.set_attribute("onnxla.version", response.version)
            span.set_attribute("onnxla.request_id", response.id or call.request_id)
            return response

    def infer_now(self, request: InferRequest) -> InferResponse | None:
        """The engine's answer where it has one at once, on any thread; None for `infer`. Raises ServingError."""
        return None if self.tracer.on else self.engine.infer_now(request)

    def answered(self, call: Call, response: InferResponse) -> None:
        """Count and log an answer that is about to be sent."""
        seconds = time.perf_counter() - call.start
        with self._lock:
            self.metrics.answered(call.protocol, response.model, response.version, seconds)
        if self.settings.log_requests:
            self._log(call, logging.INFO, seconds, "OK", response.version)

    def failed(self, call: Call, error: BaseException) -> ServingError:
        """Count and log an error; what the client is told of it."""
        seconds = time.perf_counter() - call.start
        error = told(error)
        self.metrics.failed(call.protocol, self._known(call.model), error.code)
        if self.settings.log_requests:
            self._log(call, logging.WARNING, seconds, error.code, call.version, error=str(error))
        return error

    def cancelled(self, call: Call) -> None:
        """Count and log a request whose client went away."""
        self.metrics.failed(call.protocol, self._known(call.model), "CANCELLED")
        if self.settings.log_requests:
            self._log(call, logging.WARNING, time.perf_counter() - call.start, "CANCELLED", call.version)

    def _known(self, model: str) -> str:
        """The model's name where the engine has it, so that strangers' names are no labels."""
        return model if any(line.name == model for line in self.engine.index()) else ""

    def _log(self, call: Call, level: int, seconds: float, code: str, version: str, **more: object) -> None:
        trace = call.traceparent.split("-")[1] if call.traceparent.count("-") == 3 else ""
        log(
            level,
            "infer",
            protocol=call.protocol,
            model=call.model,
            version=version,
            code=code,
            milliseconds=round(seconds * 1e3, 3),
            client=call.client,
            request_id=call.request_id,
            **({"trace_id": trace} if trace else {}),
            **more,
        )


def told(error: BaseException) -> ServingError:
    """What a client is told of an error: of a fault of ours no more than where our log has the rest."""
    if isinstance(error, ServingError):
        return error
    name = uuid.uuid4().hex[:12]
    LOG.error("a fault of onnxla, %s", name, exc_info=error)
    return ServingError(f"a fault of onnxla: the server's log has more, at {name}")
