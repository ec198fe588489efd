"""The cost model: how long a kernel takes on a machine that a few numbers describe.

    time = start + max(effort / rate, bytes of weights / memory + other bytes / the memory that holds them)

`effort` counts everything that a core does, as floating-point operations of multiply-adds that would take as long. A
way to compute something states it in advance (`kernels/tilings.py`), a kernel has it counted in its IR
(`kernels/work.py`). The machine is one stated for a target, so that choices are the same everywhere, or one that was
measured (`onnxla/roofline`), whose predictions `onnxla profile` sets beside what kernels took.
"""

from dataclasses import dataclass

from onnxla.codegen.cpu.target import Target

CLOCK = 3e9
"""Cycles a second of a stated machine. Choices compare times, and do not depend on it."""
FLOPS_PER_LANE = 4.0
"""A core starts two multiply-adds of whole registers in a cycle."""
HALVES = frozenset({"znver1", "btver2", "bdver1", "bdver2", "bdver3", "bdver4"})
"""CPUs, by LLVM's names, that compute 256 bits in two steps, so that they start one in a cycle."""
L2_BYTES_PER_CYCLE, L3_BYTES_PER_CYCLE, MEMORY_BYTES_PER_CYCLE = 32.0, 10.0, 3.5
"""What one core streams: between two runs of a layer the rest of the network has taken the caches."""


@dataclass(frozen=True)
class Work:
    """What a kernel asks of a machine, all its tasks together."""

    effort: float
    weight_bytes: float = 0.0
    """Bytes of weights, which a large model reads from memory in each run."""
    other_bytes: float = 0.0
    """Further bytes; they were written, or read, not long before."""
    tasks: int = 1


@dataclass(frozen=True)
class Machine:
    """What some threads of a machine do together."""

    flops_per_second: float
    memories: tuple[tuple[int | None, float], ...]
    """Bytes that a level of memory holds (None: all there are), and bytes a second; the fastest first."""
    start_seconds: float = 0.0
    parallel_start_seconds: float = 0.0
    threads: int = 1

    @staticmethod
    def stated(target: Target) -> "Machine":
        """One core of a CPU of that kind."""
        levels = (
            (target.l2_bytes, L2_BYTES_PER_CYCLE * CLOCK),
            (target.l3_bytes, L3_BYTES_PER_CYCLE * CLOCK),
            (None, MEMORY_BYTES_PER_CYCLE * CLOCK),
        )
        halves = 0.5 if target.cpu in HALVES and target.vector_bytes == 32 else 1.0
        return Machine(halves * FLOPS_PER_LANE * target.vector_bytes / 4 * CLOCK, levels)

    def seconds(self, work: Work, weights: float | None = None) -> float:
        """`weights` are the bytes of all weights of the model, by default more than any cache holds."""
        shared = work.tasks > 1 and self.threads > 1
        share = min(work.tasks, self.threads) / self.threads if work.tasks else 1.0
        transfer = work.weight_bytes / self._speed(weights) + work.other_bytes / self._speed(work.other_bytes)
        start = self.parallel_start_seconds if shared else self.start_seconds
        return start + max(work.effort / self.flops_per_second, transfer) / share

    def _speed(self, count: float | None) -> float:
        """Bytes a second of the fastest memory that holds so many."""
        return next(speed for size, speed in self.memories if size is None or (count is not None and count <= size))
