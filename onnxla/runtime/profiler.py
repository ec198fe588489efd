"""Where the time of a run goes, and its memory: step by step, named by the node of the user's model."""

from collections.abc import Iterable
from dataclasses import dataclass

from onnxla.runtime.program import Program, Step


@dataclass(frozen=True)
class ProfileRow:
    """One step of the plan and how long it took."""

    step: Step
    seconds: float

    @property
    def gigabytes_per_second(self) -> float:
        return self.step.bytes / self.seconds / 1e9 if self.seconds else 0.0

    @property
    def gigaflops(self) -> float:
        return self.step.flops / self.seconds / 1e9 if self.seconds else 0.0


@dataclass(frozen=True)
class Profile:
    """The steps of one run in the order they ran."""

    rows: tuple[ProfileRow, ...]

    @property
    def seconds(self) -> float:
        """Time inside the native code."""
        return sum(row.seconds for row in self.rows)

    def slowest(self, count: int | None = None) -> list[ProfileRow]:
        """The steps that took longest, the slowest first."""
        return sorted(self.rows, key=lambda row: -row.seconds)[:count]

    def __str__(self) -> str:
        total = self.seconds or 1.0
        lines = [f"{self.seconds * 1e3:.3f} ms in {len(self.rows)} steps", "      us     %    GB/s  GFLOP/s  step"]
        lines += [
            f"{r.seconds * 1e6:8.1f} {r.seconds / total * 100:5.1f} {r.gigabytes_per_second:7.1f} {r.gigaflops:8.1f}  "
            f"{r.step.name} {r.step.source}".rstrip()
            for r in self.slowest()
        ]
        return "\n".join(lines)


def profile_of(steps: Iterable[Step], nanoseconds: Iterable[int]) -> Profile:
    """The profile of one run, from the time that each step took."""
    return Profile(tuple(ProfileRow(s, int(t) / 1e9) for s, t in zip(steps, nanoseconds, strict=True)))


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
