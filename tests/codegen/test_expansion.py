"""What is expanded before codegen, compiled: long transforms, complex numbers everywhere, custom-calls."""

import numpy as np
import pytest

import onnxla
from onnxla.errors import UnsupportedOpError
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction, Module
from onnxla.hlo.ops.control_flow import CustomCall
from onnxla.hlo.types import C64, F32, S32, TensorType
from tests.codegen.kernel_runner import problems
from tests.hlo.case import Case, order_of, random

FOUR = TensorType(F32, (4,))


def test_transforms_of_any_length() -> None:
    cases = []
    for n in (1, 2, 7, 64, 65, 97, 128, 210, 1000, 1021):
        x, z = random(F32, (3, n)), random(C64, (3, n))
        cases.append(Case(f"FFT {n}", lambda b, v, k=n: b.fft(v, "FFT", (k,)), (z,), 256))
        cases.append(Case(f"IFFT {n}", lambda b, v, k=n: b.fft(v, "IFFT", (k,)), (z,), 256))
        cases.append(Case(f"RFFT {n}", lambda b, v, k=n: b.fft(v, "RFFT", (k,)), (x,), 256))
        half = random(C64, (3, n // 2 + 1))
        cases.append(Case(f"IRFFT {n}", lambda b, v, k=n: b.fft(v, "IRFFT", (k,)), (half,), 256))
    planes = random(C64, (2, 6, 10))
    cases.append(Case("IRFFT 6x18", lambda b, v: b.fft(v, "IRFFT", (6, 18)), (planes,), 256))
    assert not problems(cases, "host", normwise=True)


def test_a_long_transform_of_prime_length_is_refused() -> None:
    b = Builder("main")
    root = b.tuple(b.fft(b.parameter(TensorType(C64, (10007,))), "FFT", (10007,)))
    with pytest.raises(
        UnsupportedOpError, match="10007 elements, a prime above 4096, is not supported; pad the signal"
    ):
        onnxla.compile(Module("m", b.build(root)), options={"cache_dir": None})


def squared_often(b: Builder, z: Instruction) -> Instruction:
    """z to the 8th in a loop whose state is complex."""
    init = b.tuple(b.constant(0, S32), z)
    test = Builder("again")
    at = test.get_tuple_element(test.parameter(init.type), 0)
    condition = test.build(test.compare(at, test.constant(3, S32), "LT"))
    step = Builder("square")
    state = step.parameter(init.type)
    at, value = step.get_tuple_element(state, 0), step.get_tuple_element(state, 1)
    body = step.build(step.tuple(step.add(at, step.constant(1, S32)), step.multiply(value, value)))
    return b.get_tuple_element(b.while_(init, condition, body), 1)


def by_real_part(b: Builder, x: Instruction, z: Instruction) -> Instruction:
    return b.sort([x, z], 0, order_of(x, "LT", z))


def test_complex_numbers_go_through_loops_sorts_and_reductions() -> None:
    z, x = random(C64, (5, 7)), random(F32, (9,))
    cases = [
        Case("loop", squared_often, (z,), 64),
        Case("sort", by_real_part, (x, random(C64, (9,)))),
        Case("sum", lambda b, v: b.reduce_by("add", v, [0]), (z,), 64),
        Case("product", lambda b, v: b.reduce_by("multiply", v, [1]), (z,), 64),
        Case("dot", lambda b, v: b.dot(v, b.transpose(v, (1, 0)), [1], [0]), (z,), 64),
        Case("parts", lambda b, v: b.binary("complex", b.unary("imag", v), b.unary("real", v)), (z,)),
        Case("constant", lambda b, v: b.add(v, b.constant(z)), (z,), 4),
        Case("passed on", lambda b, v: b.tuple(v, b.transpose(v, (1, 0))), (z,)),
        Case("gathered", lambda b, v, i: b.take(v, i, 1), (z, np.array([6, 0, 9], np.int32))),
    ]
    assert not problems(cases, "host", normwise=True)


def doubled() -> CustomCall:
    b = Builder("doubled")
    x = b.parameter(FOUR)
    return CustomCall("vendor.double", FOUR, "", (b.build(b.add(x, x)),))


def test_a_custom_call_is_what_it_calls() -> None:
    case = Case("known", lambda b, x: b.emit(doubled(), x), (random(F32, (4,)),))
    assert not problems([case], "host")


def test_an_unknown_custom_call_is_refused_by_name() -> None:
    b = Builder("main")
    root = b.tuple(b.emit(CustomCall("vendor.magic", FOUR, "", ()), b.parameter(FOUR)))
    with pytest.raises(UnsupportedOpError, match="no kernel is known for the custom-call 'vendor.magic'"):
        onnxla.compile(Module("m", b.build(root)), options={"cache_dir": None})
