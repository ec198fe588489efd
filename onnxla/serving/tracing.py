"""Traces for OpenTelemetry, where a collector is named: one span for each inference request, below the client's own.

Needs the packages of the extra `trace`.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from onnxla.errors import InputError
from onnxla.version import __version__


class Tracer:
    """Makes spans, or nothing at all."""

    def __init__(self, endpoint: str = "", exporter: Any = None) -> None:
        """`endpoint`: of OTLP over HTTP, such as `http://127.0.0.1:4318/v1/traces`. `exporter`: instead, for tests.

        Raises InputError where OpenTelemetry is not installed.
        """
        self._tracer: Any = None
        self._provider: Any = None
        if not endpoint and exporter is None:
            return
        try:
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
            from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

            if exporter is None:
                from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

                exporter = OTLPSpanExporter(endpoint=endpoint)
        except ImportError:
            raise InputError("traces need OpenTelemetry: pip install 'onnxla[trace]'") from None
        resource = Resource.create({"service.name": "onnxla", "service.version": __version__})
        self._provider = TracerProvider(resource=resource)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("onnxla.serving", __version__)
        self._propagator = TraceContextTextMapPropagator()

    @property
    def on(self) -> bool:
        return self._tracer is not None

    def span(self, protocol: str, model: str, traceparent: str, tracestate: str = "") -> AbstractContextManager[Any]:
        """A span for one request; `traceparent` and `tracestate` as the client sent them (W3C Trace Context)."""
        if self._tracer is None:
            return nullcontext()
        context = self._propagator.extract({"traceparent": traceparent, "tracestate": tracestate})
        from opentelemetry.trace import SpanKind

        span: AbstractContextManager[Any] = self._tracer.start_as_current_span(
            "infer",
            context=context,
            kind=SpanKind.SERVER,
            attributes={"rpc.system": protocol, "onnxla.model": model},
        )
        return span

    def close(self) -> None:
        """Send what has not been sent."""
        if self._provider is not None:
            self._provider.shutdown()
