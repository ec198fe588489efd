"""What compile jobs count of themselves: plain numbers that only grow, written on the server's event loop."""

from collections import Counter
from dataclasses import dataclass, field

from onnxla.serving.jobs.outcome import Outcome
from onnxla.serving.measurements import LONG_SECONDS, Histogram


@dataclass(slots=True)
class JobMeasurements:
    """Of all jobs since the server was started."""

    finished: Counter[str] = field(default_factory=Counter)
    """Jobs that have ended, by their state."""
    refused: int = 0
    """Models that were not taken, as too many waited already."""
    compile_seconds: Histogram = field(default_factory=lambda: Histogram(LONG_SECONDS))
    """Of each compile that ran, whatever came of it, without its time in the queue."""
    models_found: int = 0
    """Models whose artifact the store had."""
    models_missed: int = 0
    programs_found: int = 0
    """Programs, for one set of shapes each, of models that were compiled, which the store had."""
    programs_missed: int = 0

    def compiled(self, outcome: Outcome) -> None:
        """A compile has made its programs, or taken them out of the store."""
        found = sum(report.from_cache for report in outcome.reports)
        self.programs_found += found
        self.programs_missed += len(outcome.reports) - found
