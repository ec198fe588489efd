"""Every operation of the table on 64-bit Arm, where an emulator is at hand."""

import pytest

from tests.codegen import arm64
from tests.codegen.kernel_runner import problems
from tests.codegen.test_kernels_operations import SUMS, cases_of
from tests.hlo.op_cases import CASES

pytestmark = pytest.mark.skipif(not arm64.is_possible(), reason="no emulator of 64-bit Arm here")


@pytest.mark.parametrize("opcode", CASES)
def test_compiled_code_agrees_with_evaluate(opcode: str) -> None:
    found = problems(cases_of(opcode)[::4], arm64.TARGET, opcode in SUMS)
    assert not found, f"{len(found)} problems\n" + "\n".join(found[:40])
