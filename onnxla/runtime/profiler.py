"""Where the time of a run goes, and its memory: step by step, named by the node of the user's model.

Native code writes a profile as an array of int64 (`codegen/cpu/emit_profile.py` has the layout); `new_profile` makes
one and `profile_of` reads it.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from onnxla.runtime.program import Program, Step
from onnxla.runtime.tensors import Array

_HEAD, _STEP, _RECORD = 4, 3, 4
_RECORDS = 2
MOST_SPANS = 1 << 20
"""Spans that one profile keeps: 32 MB."""


@dataclass(frozen=True)
class ProfileRow:
    """One step of the plan and how long it took: all its rounds together, where it is inside a loop."""

    step: Step
    seconds: float
    rounds: int = 1

    @property
    def gigabytes_per_second(self) -> float:
        return self.step.bytes * self.rounds / self.seconds / 1e9 if self.seconds else 0.0

    @property
    def gigaflops(self) -> float:
        return self.step.flops * self.rounds / self.seconds / 1e9 if self.seconds else 0.0


@dataclass(frozen=True)
class Span:
    """A step from begin to end, or one task of it on a thread. Times are in seconds since the run began."""

    step: int
    """Which row of the profile."""
    thread: int
    """0: the step as a whole; from 1 on: the threads that ran its tasks, in the order they are met."""
    begin: float
    end: float


@dataclass(frozen=True)
class Profile:
    """The steps of one run in the order they ran; the steps inside a loop or branch follow it (`step.depth`)."""

    rows: tuple[ProfileRow, ...]
    spans: tuple[Span, ...] = ()
    """Every round of every step and every task, where they were asked for."""
    lost: int = 0
    """Spans for which there was no room."""
    overhead: float | None = None
    """How much longer a run took with the profile than without: 0.01 is a hundredth. None where nobody asked."""

    @property
    def outer(self) -> tuple[ProfileRow, ...]:
        """The steps that are not inside another."""
        return tuple(row for row in self.rows if row.step.depth == 0)

    @property
    def seconds(self) -> float:
        """Time inside the native code."""
        return sum(row.seconds for row in self.outer)

    def slowest(self, count: int | None = None) -> list[ProfileRow]:
        """The outer steps that took longest, the slowest first."""
        return sorted(self.outer, key=lambda row: -row.seconds)[:count]

    def grouped(self) -> Iterator[tuple[ProfileRow, list[ProfileRow]]]:
        """Each outer step, the slowest first, with the steps inside it in the order they ran."""
        inside: dict[int, list[ProfileRow]] = {}
        for row in self.rows:
            if row.step.depth == 0:
                members = inside[id(row)] = []
            else:
                members.append(row)
        for row in self.slowest():
            yield row, inside[id(row)]

    def __str__(self) -> str:
        total = self.seconds or 1.0
        lines = [f"{self.seconds * 1e3:.3f} ms in {len(self.outer)} steps", "      us     %    GB/s  GFLOP/s  step"]
        for outer, inner in self.grouped():
            for r in (outer, *inner):
                rounds = f" x{r.rounds}" if r.rounds != 1 else ""
                lines.append(
                    f"{r.seconds * 1e6:8.1f} {r.seconds / total * 100:5.1f} {r.gigabytes_per_second:7.1f} "
                    f"{r.gigaflops:8.1f}  {'  ' * r.step.depth}{r.step.name}{rounds} {r.step.source}".rstrip()
                )
        return "\n".join(lines)


def new_profile(steps: int, records: int = 0) -> Array:
    """Room for the times of so many steps, and for so many spans."""
    profile = np.zeros(_HEAD + _STEP * steps + _RECORD * records, np.int64)
    profile[_RECORDS] = records
    return profile


def add_time(profile: Array, step: int, begin: int, end: int) -> None:
    """A round of a step, as native code writes it; clock values in ns."""
    row = _HEAD + _STEP * step
    profile[row] = begin
    profile[row + 1] += end - begin
    profile[row + 2] += 1
    number, room = int(profile[_RECORDS + 1]), int(profile[_RECORDS])
    if not room:
        return
    profile[_RECORDS + 1] += 1
    if number < room:
        first = len(profile) - _RECORD * (room - number)
        profile[first : first + _RECORD] = (step, 0, begin, end)


def span_count(profile: Profile) -> int:
    """How many spans a run like this one has."""
    return sum(row.rounds * (1 + (row.step.tasks if row.step.tasks > 1 else 0)) for row in profile.rows)


def profile_of(steps: Sequence[Step], profile: Array) -> Profile:
    """What a run wrote into the array that `new_profile` made."""
    begin, _, room, taken = (int(n) for n in profile[:_HEAD])
    end = _HEAD + _STEP * len(steps)
    times = profile[_HEAD:end].reshape(-1, _STEP)
    rows = tuple(ProfileRow(s, int(t) / 1e9, int(n)) for s, (_, t, n) in zip(steps, times, strict=True))
    threads: dict[int, int] = {0: 0}
    spans = []
    for step, thread, start, stop in profile[end:].reshape(-1, _RECORD)[: min(taken, room)].tolist():
        number = threads.setdefault(thread, len(threads))
        spans.append(Span(step, number, (start - begin) / 1e9, (stop - begin) / 1e9))
    return Profile(rows, tuple(spans), max(taken - room, 0))


@dataclass(frozen=True)
class Memory:
    """Bytes that a model needs: the arena once for each run that is under way, the rest once."""

    arena: int
    intermediates: int
    """What all intermediate values would take without sharing."""
    weights: int
    inputs: int
    outputs: int

    def __str__(self) -> str:
        return (
            f"arena {self.arena} bytes (all intermediates {self.intermediates}), weights {self.weights}, "
            f"inputs {self.inputs}, outputs {self.outputs}"
        )


def memory_of(program: Program) -> Memory:
    """The memory of one program."""
    return Memory(
        program.arena_bytes,
        program.intermediate_bytes,
        program.weights.nbytes,
        sum(t.bytes for t in program.inputs),
        sum(t.bytes for t in program.outputs),
    )


def fastest_of(
    steps: Sequence[Step], run: Callable[[Array | None], object], runs: int, *, spans: bool, overhead: bool
) -> Profile:
    """The profile of the fastest of `runs` runs; `run` writes one where it is given an array.

    With `spans`, rounds and tasks too; with `overhead` it runs as often without a profile, in turns.
    """
    records = 0
    if spans:
        first = new_profile(len(steps))
        run(first)
        records = min(span_count(profile_of(steps, first)), MOST_SPANS)

    def timed(profile: Array | None) -> int:
        start = time.perf_counter_ns()
        run(profile)
        return time.perf_counter_ns() - start

    profiles, plain, profiled = [], [], []
    for _ in range(runs):
        if overhead:
            plain.append(timed(None))
        profiles.append(new_profile(len(steps), records))
        profiled.append(timed(profiles[-1]))
    fastest = min(profiles, key=lambda p: int(p[1] - p[0]))
    cost = float(np.median(profiled) / np.median(plain)) - 1 if overhead else None
    return replace(profile_of(steps, fastest), overhead=cost)
