"""Cases of the elementwise operations: all that take a type, on edge values and odd shapes."""

from collections.abc import Iterator
from itertools import product

import numpy as np

from onnxla.hlo.builder import Builder
from onnxla.hlo.op import OPS
from onnxla.hlo.ops.elementwise import Binary, Unary
from onnxla.hlo.types import (
    BF16,
    C64,
    F8E4M3FN,
    F8E5M2,
    F16,
    F32,
    F64,
    PRED,
    S4,
    S8,
    S16,
    S32,
    U8,
    U16,
    U64,
    Kind,
    TensorType,
)
from tests.hlo.case import SHAPES, Build, Case, edges, elements_of, random

# How far apart two good implementations may lie; opcodes that are not named are exact.
ULPS = {
    "acos": 4,
    "acosh": 4,
    "asin": 4,
    "asinh": 4,
    "atan2": 4,
    "atanh": 4,
    "cbrt": 4,
    "cosh": 4,
    "cosine": 4,
    "erf": 4,
    "exponential": 4,
    "exponential-minus-one": 4,
    "log": 4,
    "log-plus-one": 4,
    "logistic": 4,
    "power": 16,
    "rsqrt": 2,
    "sine": 4,
    "sinh": 4,
    "tan": 4,
    "tanh": 4,
}


def unary_cases() -> Iterator[tuple[str, Case]]:
    for opcode, cls in OPS.items():
        if issubclass(cls, Unary):
            build: Build = lambda b, x, opcode=opcode: b.unary(opcode, x)  # noqa: E731
            for element in elements_of(cls.kinds):
                ulps = ULPS.get(opcode, 8 if element.is_complex else 0)
                yield opcode, Case(f"{element} edges", build, (edges(element),), ulps)
                for shape in SHAPES:
                    yield opcode, Case(f"{element}{list(shape)}", build, (random(element, shape),), ulps)


def binary_cases() -> Iterator[tuple[str, Case]]:
    for opcode, cls in OPS.items():
        if issubclass(cls, Binary):
            build: Build = lambda b, x, y, opcode=opcode: b.binary(opcode, x, y)  # noqa: E731
            for element in elements_of(cls.kinds):
                if opcode == "complex" and element not in (F32, F64):
                    continue
                ulps = ULPS.get(opcode, 8 if element.is_complex else 0)
                lhs, rhs = (np.array(g.reshape(-1)) for g in np.meshgrid(edges(element), edges(element)))
                if opcode == "power" and element.is_integer:
                    # XLA reads six bits of the exponent only
                    rhs = np.where((rhs >= 0) & (rhs <= 16), rhs, 7).astype(element.dtype)
                if opcode == "power" and element.is_complex:
                    lhs = np.where(lhs == 0, 1, lhs).astype(element.dtype)  # XLA: 0 ** z is NaN
                yield opcode, Case(f"{element} edges", build, (lhs, rhs), ulps)
                for shape in SHAPES:
                    pair = (random(element, shape, 1), random(element, shape, 2))
                    yield opcode, Case(f"{element}{list(shape)}", build, pair, ulps)


def other_elementwise_cases() -> Iterator[tuple[str, Case]]:
    for element, direction in product(elements_of(frozenset(Kind)), ("EQ", "NE", "LT", "LE", "GT", "GE")):
        if element.is_complex and direction not in ("EQ", "NE"):
            continue
        lhs, rhs = (np.array(g.reshape(-1)) for g in np.meshgrid(edges(element), edges(element)))
        build: Build = lambda b, x, y, d=direction: b.compare(x, y, d)  # noqa: E731
        yield "compare", Case(f"{element} {direction}", build, (lhs, rhs))
    for element, shape in product((F32, BF16, S8, S4, PRED, C64), SHAPES):
        values = (random(element, shape, 1), random(element, shape, 2))
        yield "select", Case(f"{element}{list(shape)}", Builder.select, (random(PRED, shape), *values))
        yield "select", Case(f"{element}{list(shape)} scalar", Builder.select, (random(PRED, ()), *values))
    for element in (F32, F64, F16, BF16, S8, U8, S32, U64, S4):
        low, high = np.array(1).astype(element.dtype), np.array(3).astype(element.dtype)
        yield "clamp", Case(f"{element} scalars", Builder.clamp, (low, edges(element), high))
        bounds = (random(element, (3, 5), 1), random(element, (3, 5), 2))
        yield "clamp", Case(f"{element}[3,5]", Builder.clamp, (bounds[0], random(element, (3, 5)), bounds[1]))
    storage = (F8E4M3FN, F8E5M2)
    known = (*elements_of(frozenset(Kind)), *storage)
    for source, target in product(known, known):
        if source is not target and not (source.is_complex and not target.is_complex):
            convert: Build = lambda b, x, t=target: b.convert(x, t)  # noqa: E731
            yield "convert", Case(f"{source} to {target}", convert, (edges(source),))
    for source, target in ((F32, S32), (F16, U16), (BF16, S16), (F64, U64), (S8, U8), (F8E5M2, U8)):
        cast: Build = lambda b, x, t=target: b.bitcast_convert(x, TensorType(t, x.shape))  # noqa: E731
        yield "bitcast-convert", Case(f"{source} to {target}", cast, (random(source, (3, 5)),))
    split: Build = lambda b, x: b.bitcast_convert(x, TensorType(U8, (3, 4)))  # noqa: E731
    join: Build = lambda b, x: b.bitcast_convert(x, TensorType(F32, (3,)))  # noqa: E731
    yield "bitcast-convert", Case("f32 to bytes", split, (random(F32, (3,)),))
    yield "bitcast-convert", Case("shorts to f32", join, (random(S16, (3, 2)),))
