"""What Prometheus reads of compile jobs, beside what the server itself has."""

from collections import Counter
from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from onnxla.serving.jobs.job import State
from onnxla.serving.jobs.manager import Jobs
from onnxla.serving.metrics import histogram


class JobMetrics(Collector):
    """The counts of one server's jobs."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        counts = self._jobs.measurements
        states = Counter(job.state for job in self._jobs.jobs())
        now = GaugeMetricFamily("onnxla_jobs", "Compile jobs that have not ended.", labels=("state",))
        ended = CounterMetricFamily("onnxla_jobs_finished", "Compile jobs that have ended.", labels=("state",))
        for state in State:
            if state.is_final:
                ended.add_metric((state.value,), counts.finished[state.value])
            else:
                now.add_metric((state.value,), states[state])
        yield now
        yield ended
        about = "Time of each compile of a job, without its time in the queue."
        yield histogram("onnxla_job_compile_seconds", about, [((), counts.compile_seconds)], ())
        for name, about, value in (
            ("onnxla_jobs_refused", "Models that were not taken, as too many waited.", counts.refused),
            ("onnxla_store_models_found", "Models whose artifact the store had.", counts.models_found),
            ("onnxla_store_models_missed", "Models whose artifact it did not have.", counts.models_missed),
            ("onnxla_store_programs_found", "Programs of other models that the store had.", counts.programs_found),
            ("onnxla_store_programs_missed", "Programs that it did not have.", counts.programs_missed),
        ):
            yield CounterMetricFamily(name, about, value=value)
