"""What the engine counts of itself: plain numbers that only grow, and gauges. The protocols' side exports them.

All of it is written and read on the server's event loop.
"""

from bisect import bisect_left
from dataclasses import dataclass, field

SECONDS = tuple(round(unit * step, 9) for unit in (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0) for step in (1, 2.5, 5)) + (10.0,)
"""Bounds of latencies, from 10 microseconds to 10 seconds."""
ROWS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0)
LONG_SECONDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 60.0, 150.0, 600.0)
"""Bounds of what takes long: compiling and loading."""


class Histogram:
    """How often a value was at most each of `bounds`, as Prometheus counts."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        """By bucket, not summed up; the last is of what lies above all bounds."""
        self.sum = 0.0

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    @property
    def count(self) -> int:
        return sum(self.counts)

    def cumulative(self) -> list[tuple[float, int]]:
        """For each bound how many values were at most that, and for infinity all of them."""
        rows, total = [], 0
        for bound, count in zip((*self.bounds, float("inf")), self.counts, strict=True):
            total += count
            rows.append((bound, total))
        return rows


@dataclass(slots=True)
class ModelMeasurements:
    """Distributions of one version of a model, since it was loaded; its sums are in `ModelStatistics`."""

    name: str
    version: str
    latency: Histogram = field(default_factory=lambda: Histogram(SECONDS))
    """Seconds from a request's arrival at the engine to its result, of those that succeeded."""
    queue: Histogram = field(default_factory=lambda: Histogram(SECONDS))
    """Seconds from a request's arrival to the begin of its run."""
    compute: Histogram = field(default_factory=lambda: Histogram(SECONDS))
    """Seconds of each run of the model, arrays put together and taken apart included."""
    batch_rows: Histogram = field(default_factory=lambda: Histogram(ROWS))
    """Rows of each run; for models without a batch dimension 1."""
    failures: dict[str, int] = field(default_factory=dict)
    """Requests that failed, by the name of the error's class; `Cancelled` for those that the client gave up."""
    worker_restarts: int = 0
    """Worker processes that died and were replaced."""
    specialisations: int = 0
    """Sets of input shapes with code now."""


@dataclass(slots=True)
class EngineMeasurements:
    """Of the whole engine, since it was started."""

    models: list[ModelMeasurements] = field(default_factory=list)
    compile_seconds: Histogram = field(default_factory=lambda: Histogram(LONG_SECONDS))
    """Of each compile, successful or not."""
    load_seconds: Histogram = field(default_factory=lambda: Histogram(LONG_SECONDS))
    """Of each version from the decision to load it to its readiness."""
    compiles_failed: int = 0
    cache_hits: int = 0
    """Programs that the compile cache had."""
    cache_misses: int = 0
    """Programs that were compiled anew."""
    compiling: int = 0
    """Compiles that run now."""
    compiles_waiting: int = 0
    """Compiles that wait for one of those to end."""
    loads_failed: int = 0
