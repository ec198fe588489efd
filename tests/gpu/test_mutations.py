"""Each barrier, wait for copies and bound of each kernel class is needed, and the simulator notices where one is gone.

Barriers and waits are taken out one at a time; a bound is moved wherever the kernel has it. What is left must have a
fault or give another result. A barrier that can go without notice is one that kernels should not have.
"""

import re
from collections.abc import Iterator

import numpy as np
import pytest

from onnxla.codegen.gpu.emit_cuda import emit_cuda
from onnxla.codegen.gpu.schedule import lower
from onnxla.codegen.gpu.target import GpuTarget
from tests.gpu.kernel_classes import AWKWARD
from tests.gpu.running import Mutation, reference, run_lowering, samples

BARRIER = "__syncthreads();"
WAIT = 'asm volatile("cp.async.wait_all;" ::: "memory");'
BEYOND = 16
"""How far bounds are moved."""


def mutants(source: str) -> Iterator[tuple[str, str]]:
    """What is changed, and the kernel with that."""
    for what in (BARRIER, WAIT):
        for k, place in enumerate(re.finditer(re.escape(what), source)):
            yield f"{what} number {k}", source[: place.start()] + source[place.end() :]
    for bound in sorted(set(re.findall(r"const bool \w+ = \w+ ((?:<|>=) \d+);", source))):
        sign, number = bound.split()
        moved = int(number) + (BEYOND if sign == "<" else -BEYOND)
        yield bound, source.replace(f" {bound};", f" {sign} {moved};")


def exchange(source: str, changed: str) -> Mutation:
    """Of one kernel; others stay."""
    return lambda text: changed if text == source else text


@pytest.mark.parametrize("name", AWKWARD)
def test_everything_is_needed(name: str) -> None:
    instruction = AWKWARD[name]()
    lowering, arrays = lower(instruction, GpuTarget()), samples(instruction)
    (expected,) = reference(instruction, arrays)
    unnoticed, count = [], 0
    for call in lowering.calls:
        source = emit_cuda(call.kernel, "kernel")
        for change, changed in mutants(source):
            (result,), reports = run_lowering(lowering, instruction, arrays, exchange(source, changed))
            tolerance = 2e-2 if result.dtype.itemsize == 2 else 1e-4
            count += 1
            if not reports and np.allclose(result.astype("f8"), expected.astype("f8"), tolerance, tolerance):
                unnoticed.append(f"{call.kernel.name}: {change}")
    assert count and not unnoticed


def test_bounds_and_barriers_are_found() -> None:
    source = f"  const bool v1 = v0 < 70;\n  {BARRIER}\n  const bool v2 = v0 >= 0;\n  {WAIT}\n  {BARRIER}\n"
    changed = dict(mutants(source))
    assert len(changed) == 5
    assert "v0 < 86;" in changed["< 70"] and "v0 >= -16;" in changed[">= 0"]
    assert changed[f"{BARRIER} number 1"].count(BARRIER) == 1
