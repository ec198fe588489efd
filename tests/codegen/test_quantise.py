"""Bytes from floats, and floats from bytes that were floats before, are what the operations one by one give."""

from collections.abc import Iterator

import numpy as np
import pytest

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import F32, S8, S32, U8, Array, ElementType
from tests.codegen import arm64
from tests.codegen.kernel_runner import run_together
from tests.hlo.case import Case

TARGETS = ("host", "x86-64-v3", "x86-64")
EDGES = (np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, 3.4e38, -3.4e38, 2.0**23 + 1, 2.0**31, -(2.0**31), 2.0**63)


def values() -> Array:
    """Special numbers, every half between the bounds of bytes around any zero point, their neighbours, and others."""
    halves = np.arange(-600, 601, dtype=np.float32) / 2
    near = [np.nextafter(halves, np.float32(side)) for side in (-np.inf, np.inf)]
    random = np.random.default_rng(3).standard_normal(1001).astype(np.float32) * 100
    return np.concatenate([np.array(EDGES, np.float32), halves, *near, random])


def quantised(b: Builder, x: Instruction, zero: int, element: ElementType) -> Instruction:
    rounded = b.unary("round-nearest-even", x)
    return b.convert(b.add(rounded, b.full_like(rounded, zero)) if zero else rounded, element)


def dequantised(b: Builder, byte: Instruction, zero: int) -> Instruction:
    wide = b.convert(byte, S32)
    return b.convert(b.subtract(wide, b.full_like(wide, zero)) if zero else wide, F32)


def cases() -> Iterator[Case]:
    x = values()
    for element in (U8, S8):
        low = -128 if element is S8 else 0
        for zero in (0, low, low + 255, 1, 127, -3, 70000, -(1 << 24)):
            yield Case(f"{element} {zero}", lambda b, p, z=zero, e=element: quantised(b, p, z, e), (x,))
        for other in (5, -5 if element is S8 else 250):
            yield Case(
                f"{element}, which wraps when {other} is taken off, and back",
                lambda b, p, o=other, e=element: b.convert(
                    b.subtract(q := quantised(b, p, 3, e), b.full_like(q, o)), F32
                ),
                (x,),
            )
        for zero, other in ((0, 0), (low, low), (low + 255, low + 255), (7, 3), (7, 0), (0, -9)):
            yield Case(
                f"{element} {zero} {other} and back",
                lambda b, p, z=zero, o=other, e=element: dequantised(b, quantised(b, p, z, e), o),
                (x,),
            )
    for shape in ((), (1,), (5,), (3, 17), (2, 0)):
        y = np.resize(x[50:], shape).astype(np.float32)
        yield Case(f"{shape}", lambda b, p: quantised(b, b.negate(p), 11, U8), (y,))
    halves = np.arange(-600, 601, dtype=np.float64) / 2
    yield Case("f64 takes its own way", lambda b, p: b.convert(b.unary("round-nearest-even", p), U8), (halves,))
    yield Case("no rounding", lambda b, p: b.convert(p, U8), (x,))
    yield Case(
        "both results",
        lambda b, p: b.tuple(q := quantised(b, p, 5, U8), dequantised(b, q, 5)),
        (x,),
    )


def check(target: str) -> None:
    every = list(cases())
    for case, results in zip(every, run_together(every, target), strict=True):
        expected = case.computation().evaluate(*case.arguments)
        for found, wanted in zip(results, expected if isinstance(expected, tuple) else (expected,), strict=True):
            np.testing.assert_array_equal(found, wanted, err_msg=case.name)


@pytest.mark.parametrize("target", TARGETS)
def test_bytes_are_those_of_the_operations_one_by_one(target: str) -> None:
    check(target)


@pytest.mark.skipif(not arm64.is_possible(), reason="needs a cross compiler and an emulator of 64-bit Arm")
def test_bytes_on_arm64() -> None:
    check(arm64.TARGET)
