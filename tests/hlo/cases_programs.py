"""Cases of control flow, of structure, of linear algebra and of random bits."""

from collections.abc import Iterator
from itertools import product

import numpy as np

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Computation, Instruction
from onnxla.hlo.ops.linear_algebra import Cholesky, TriangularSolve
from onnxla.hlo.types import (
    C64,
    C128,
    F32,
    F64,
    S32,
    U8,
    U16,
    U32,
    U64,
    TensorType,
)
from tests.hlo.case import Build, Case, random


def control_flow_cases() -> Iterator[tuple[str, Case]]:
    yield "while", Case("doubling", doubling, (np.array(1.0, np.float32), np.array(5, np.int32)))
    yield "while", Case("never", doubling, (np.array(1.0, np.float32), np.array(0, np.int32)))
    for index in (np.array(True), np.array(False), *(np.array(i, np.int32) for i in (0, 1, 2, -1, 7))):
        count = 2 if index.dtype == np.bool_ else 3
        build: Build = lambda b, i, x, n=count: branches(b, i, x, n)  # noqa: E731
        yield "conditional", Case(f"{index.dtype} {index}", build, (index, random(F32, (3,))))
    pair = (random(F32, (3, 2), 1), random(F32, (3, 2), 2))
    yield "call", Case("f32", lambda b, x, y: b.call(add_rows(), x, y), pair)
    yield "map", Case("f32", lambda b, x, y: b.map(b.combiner("multiply", F32), (0, 1), x, y), pair)
    yield "tuple", Case("f32", lambda b, x, y: b.tuple(y, x, y), pair)
    element: Build = lambda b, x, y: b.get_tuple_element(b.tuple(x, y), 1)  # noqa: E731
    yield "get-tuple-element", Case("f32", element, pair)
    constant: Build = lambda b, x, y: b.add(b.constant(np.asarray(pair[0])), y)  # noqa: E731
    yield "constant", Case("f32", constant, pair)


def doubling(b: Builder, x: Instruction, count: Instruction) -> Instruction:
    init = b.tuple(x, count)
    test = Builder("positive")
    value = test.parameter(init.type)
    condition = test.build(test.compare(test.get_tuple_element(value, 1), test.constant(0, S32), "GT"))
    step = Builder("double")
    value = step.parameter(init.type)
    x, count = step.get_tuple_element(value, 0), step.get_tuple_element(value, 1)
    body = step.build(step.tuple(step.add(x, x), step.subtract(count, step.constant(1, S32))))
    return b.while_(init, condition, body)


def branches(b: Builder, index: Instruction, x: Instruction, count: int) -> Instruction:
    computations = []
    for opcode in ("negate", "abs", "sign")[:count]:
        branch = Builder(f"branch_{opcode}")
        computations.append(branch.build(branch.unary(opcode, branch.parameter(x.type))))
    return b.conditional(index, [x] * count, computations)


def add_rows() -> Computation:
    b = Builder("add_rows")
    x, y = (b.parameter(TensorType(F32, (3, 2))) for _ in range(2))
    return b.build(b.add(x, y))


def linear_algebra_cases() -> Iterator[tuple[str, Case]]:
    for element, half in ((C64, F32), (C128, F64)):
        for length in ((8,), (5, 6)):
            shape = (2, *length)
            for kind in ("FFT", "IFFT"):
                build: Build = lambda b, x, k=kind, n=length: b.fft(x, k, n)  # noqa: E731
                yield "fft", Case(f"{kind} {element} {length}", build, (random(element, shape),), 256)
            real: Build = lambda b, x, n=length: b.fft(x, "RFFT", n)  # noqa: E731
            yield "fft", Case(f"RFFT {half} {length}", real, (random(half, shape),), 256)
    for element, lower in product((F32, F64, C64), (True, False)):
        factor = random(element, (2, 4, 4)).astype(np.complex128 if element.is_complex else np.float64)
        positive = (factor @ np.conj(np.swapaxes(factor, -1, -2)) + 3 * np.eye(4)).astype(element.dtype)
        decompose: Build = lambda b, a, low=lower: b.emit(Cholesky(low), a)  # noqa: E731
        yield "cholesky", Case(f"{element} lower {lower}", decompose, (positive,), 64)
        for left, unit, how in product((True, False), (True, False), ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")):
            op = TriangularSolve(left, lower, unit, how)
            solve: Build = lambda b, a, y, o=op: b.emit(o, a, y)  # noqa: E731
            name = f"{element} left {left} lower {lower} unit {unit} {how}"
            right_side = random(element, (2, 4, 3) if left else (2, 3, 4))
            yield "triangular-solve", Case(name, solve, (positive, right_side), 4096)
    for algorithm, words in (("rng_three_fry", 2), ("rng_philox", 2), ("rng_philox", 3), ("rng_default", 3)):
        state = np.array([7, 2**40 + 5, 2**63 + 11][:words], np.uint64)
        for element, shape in product((U32, U64, U8, U16), ((), (1,), (7,), (3, 4), (3, 5), (2, 3, 3))):
            bits: Build = lambda b, s, a=algorithm, t=TensorType(element, shape): b.rng_bit_generator(s, t, a)  # noqa: E731,B008
            yield "rng-bit-generator", Case(f"{algorithm} {words} {element}{list(shape)}", bits, (state,))
