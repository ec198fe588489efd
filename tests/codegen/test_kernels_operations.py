"""Every operation of the table, on its element types and shapes, computes what `evaluate` says."""

import pytest

from tests.codegen.kernel_runner import problems
from tests.hlo.op_cases import CASES

SUMS = {"dot", "convolution", "reduce", "reduce-window", "scatter", "select-and-scatter", "fft"}
"""Sums may cancel: their error is measured in units of the largest result."""
LARGE = {"cholesky": 2, "rng-bit-generator": 11, "triangular-solve": 7}
"""Operations that become whole programs: one case in so many is enough."""


@pytest.mark.parametrize("opcode", CASES)
def test_compiled_code_agrees_with_evaluate(opcode: str) -> None:
    found = problems(CASES[opcode][:: LARGE.get(opcode, 1)], "host", opcode in SUMS)
    assert not found, f"{len(found)} problems\n" + "\n".join(found[:40])


@pytest.mark.parametrize("opcode", [c for c in CASES if c not in LARGE])
def test_narrower_vectors_compute_the_same(opcode: str) -> None:
    """AVX2: other lane counts, and no masks in registers of their own."""
    found = problems(CASES[opcode][::3], "x86-64-v3", opcode in SUMS)
    assert not found, f"{len(found)} problems\n" + "\n".join(found[:40])
