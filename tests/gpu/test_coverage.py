"""Every operation of HLO is planned for a GPU: by kernels of its own, in fusions, by the plan, or expanded before."""

import pytest

from onnxla.codegen.gpu.schedule import lower
from onnxla.codegen.gpu.target import GpuTarget
from onnxla.codegen.plan import Plan
from onnxla.codegen.planner import make_plan
from onnxla.codegen.weights import WeightsImage
from onnxla.config import CompileOptions
from onnxla.errors import UnsupportedOpError
from onnxla.hlo.op import OPS
from onnxla.passes.expansion import EXPANSIONS
from onnxla.passes.pipelines import optimize
from tests.codegen.kernel_runner import together
from tests.hlo.case import Case
from tests.hlo.op_cases import CASES

STRUCTURE = {"parameter", "fusion", "custom-call"}
"""No rows of the table of operations: what every module has, what the last pass makes, and whatever a name stands for,
which importers spell out where they know it."""


def planned(case: Case) -> Plan:
    module = together([case])
    optimize(module, "gpu", CompileOptions())
    return make_plan(module, lambda instruction: lower(instruction, GpuTarget()), WeightsImage())


def is_complex(case: Case) -> bool:
    return any(a.dtype.kind == "c" for a in case.arguments)


def test_the_table_has_every_operation() -> None:
    assert set(OPS) - STRUCTURE <= set(CASES), sorted(set(OPS) - STRUCTURE - set(CASES))


@pytest.mark.parametrize("opcode", [opcode for opcode, cases in CASES.items() if cases])
def test_an_operation_has_a_lowering(opcode: str) -> None:
    cases = [case for case in CASES[opcode] if not is_complex(case)]
    if not cases:
        # complex numbers enter and leave no kernel, and only those of constants are taken apart
        with pytest.raises(UnsupportedOpError, match="complex"):
            planned(CASES[opcode][0])
        return
    for case in cases[:: max(1, len(cases) // 2)]:
        planned(case)


def test_expansions_are_of_operations_that_there_are() -> None:
    assert set(EXPANSIONS) <= set(OPS.values())
