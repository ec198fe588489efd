"""Counts what one version of a model does: Triton's sums and our distributions, written together, by any thread."""

import threading
import time

from onnxla.serving.measurements import ModelMeasurements
from onnxla.serving.requests import Duration, ModelStatistics


class Recorder:
    """Times are `time.perf_counter_ns()`."""

    def __init__(self, name: str, version: str) -> None:
        self.statistics = ModelStatistics(name, version)
        self.measurements = ModelMeasurements(name, version)
        self._lock = threading.Lock()

    def run(self, rows: int, began: int, ended: int) -> None:
        """One run of the model."""
        took = ended - began
        with self._lock:
            counts = self.statistics
            counts.executions += 1
            found = counts.batches.get(rows)
            if found is None:
                found = counts.batches[rows] = Duration()
            found.count += 1
            found.ns += took
            self.measurements.compute.add(took / 1e9)
            self.measurements.batch_rows.add(rows)

    def request(self, arrived: int, began: int, ended: int, rows: int) -> None:
        """One request that has its result."""
        with self._lock:
            counts = self.statistics
            counts.inferences += rows
            counts.last_inference = time.time_ns() // 1_000_000
            counts.success.add(ended - arrived)
            counts.queue.add(began - arrived)
            counts.compute.add(ended - began)
            self.measurements.latency.add((ended - arrived) / 1e9)
            self.measurements.queue.add((began - arrived) / 1e9)

    def failure(self, kind: str, arrived: int) -> None:
        """One request that has none."""
        with self._lock:
            self.statistics.fail.add(time.perf_counter_ns() - arrived)
            failures = self.measurements.failures
            failures[kind] = failures.get(kind, 0) + 1
