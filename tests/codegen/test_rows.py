"""What the row schedule asks memory for ahead of time, and that results stay what they are."""

import re
from collections.abc import Callable

import numpy as np
import pytest

from onnxla.codegen.cpu.target import Target, named_target
from onnxla.codegen.kernels.schedule import lower
from onnxla.codegen.kernels.text import print_kernel
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.control_flow import Fusion
from onnxla.hlo.types import F32, TensorType
from tests.codegen.kernel_runner import problems
from tests.codegen.test_kernels_schedules import layer_norm, softmax
from tests.hlo.case import Case, random

V3 = named_target("x86-64-v3")
MACHINE = Target(V3.triple, V3.cpu, V3.features, l2_bytes=1 << 20)
Build = Callable[[Builder, Instruction], Instruction]


def asked_for(build: Build, rows: int, columns: int) -> set[str]:
    """The buffers that the kernel of a fusion prefetches."""
    body = Builder("rows")
    computation = body.build(build(body, body.parameter(TensorType(F32, (rows, columns)))))
    b = Builder("main")
    fusion = b.emit(Fusion("kInput", computation), b.parameter(TensorType(F32, (rows, columns))))
    (call,) = lower(fusion, MACHINE).calls
    return set(re.findall(r"prefetch (\w+)", print_kernel(call.kernel)))


@pytest.mark.parametrize("build", [softmax, layer_norm])
def test_rows_from_memory_are_asked_for(build: Build) -> None:
    assert asked_for(build, 4096, 1024) == {"in0", "out0"}


def test_rows_in_cache_rows_too_long_for_it_and_single_sweeps_are_not() -> None:
    assert asked_for(softmax, 64, 64) == set()
    assert asked_for(softmax, 4, 1 << 20) == set()
    assert asked_for(lambda b, x: b.reduce_by("maximum", x, [1]), 4096, 1024) == set()


def test_results_of_rows_from_memory() -> None:
    x = random(F32, (1030, 259))
    cases = [Case("softmax", softmax, (x,), 64), Case("layer norm", layer_norm, (x,), 64)]
    assert np.prod(x.shape) * 8 > MACHINE.l2_bytes
    assert not problems(cases, "x86-64-v3", normwise=True)
