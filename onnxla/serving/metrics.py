"""What Prometheus reads at `/metrics`, and the page at `/`.

Requests are measured here, from their first byte read to their last byte written; all that the engine counts itself is
read from it when somebody asks. Labels are models and versions that the engine has, so their number is bounded.
"""

from collections.abc import Callable, Iterator, Sequence

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from onnxla.serving.requests import Engine, ModelStatistics

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_SECONDS = (
    *(0.0001, 0.0002, 0.0003, 0.0005, 0.0007),
    *(0.001, 0.0015, 0.002, 0.003, 0.005, 0.007, 0.01, 0.015, 0.02, 0.03, 0.05, 0.07),
    *(0.1, 0.2, 0.3, 0.5, 1, 2, 5, 10, 30, 60),
)
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
_LABELS = ("model", "version")


class Metrics:
    """The counts of one server."""

    def __init__(self, engine: Engine) -> None:
        self._registry = CollectorRegistry()
        self._seconds = Histogram(
            "onnxla_request_seconds",
            "Time of an inference request in this server, from its head to its answer.",
            ("protocol", *_LABELS),
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._failures = Counter(
            "onnxla_request_failures",
            "Inference requests that got an error, by its status in gRPC.",
            ("protocol", "model", "code"),
            registry=self._registry,
        )
        self._children: dict[tuple[str, str, str], Histogram] = {}
        self._engine = engine
        self._gauges: dict[str, tuple[str, Callable[[], float]]] = {}
        self._registry.register(_EngineCollector(engine, self._gauges))
        PlatformCollector(registry=self._registry)
        ProcessCollector(registry=self._registry)

    def gauge(self, name: str, about: str, read: Callable[[], float]) -> None:
        """One more number, read when somebody asks."""
        self._gauges[name] = (about, read)

    def answered(self, protocol: str, model: str, version: str, seconds: float) -> None:
        """A request got its answer. `model` and `version` are the engine's own."""
        key = (protocol, model, version)
        child = self._children.get(key)
        if child is None:
            child = self._children[key] = self._seconds.labels(*key)
        child.observe(seconds)

    def failed(self, protocol: str, model: str, code: str) -> None:
        """A request got an error. `model` is empty where the engine has none of this name."""
        self._failures.labels(protocol, model, code).inc()

    def text(self) -> bytes:
        """All of it in Prometheus' text format."""
        return generate_latest(self._registry)

    def quantiles(self, model: str, version: str, wanted: Sequence[float]) -> list[float | None]:
        """Seconds within which these shares of the requests were answered, as exact as the buckets are."""
        counts: dict[float, float] = {}
        for (_, name, number), child in self._children.items():
            if (name, number) == (model, version):
                for sample in next(iter(child.collect())).samples:
                    if sample.name.endswith("_bucket"):
                        bound = float(sample.labels["le"])
                        counts[bound] = counts.get(bound, 0) + sample.value
        return [_quantile(sorted(counts.items()), share) for share in wanted]


def _quantile(cumulative: list[tuple[float, float]], share: float) -> float | None:
    if not cumulative or not cumulative[-1][1]:
        return None
    rank = share * cumulative[-1][1]
    below, bound = 0.0, 0.0
    for upper, count in cumulative:
        if count >= rank:
            if upper == float("inf"):
                return bound
            return bound + (upper - bound) * (rank - below) / (count - below)
        below, bound = count, upper
    return bound


class _EngineCollector(Collector):
    def __init__(self, engine: Engine, gauges: dict[str, tuple[str, Callable[[], float]]]) -> None:
        self._engine, self._gauges = engine, gauges

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        statistics = self._engine.statistics()
        for name, about, read in _COUNTERS:
            counter = CounterMetricFamily(name, about, labels=_LABELS)
            for one in statistics:
                counter.add_metric((one.name, one.version), read(one))
            yield counter
        for name, about, value in _GAUGES:
            gauge = GaugeMetricFamily(name, about, labels=_LABELS)
            for one in statistics:
                gauge.add_metric((one.name, one.version), value(one))
            yield gauge
        rows = HistogramMetricFamily("onnxla_batch_rows", "Rows of the batches that ran.", labels=_LABELS)
        for one in statistics:
            rows.add_metric((one.name, one.version), *_row_buckets(one))
        yield rows
        ready = GaugeMetricFamily("onnxla_model_ready", "Whether this version answers requests.", labels=_LABELS)
        for line in self._engine.index():
            ready.add_metric((line.name, line.version), float(line.state == "READY"))
        yield ready
        for name, (about, number) in self._gauges.items():
            yield GaugeMetricFamily(name, about, value=number())


def _row_buckets(one: ModelStatistics) -> tuple[list[tuple[str, float]], float]:
    counts = {rows: duration.count for rows, duration in one.batches.items()}
    buckets = [(str(float(bound)), float(sum(n for rows, n in counts.items() if rows <= bound))) for bound in _ROWS]
    return [*buckets, ("+Inf", float(sum(counts.values())))], float(sum(rows * n for rows, n in counts.items()))


_COUNTERS: tuple[tuple[str, str, Callable[[ModelStatistics], float]], ...] = (
    ("onnxla_inferences", "Requests that were answered, each counted by its rows.", lambda s: s.inferences),
    ("onnxla_executions", "Runs of the model.", lambda s: s.executions),
    ("onnxla_queue_seconds", "Time that requests waited to run, summed.", lambda s: s.queue.ns / 1e9),
    ("onnxla_compute_seconds", "Time that runs took, summed.", lambda s: s.compute.ns / 1e9),
    ("onnxla_compiles", "Sets of shapes that were compiled.", lambda s: s.compiles.count),
    ("onnxla_compile_seconds", "Time that compiling them took, summed.", lambda s: s.compiles.ns / 1e9),
    ("onnxla_compile_cache_hits", "Sets of shapes that the compile cache had.", lambda s: s.cache_hits),
)
_GAUGES: tuple[tuple[str, str, Callable[[ModelStatistics], float]], ...] = (
    ("onnxla_requests_waiting", "Requests that wait to run.", lambda s: s.queued),
    ("onnxla_requests_running", "Requests that run.", lambda s: s.running),
    ("onnxla_model_memory_bytes", "Weights and arenas of a model's instances.", lambda s: s.memory_bytes),
)
