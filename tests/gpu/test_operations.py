"""Every operation of the table has a GPU lowering, and its kernels compute what `evaluate` says.

Each opcode is tried on some of its cases, spread over the table, so that the simulator is done in a minute.
"""

from collections.abc import Sequence

import pytest

import onnxla
from onnxla.hlo.types import Array
from onnxla.runtime.device import Device
from onnxla.runtime.device_executable import DeviceExecutable
from tests.codegen.kernel_runner import disagreement, leaves, together
from tests.gpu.devices import BOTH, device_named
from tests.hlo.case import Case
from tests.hlo.op_cases import CASES

FEW = 8
SUMS = {"dot", "convolution", "reduce", "reduce-window", "scatter", "select-and-scatter", "fft"}


def some(cases: Sequence[Case]) -> list[Case]:
    """At most FEW cases, evenly spread. Complex numbers have no GPU kernels."""
    cases = [case for case in cases if not any(a.dtype.kind == "c" for a in case.arguments)]
    step = max(1, -(-len(cases) // FEW))
    return list(cases[step // 2 :: step])


def run_together(cases: Sequence[Case], device: Device) -> list[list[Array]]:
    """The leaves of each case's result."""
    model = onnxla.compile(together(cases), target="gpu", options={"cache_dir": None})
    executable = DeviceExecutable(model.programs[0], device)
    results = iter(executable.run([a for case in cases for a in case.arguments], 1))
    return [[next(results) for _ in leaves(case.computation().evaluate(*case.arguments))] for case in cases]


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("opcode", [opcode for opcode, cases in CASES.items() if some(cases)])
def test_code_agrees_with_evaluate(opcode: str, kind: str) -> None:
    device, cases = device_named(kind), some(CASES[opcode])
    found = []
    for case, results in zip(cases, run_together(cases, device), strict=True):
        expected = leaves(case.computation().evaluate(*case.arguments))
        for ours, reference in zip(results, expected, strict=True):
            difference = disagreement(ours, reference, case.ulps, opcode in SUMS)
            found += [f"{case.name}: {difference}"] if difference else []
    assert not found, "\n".join(found)
