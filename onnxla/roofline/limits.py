"""The limits of a machine, and the time that a step takes at least: the roofline model.

    time = start of a step + max(operations / peak, bytes / bandwidth of the memory that holds them)

`predicted` is the forecast: the cost model of `codegen/cost.py`, for the machine that was measured.

After Williams, Waterman and Patterson, "Roofline: an insightful visual performance model" (2009). It is a floor, not a
forecast: operations that nobody counted (exponentials, conversions) are free in it, and every operand is read once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from onnxla.codegen.cost import Machine, Work
from onnxla.runtime.program import Step

_PRODUCTS_OF_BYTES = 4
"""That the instructions of CPUs with VNNI add up in a lane of 32 bits."""
_CLEARLY = 1.5
"""How far the count of a kernel's effort may be off, and more."""


@dataclass(frozen=True)
class Memory:
    """A level of memory: how many bytes it holds (None: as many as there are), and how fast they come."""

    name: str
    bytes: int | None
    gigabytes_per_second: float


@dataclass(frozen=True)
class Limits:
    """What a number of threads can do together, in fp32."""

    threads: int
    gigaflops: float
    memories: tuple[Memory, ...]
    """The fastest first; the last holds everything."""
    start_seconds: float
    """Of a step that runs as one task."""
    parallel_start_seconds: float
    """Of a step whose tasks are shared out."""

    def memory_for(self, count: int) -> Memory:
        """The fastest memory that holds so many bytes."""
        return next(m for m in self.memories if m.bytes is None or count <= m.bytes)

    def seconds(self, step: Step) -> float:
        """How long one round of a step takes at least."""
        start, compute, transfer = self._parts(step)
        return start + max(compute, transfer)

    def bound(self, step: Step) -> str:
        """What the floor is made of: `compute`, the name of a memory, or `start`."""
        start, compute, transfer = self._parts(step)
        if start > max(compute, transfer):
            return "start"
        return "compute" if compute > transfer else self.memory_for(step.bytes).name

    @property
    def machine(self) -> Machine:
        """As the cost model takes it."""
        memories = tuple((m.bytes, m.gigabytes_per_second * 1e9) for m in self.memories)
        return Machine(self.gigaflops * 1e9, memories, self.start_seconds, self.parallel_start_seconds, self.threads)

    def predicted(self, step: Step, weights: int) -> float:
        """How long the cost model says that one round of a step takes, in a model with so many bytes of weights."""
        work = Work(step.effort, step.weight_bytes, step.bytes - step.weight_bytes, step.tasks)
        return self.machine.seconds(work, weights)

    def _parts(self, step: Step) -> tuple[float, float, float]:
        """Seconds to start, to compute and to move the bytes."""
        start = self.parallel_start_seconds if step.tasks > 1 and self.threads > 1 else self.start_seconds
        share = min(step.tasks or self.threads, self.threads) / self.threads  # who has no task has no part in it
        memory = self.memory_for(step.bytes)
        # far less effort than operations: integers are multiplied several to an instruction, four to a lane at most
        operations = step.flops / (_PRODUCTS_OF_BYTES if 0 < _CLEARLY * step.effort < step.flops else 1)
        return start, operations / (self.gigaflops * 1e9 * share), step.bytes / (memory.gigabytes_per_second * 1e9)

    def improved_by(self, other: "Limits") -> "Limits":
        """The better of two measurements in each respect: something else may have kept the machine busy."""
        pairs = zip(self.memories, other.memories, strict=True)
        return Limits(
            self.threads,
            max(self.gigaflops, other.gigaflops),
            tuple(Memory(a.name, a.bytes, max(a.gigabytes_per_second, b.gigabytes_per_second)) for a, b in pairs),
            min(self.start_seconds, other.start_seconds),
            min(self.parallel_start_seconds, other.parallel_start_seconds),
        )

    def json(self) -> dict[str, Any]:
        """As a cache keeps it."""
        return {
            "threads": self.threads,
            "gigaflops": self.gigaflops,
            "memories": [[m.name, m.bytes, m.gigabytes_per_second] for m in self.memories],
            "start_seconds": self.start_seconds,
            "parallel_start_seconds": self.parallel_start_seconds,
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> "Limits":
        """Raises KeyError, TypeError or ValueError for what `json` did not make."""
        memories = tuple(
            Memory(str(name), None if count is None else int(count), float(speed))
            for name, count, speed in data["memories"]
        )
        limits = Limits(
            int(data["threads"]),
            float(data["gigaflops"]),
            memories,
            float(data["start_seconds"]),
            float(data["parallel_start_seconds"]),
        )
        speeds = [limits.gigaflops, *(m.gigabytes_per_second for m in memories)]
        if not memories or memories[-1].bytes is not None or not all(0 < s < 1e9 for s in speeds):
            raise ValueError("impossible limits")
        return limits
