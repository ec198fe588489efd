"""Published peaks of some GPUs, and how long the steps of a plan take on one at least.

Sources, dense rates without sparsity, at boost clocks: NVIDIA A100 datasheet (80 GB SXM), NVIDIA H100 datasheet
(SXM5), NVIDIA H200 datasheet (SXM), NVIDIA L4 datasheet, and "NVIDIA Ada GPU Architecture" (appendix A, RTX 4090, whose
tensor cores do half as much where they sum in f32).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from onnxla.codegen.kernels.ir import Kernel, walk
from onnxla.codegen.plan import Launch, Plan, walk_steps
from onnxla.codegen.traffic import bytes_moved
from onnxla.errors import InputError


@dataclass(frozen=True)
class Gpu:
    """Peaks in operations a second and bytes a second; of tensor cores where sums are f32."""

    name: str
    architecture: str
    gigabytes_per_second: float
    fp32: float
    """TFLOP/s without tensor cores."""
    tf32: float
    fp16: float
    """f16 and bf16 are equally fast."""


GPUS = (
    Gpu("A100", "sm_80", 2039, 19.5, 156, 312),
    Gpu("H100", "sm_90", 3350, 67, 494, 989),
    Gpu("H200", "sm_90", 4800, 67, 494, 989),
    Gpu("L4", "sm_89", 300, 30.3, 60, 121),
    Gpu("RTX 4090", "sm_89", 1008, 82.6, 82.6, 165.2),
)

LAUNCH_SECONDS = 2e-6
"""Taken for the least time of a kernel in a replayed CUDA graph. An assumption: nobody publishes it, and we measured no
GPU."""


@dataclass(frozen=True)
class Floor:
    """One launch on one GPU: what it moves, what it computes on which unit, and how long that takes at least."""

    step: str
    kernel: str
    source: str
    bytes: int
    flops: int
    unit: str
    """`fp32`, `tf32` or `fp16`: the units that do the products."""
    compute_seconds: float
    memory_seconds: float

    @property
    def seconds(self) -> float:
        return max(self.compute_seconds, self.memory_seconds, LAUNCH_SECONDS)

    @property
    def bound(self) -> str:
        if self.seconds == LAUNCH_SECONDS:
            return "launch"
        return self.unit if self.compute_seconds > self.memory_seconds else "memory"


def gpu_named(name: str) -> Gpu:
    """The GPU of that name; spaces and capitals do not count. Raises InputError."""
    wanted = name.lower().replace(" ", "").replace("-", "")
    for gpu in GPUS:
        if gpu.name.lower().replace(" ", "") == wanted:
            return gpu
    raise InputError(f"no peaks are known for {name!r}; there are {', '.join(g.name for g in GPUS)}")


def floors(plan: Plan, gpu: Gpu) -> Iterator[Floor]:
    """The floor of every launch of a GPU's plan, those inside loops once."""
    for step in walk_steps(plan.steps):
        if not isinstance(step, Launch):
            continue
        unit = unit_of(step.kernel)
        count = bytes_moved(step, plan.instructions.get(step.name))
        yield Floor(
            step=step.name,
            kernel=step.kernel.name,
            source=str(step.node) if step.node else "",
            bytes=count,
            flops=int(step.kernel.flops),
            unit=unit,
            compute_seconds=step.kernel.flops / (getattr(gpu, unit) * 1e12),
            memory_seconds=count / (gpu.gigabytes_per_second * 1e9),
        )


def unit_of(kernel: Kernel) -> str:
    """The units that do a kernel's products: tensor cores where it has their instructions."""
    kinds = {op.attributes[0] for op in walk(kernel.body) if op.opcode == "mma"}
    if not kinds:
        return "fp32"
    return "tf32" if kinds == {"tf32"} else "fp16"


def total_seconds(rows: list[Floor]) -> float:
    """Of all launches, one behind the other."""
    return math.fsum(row.seconds for row in rows)
