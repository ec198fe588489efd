"""Budgets of each kernel class: sectors of global memory, bank conflicts, occupancy; and that bad ones are seen.

A budget is what the class reaches now, rounded down: it says when a change makes kernels slower, on every GPU.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from onnxla.codegen.gpu.emit_cuda import emit_cuda
from onnxla.codegen.gpu.schedule import lower
from onnxla.codegen.gpu.target import GpuTarget
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import BF16, F32
from tests.gpu.kernel_classes import (
    attention,
    convolution,
    elementwise,
    fused,
    product,
    product_of_bytes,
    reduction,
    running_sum,
    scatter,
    softmax,
    sort,
    transpose,
    update,
)
from tests.gpu.lints import occupancy, sector_efficiency
from tests.gpu.ptx_memory import sectors
from tests.gpu.running import ARCHITECTURE, code_for, run_lowering, samples
from tests.gpu.test_resources import registers_and_spills


@dataclass(frozen=True)
class Budget:
    """The least that a class must reach."""

    make: Callable[[], Instruction]
    sectors: float
    occupancy: float
    conflicts: int = 0


BUDGETS = {
    "loop": Budget(lambda: elementwise(700), 1.0, 1.0),
    "row": Budget(lambda: softmax((3, 1024)), 0.95, 0.9),
    "reduction of columns": Budget(lambda: reduction((300, 64), [0]), 0.95, 0.9),
    "transpose": Budget(lambda: transpose((64, 96), (1, 0)), 1.0, 0.9),
    "product of f32": Budget(lambda: product(64, 32, 64), 0.9, 0.4),
    "product of bf16": Budget(lambda: product(64, 64, 64, BF16), 0.95, 0.25),
    "product of bytes": Budget(lambda: product_of_bytes(64, 64, 64), 0.95, 0.25),
    "convolution of f32": Budget(lambda: convolution(F32), 0.7, 0.9),
    "convolution of bf16": Budget(lambda: convolution(BF16), 0.3, 0.4),
    "depthwise convolution": Budget(lambda: convolution(F32, 16), 1.0, 0.9),
    "sort": Budget(lambda: sort(70), 0.6, 0.9),
    "scatter": Budget(lambda: scatter(70), 0.8, 0.9),
    "update": Budget(lambda: update(70), 1.0, 0.9),
    "scan": Budget(lambda: running_sum(70), 0.2, 0.9),
    "attention of bf16": Budget(lambda: fused(attention(1, 64, 64, 32, 32, BF16)), 0.7, 0.2),
    "attention of f32": Budget(lambda: fused(attention(1, 32, 64, 32, 32, F32)), 0.95, 0.2),
}


@pytest.mark.parametrize("name", BUDGETS)
def test_budget(name: str) -> None:
    budget = BUDGETS[name]
    instruction = budget.make()
    lowering = lower(instruction, GpuTarget())
    _, reports = run_lowering(lowering, instruction, samples(instruction), measures=True)
    assert not reports, dict(reports)
    assert sum(reports.conflicts.values()) <= budget.conflicts, dict(reports.conflicts)
    assert sector_efficiency(reports) >= budget.sectors
    for call in lowering.calls:
        registers, _, shared = registers_and_spills(code_for(emit_cuda(call.kernel, "kernel")).log)
        assert occupancy(ARCHITECTURE, call.kernel.threads, registers, shared) >= budget.occupancy, (registers, shared)


def test_neighbours_far_apart_touch_a_sector_each() -> None:
    lane, warp = np.arange(32), np.zeros(32, np.int64)
    assert sectors(4 * lane, warp, 4) == (4, 4)
    assert sectors(4 * lane + 4, warp, 4) == (5, 4)
    assert sectors(128 * lane, warp, 4) == (32, 4)
    assert sectors(0 * lane, warp, 4) == (1, 1)
    assert sectors(16 * lane, warp, 16) == (16, 16)


def test_a_walk_along_columns_is_noticed() -> None:
    instruction = elementwise(700)
    code = lower(instruction, GpuTarget())
    _, reports = run_lowering(
        code,
        instruction,
        samples(instruction),
        lambda source: source.replace("threadIdx.x", "(threadIdx.x % 16 * 16 + threadIdx.x / 16)"),
        measures=True,
    )
    assert sector_efficiency(reports) < 0.5


@pytest.mark.parametrize(
    ("architecture", "threads", "registers", "shared", "expected"),
    [
        ("sm_80", 256, 32, 0, 1.0),
        ("sm_80", 256, 128, 0, 0.25),
        ("sm_80", 128, 40, 0, 0.75),
        ("sm_80", 128, 32, 40 << 10, 0.25),
        ("sm_120", 512, 32, 0, 1.0),
        ("sm_75", 1024, 64, 0, 1.0),
    ],
)
def test_occupancy(architecture: str, threads: int, registers: int, shared: int, expected: float) -> None:
    assert occupancy(architecture, threads, registers, shared) == pytest.approx(expected)
