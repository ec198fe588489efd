"""What Prometheus reads at `/metrics`.

Requests are measured here, from their head to their answer; all that the engine measures itself is read from it when
somebody asks. Labels are models and versions that the engine has, so their number is bounded.
"""

from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from onnxla.serving.measurements import SECONDS, EngineMeasurements, Histogram, ModelMeasurements
from onnxla.serving.requests import Engine, ModelStatistics

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_MODEL = ("model", "version")


class Metrics(Collector):
    """The counts of one server."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._seconds: dict[tuple[str, str, str], Histogram] = {}
        self._failures: dict[tuple[str, str, str], int] = {}
        self._gauges: dict[str, tuple[str, Callable[[], float]]] = {}
        self._registry = CollectorRegistry()
        self._registry.register(self)
        PlatformCollector(registry=self._registry)
        ProcessCollector(registry=self._registry)

    def gauge(self, name: str, about: str, read: Callable[[], float]) -> None:
        """One more number, read when somebody asks."""
        self._gauges[name] = (about, read)

    def register(self, collector: Collector) -> None:
        """Further metrics, collected when somebody asks."""
        self._registry.register(collector)

    def answered(self, protocol: str, model: str, version: str, seconds: float) -> None:
        """A request got its answer. `model` and `version` are the engine's own."""
        key = (protocol, model, version)
        found = self._seconds.get(key)
        if found is None:
            found = self._seconds[key] = Histogram(SECONDS)
        found.add(seconds)

    def failed(self, protocol: str, model: str, code: str) -> None:
        """A request got an error. `model` is empty where the engine has none of this name."""
        key = (protocol, model, code)
        self._failures[key] = self._failures.get(key, 0) + 1

    def text(self) -> bytes:
        """All of it in Prometheus' text format."""
        return generate_latest(self._registry)

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        yield histogram(
            "onnxla_request_seconds",
            "Time of an inference request in this server, from its head to its answer.",
            list(self._seconds.items()),  # others may come meanwhile
            ("protocol", *_MODEL),
        )
        failures = CounterMetricFamily(
            "onnxla_request_failures",
            "Inference requests that got an error, by its status in gRPC.",
            labels=("protocol", "model", "code"),
        )
        for key, count in self._failures.items():
            failures.add_metric(key, count)
        yield failures
        yield from _of_statistics(self._engine.statistics())
        yield from _of_measurements(self._engine.measurements())
        ready = GaugeMetricFamily("onnxla_model_ready", "Whether this version answers requests.", labels=_MODEL)
        for line in self._engine.index():
            ready.add_metric((line.name, line.version), float(line.state == "READY"))
        yield ready
        for name, (about, read) in self._gauges.items():
            yield GaugeMetricFamily(name, about, value=read())


def quantile(of: Histogram, share: float) -> float | None:
    """The value below which this share of all lies, as exact as the buckets are; None where there are none."""
    cumulative = of.cumulative()
    rank = share * cumulative[-1][1]
    below, lower = 0, 0.0
    for upper, count in cumulative:
        if count >= rank and count > below:
            return lower if upper == float("inf") else lower + (upper - lower) * (rank - below) / (count - below)
        below, lower = count, upper
    return None


def histogram(
    name: str, about: str, rows: Iterable[tuple[tuple[str, ...], Histogram]], labels: tuple[str, ...]
) -> HistogramMetricFamily:
    """One metric, of a histogram for each tuple of its labels' values."""
    family = HistogramMetricFamily(name, about, labels=labels)
    for key, one in rows:
        buckets = [
            ("+Inf" if bound == float("inf") else repr(float(bound)), count) for bound, count in one.cumulative()
        ]
        family.add_metric(key, buckets, one.sum)
    return family


def _of_statistics(statistics: Iterable[ModelStatistics]) -> Iterator[Metric]:
    for kind, rows in ((CounterMetricFamily, _COUNTERS), (GaugeMetricFamily, _GAUGES)):
        for name, about, read in rows:
            family = kind(name, about, labels=_MODEL)
            for one in statistics:
                family.add_metric((one.name, one.version), read(one))
            yield family


def _of_measurements(engine: EngineMeasurements) -> Iterator[Metric]:
    for name, about, read in _DISTRIBUTIONS:
        yield histogram(name, about, [((m.name, m.version), read(m)) for m in engine.models], _MODEL)
    for name, about, one in (
        ("onnxla_compile_seconds", "Time of each compile.", engine.compile_seconds),
        ("onnxla_load_seconds", "Time from the decision to load a version to its readiness.", engine.load_seconds),
    ):
        yield histogram(name, about, [((), one)], ())
    for name, about, value in (
        ("onnxla_compile_cache_hits", "Programs that the compile cache had.", engine.cache_hits),
        ("onnxla_compile_cache_misses", "Programs that were compiled anew.", engine.cache_misses),
        ("onnxla_compiles_failed", "Compiles that failed.", engine.compiles_failed),
        ("onnxla_loads_failed", "Versions that could not be loaded.", engine.loads_failed),
    ):
        yield CounterMetricFamily(name, about, value=value)
    for name, about, value in (
        ("onnxla_compiles_running", "Compiles that run.", engine.compiling),
        ("onnxla_compiles_waiting", "Compiles that wait for one of those to end.", engine.compiles_waiting),
    ):
        yield GaugeMetricFamily(name, about, value=value)
    restarts = CounterMetricFamily("onnxla_worker_restarts", "Worker processes that were replaced.", labels=_MODEL)
    for model in engine.models:
        restarts.add_metric((model.name, model.version), model.worker_restarts)
    yield restarts


_COUNTERS: tuple[tuple[str, str, Callable[[ModelStatistics], float]], ...] = (
    ("onnxla_inferences", "Requests that were answered, each counted by its rows.", lambda s: s.inferences),
    ("onnxla_executions", "Runs of the model.", lambda s: s.executions),
)
_GAUGES: tuple[tuple[str, str, Callable[[ModelStatistics], float]], ...] = (
    ("onnxla_requests_waiting", "Requests that wait to run.", lambda s: s.queued),
    ("onnxla_requests_running", "Requests that run.", lambda s: s.running),
    ("onnxla_model_memory_bytes", "Weights and arenas of a model's instances.", lambda s: s.memory_bytes),
)
_DISTRIBUTIONS: tuple[tuple[str, str, Callable[[ModelMeasurements], Histogram]], ...] = (
    ("onnxla_queue_seconds", "Time that requests waited to run.", lambda m: m.queue),
    ("onnxla_compute_seconds", "Time of each run of the model.", lambda m: m.compute),
    ("onnxla_batch_rows", "Rows of each run.", lambda m: m.batch_rows),
)
