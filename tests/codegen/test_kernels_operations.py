"""Every operation of the table, on its element types and shapes, computes what `evaluate` says."""

import numpy as np
import pytest

import onnxla
from onnxla.errors import UnsupportedOpError
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Module
from onnxla.hlo.types import C64, TensorType
from onnxla.runtime.elf import read_object
from tests.codegen.kernel_runner import problems, together
from tests.hlo.case import Case
from tests.hlo.op_cases import CASES

SUMS = {"dot", "convolution", "reduce", "reduce-window", "scatter", "select-and-scatter", "fft"}
"""Sums may cancel: their error is measured in units of the largest result."""
LARGE = {"cholesky": 2, "rng-bit-generator": 11, "triangular-solve": 7}
"""Operations that become whole programs: one case in so many is enough."""
REFUSED = ("acos", "acosh", "asin", "asinh", "atanh")
"""Operations without a form for complex numbers."""


def cases_of(opcode: str) -> list[Case]:
    cases = CASES[opcode][:: LARGE.get(opcode, 1)]
    return [c for c in cases if opcode not in REFUSED or c.arguments[0].dtype.kind != "c"]


@pytest.mark.parametrize("opcode", CASES)
def test_compiled_code_agrees_with_evaluate(opcode: str) -> None:
    found = problems(cases_of(opcode), "host", opcode in SUMS)
    assert not found, f"{len(found)} problems\n" + "\n".join(found[:40])


@pytest.mark.parametrize("opcode", [c for c in CASES if c not in LARGE])
def test_narrower_vectors_compute_the_same(opcode: str) -> None:
    """AVX2: other lane counts, and no masks in registers of their own."""
    found = problems(cases_of(opcode)[::3], "x86-64-v3", opcode in SUMS)
    assert not found, f"{len(found)} problems\n" + "\n".join(found[:40])


@pytest.mark.parametrize("opcode", REFUSED)
def test_inverse_functions_of_complex_numbers_are_refused(opcode: str) -> None:
    b = Builder("main")
    root = b.tuple(b.unary(opcode, b.parameter(TensorType(C64, (3,)))))
    with pytest.raises(UnsupportedOpError, match=f"{opcode} of complex numbers is not supported"):
        onnxla.compile(Module("m", b.build(root)), options={"cache_dir": None})


OLDEST = ["add", "divide", "exponential", "sine", "power", "gather", "reduce", "sort", "dot", "convert", "convolution"]


@pytest.mark.parametrize("opcode", OLDEST)
def test_code_for_the_oldest_cpus_computes_the_same(opcode: str) -> None:
    """SSE2 alone: no fused multiply-add, no masked loads, no gather, no half precision."""
    found = problems(cases_of(opcode)[::3], "x86-64", opcode in SUMS)
    assert not found, f"{len(found)} problems\n" + "\n".join(found[:40])


@pytest.mark.parametrize("opcode", ["dot", "convolution", "exponential", "erf", "tanh", "logistic"])
def test_code_for_the_oldest_cpus_calls_no_multiply_add(opcode: str) -> None:
    """libm's takes a hundred times as long as two instructions."""
    case = next(c for c in cases_of(opcode) if c.arguments[0].dtype == np.float32)
    model = onnxla.compile(together([case]), options={"target_cpu": "x86-64", "cache_dir": None})
    symbols = [s.name for data in model.programs[0].objects for s in read_object(data).symbols if s.section is None]
    assert not [name for name in symbols if "fma" in name]
