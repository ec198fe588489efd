"""Cases of the operations that move data: by shape, by indices, by order."""

from collections.abc import Iterator
from itertools import product

import numpy as np

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Computation
from onnxla.hlo.ops.indexing import Gather, Scatter
from onnxla.hlo.types import (
    BF16,
    C64,
    F8E4M3FN,
    F32,
    PRED,
    S4,
    S8,
    S32,
    S64,
    U8,
    U32,
    Array,
    ElementType,
    TensorType,
)
from tests.hlo.case import Build, Case, order_of, random


def shape_cases() -> Iterator[tuple[str, Case]]:
    def add(opcode: str, name: str, build: Build, *arguments: Array) -> tuple[str, Case]:
        return opcode, Case(name, build, arguments)

    for element in (F32, BF16, S8, PRED, C64, S4, F8E4M3FN):
        e = str(element)
        x = random(element, (2, 3, 5))
        empty = random(element, (2, 0, 5))
        yield (
            add("iota", e, lambda b, e=element: b.iota(TensorType(e, (2, 5)), 1))
            if element
            not in (
                PRED,
                F8E4M3FN,
            )
            else add("reverse", e + " all", lambda b, x: b.reverse(x, [0, 1, 2]), x)
        )
        yield add("broadcast", e, lambda b, x: b.broadcast(x, (2, 4, 3, 5), (0, 2, 3)), x)
        yield add("broadcast", e + " scalar", lambda b, x: b.broadcast(x, (2, 3), ()), random(element, ()))
        yield add("broadcast", e + " to empty", lambda b, x: b.broadcast(x, (0, 3), ()), random(element, ()))
        yield add("reshape", e, lambda b, x: b.reshape(x, (6, 5)), x)
        yield add("reshape", e + " scalar", lambda b, x: b.reshape(x, (1, 1)), random(element, ()))
        yield add("transpose", e, lambda b, x: b.transpose(x, (2, 0, 1)), x)
        yield add("transpose", e + " empty", lambda b, x: b.transpose(x, (1, 0, 2)), empty)
        yield add("reverse", e, lambda b, x: b.reverse(x, [0, 2]), x)
        yield add("slice", e, lambda b, x: b.slice(x, (0, 1, 0), (2, 3, 5), (1, 1, 2)), x)
        yield add("slice", e + " nothing", lambda b, x: b.slice(x, (0, 1, 2), (2, 1, 2)), x)
        yield add("slice", e + " scalar", lambda b, x: b.slice(x, (), ()), random(element, ()))
        yield add("concatenate", e, lambda b, x, y, z: b.concatenate([x, y, z], 1), x, empty, x[:, :1])
        value = random(element, ())
        yield add("pad", e, lambda b, x, v: b.pad(x, v, (1, 0, 2), (0, 2, 1)), x, value)
        yield add("pad", e + " interior", lambda b, x, v: b.pad(x, v, (1, 0, 2), (0, 2, 1), (2, 1, 0)), x, value)
        yield add("pad", e + " cropping", lambda b, x, v: b.pad(x, v, (-1, 1, -2), (2, -2, -1), (2, 1, 0)), x, value)
        yield add("pad", e + " of nothing", lambda b, x, v: b.pad(x, v, (0, 2, 0), (0, 1, 0), (0, 3, 0)), empty, value)


def indexing_cases() -> Iterator[tuple[str, Case]]:
    for element, index in product((F32, S8, BF16, PRED), (S32, S64, U8, U32)):
        e = f"{element} by {index}"
        x = random(element, (5, 4))
        starts = [np.array(v).astype(index.dtype) for v in (2, 3)]
        yield "dynamic-slice", Case(e, lambda b, x, i, j: b.dynamic_slice(x, [i, j], (2, 3)), (x, *starts))
        update = random(element, (2, 3), "update")
        yield (
            "dynamic-update-slice",
            Case(e, lambda b, x, u, i, j: b.dynamic_update_slice(x, u, [i, j]), (x, update, *starts)),
        )
        places = np.array([[0, 3], [4, 200 if index is U8 else 7]]).astype(index.dtype)
        if index.is_signed:
            places[0, 1] = -2
        yield "gather", Case(f"{e} take 0", lambda b, x, i: b.take(x, i, 0), (x, places))
        yield "gather", Case(f"{e} take 1", lambda b, x, i: b.take(x, i, 1), (x, places))
        yield "gather", Case(f"{e} take none", lambda b, x, i: b.take(x, i, 1), (x, places[:0]))
    general = Gather((1,), (1,), (1, 0), (), (), 0, (3, 1))
    pairs = np.array([[0, 3, 9], [4, -1, 1]], np.int32)
    yield "gather", Case("windows", lambda b, x, i: b.gather(x, i, general), (random(F32, (5, 4)), pairs))
    batched = Gather((), (1,), (1,), (0,), (0,), 2, (1, 1))
    rows = np.array([[0, 3, 9], [1, -1, 2]], np.int32)
    yield "gather", Case("batched", lambda b, x, i: b.gather(x, i, batched), (random(F32, (2, 4)), rows))

    for element, opcode in product((F32, S32, BF16), ("add", "maximum", "minimum", "multiply", "second", "subtract")):
        e = f"{element} {opcode}"
        combiner = second(element) if opcode == "second" else Builder().combiner(opcode, element)
        rows_op = Scatter((1,), (0,), (0,), (), (), 1, False, False, combiner)
        places = np.array([[1], [4], [1], [9], [-1]], np.int32)
        if opcode == "second":
            places[2] = 3
        arguments = (random(element, (5, 4)), places, random(element, (5, 4), "update"))
        yield "scatter", Case(e, lambda b, x, i, u, op=rows_op: b.scatter(x, i, u, op), arguments, 2)
    window = Scatter((0, 2), (), (1, 0), (), (), 1, False, True, Builder().combiner("add", F32))
    pairs = np.array([[0, 0], [2, 3], [1, 3]], np.int32)
    arguments = (random(F32, (5, 4)), pairs, random(F32, (2, 3, 2), "update"))
    yield "scatter", Case("windows", lambda b, x, i, u: b.scatter(x, i, u, window), arguments, 2)
    paired = Scatter((), (1,), (1,), (0,), (0,), 2, False, False, Builder().combiner("add", F32))
    arguments = (random(F32, (2, 4)), np.array([[0, 3, 9], [1, 1, 2]], np.int32), random(F32, (2, 3), "update"))
    yield "scatter", Case("batched", lambda b, x, i, u: b.scatter(x, i, u, paired), arguments, 2)

    for element in (F32, S8, U8, BF16, S64):
        for direction, dimension in product(("LT", "GT"), (0, 1)):
            build: Build = lambda b, x, d=direction, n=dimension: b.sort([x], n, order_of(x, d))  # noqa: E731
            yield "sort", Case(f"{element} {direction} {dimension}", build, (random(element, (7, 5)),))
        pair: Build = lambda b, x, y: b.sort([x, y], 0, order_of(x, "LT", y))  # noqa: E731
        yield "sort", Case(f"{element} pair", pair, (random(element, (33,)), np.arange(33, dtype=np.int32)))
    absolute: Build = lambda b, x: b.sort([x], 1, by_magnitude(F32))  # noqa: E731
    yield "sort", Case("by magnitude", absolute, (random(F32, (3, 37)),))


def second(element: ElementType) -> Computation:
    """`(a, b) -> b`: the combiner of a scatter that assigns."""
    b = Builder(f"second_{element}")
    b.parameter(TensorType(element))
    return b.build(b.parameter(TensorType(element)))


def by_magnitude(element: ElementType) -> Computation:
    """The comparator of a sort by absolute value."""
    b = Builder("by_magnitude")
    left, right = b.parameter(TensorType(element)), b.parameter(TensorType(element))
    return b.build(b.compare(b.unary("abs", left), b.unary("abs", right), "LT"))
