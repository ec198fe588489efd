"""Several ways to do the same thing, timed in turns, so that whatever else the machine does meets all of them."""

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

_WARMUP = 3
_LEAST = 3


@dataclass(frozen=True)
class Timing:
    """The runs of one of them, in seconds."""

    name: str
    median: float
    fastest: float
    runs: int
    ratio: float
    """Its time over that of the first of them: the median of what each round says."""


def take_turns(runs: Mapping[str, Callable[[], object]], rounds: int, burst: float) -> list[Timing]:
    """Time each of `runs` for `burst` seconds, and at least 3 runs, in each of `rounds` rounds."""
    for run in runs.values():
        for _ in range(_WARMUP):
            run()
    bursts: dict[str, list[list[float]]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            bursts[name].append(_burst(run, burst))
    first = next(iter(bursts.values()))
    return [_timing(name, own, first) for name, own in bursts.items()]


def _timing(name: str, bursts: list[list[float]], first: list[list[float]]) -> Timing:
    times = [t for burst in bursts for t in burst]
    ratios = [statistics.median(a) / statistics.median(b) for a, b in zip(bursts, first, strict=True)]
    return Timing(name, statistics.median(times), min(times), len(times), statistics.median(ratios))


def _burst(run: Callable[[], object], seconds: float) -> list[float]:
    """Times of runs one after the other. The first is not counted: it finds the caches full of another's data."""
    run()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < _LEAST or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return times
