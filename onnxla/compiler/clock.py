"""What the stages of a compile take, and which part of the work each is."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from onnxla import watch
from onnxla.passes.pipeline import PassRecord

STAGES = {"import": (0.0, 0.04), "cache": (0.04, 0.05), "passes": (0.05, 0.12), "codegen": (0.12, 1.0)}
"""Which part of the time each stage takes, about."""
TUNING_STAGES = {"import": (0.0, 0.01), "cache": (0.01, 0.01), "passes": (0.01, 0.03), "tuning": (0.03, 0.85)}
TUNING_STAGES["codegen"] = (0.85, 1.0)


class Clock:
    """What the stages take."""

    def __init__(self, parts: Mapping[str, tuple[float, float]]) -> None:
        self.parts = parts
        self.is_final = True
        """Whether compiling again would make the same program: not where tuning ran out of time."""
        self.seconds: dict[str, float] = {}
        self.memory_bytes: dict[str, int] = {}
        self.passes: Sequence[PassRecord] = ()

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        peak, start = watch.peak_memory(), time.perf_counter()
        with watch.span(name, *self.parts[name]):
            yield
        self.seconds[name] = time.perf_counter() - start
        self.memory_bytes[name] = watch.peak_memory() - peak
