"""Cases of the operations that sum: dot, convolution, reductions."""

from collections.abc import Iterator
from itertools import product

import numpy as np

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.contraction import ConvolutionDimensions, Window, WindowDimension
from onnxla.hlo.types import (
    BF16,
    C64,
    F16,
    F32,
    F64,
    PRED,
    S8,
    S32,
    U8,
    Shape,
    TensorType,
)
from tests.hlo.case import Build, Case, order_of, random


def contraction_cases() -> Iterator[tuple[str, Case]]:
    for element in (F32, F64, F16, BF16, S8, S32, U8, C64):
        e, ulps = str(element), 0 if element.is_integer else 64
        for m, k, n in ((4, 5, 3), (1, 7, 1), (0, 3, 2), (2, 0, 3)):
            pair = (random(element, (m, k), 1), random(element, (k, n), 2))
            yield "dot", Case(f"{e} {m}x{k}x{n}", lambda b, x, y: b.dot(x, y, [1], [0]), pair, ulps)
        batched = (random(element, (2, 3, 4), 1), random(element, (5, 2, 4), 2))
        yield "dot", Case(f"{e} batch", lambda b, x, y: b.dot(x, y, [2], [2], [0], [1]), batched, ulps)
        vectors = (random(element, (6,), 1), random(element, (6,), 2))
        yield "dot", Case(f"{e} inner", lambda b, x, y: b.dot(x, y, [0], [0]), vectors, ulps)
        yield "dot", Case(f"{e} outer", lambda b, x, y: b.dot(x, y, [], []), vectors, ulps)
    for source, target in ((S8, S32), (U8, S32), (BF16, F32), (F16, F32)):
        pair = (random(source, (4, 6), 1), random(source, (6, 3), 2))
        wider: Build = lambda b, x, y, t=target: b.dot(x, y, [1], [0], element=t)  # noqa: E731
        yield "dot", Case(f"{source} into {target}", wider, pair, 64)

    for element in (F32, F64, BF16, S32):
        for name, image, kernel, window, groups, batch_groups in convolutions():
            build: Build = lambda b, x, w, v=window, g=groups, h=batch_groups: b.convolution(  # noqa: E731
                x, w, v, ConvolutionDimensions.nchw(len(v.dimensions)), g, h
            )
            arguments = (random(element, image), random(element, kernel))
            yield "convolution", Case(f"{element} {name}", build, arguments, 0 if element.is_integer else 128)
    window = Window.of([3, 2], [1, 1], [1, 0], [1, 1])
    last: Build = lambda b, x, w: b.convolution(x, w, window, ConvolutionDimensions.nhwc(2))  # noqa: E731
    yield "convolution", Case("channels last", last, (random(F32, (2, 5, 6, 3)), random(F32, (3, 2, 3, 4))), 128)


def convolutions() -> Iterator[tuple[str, Shape, Shape, Window, int, int]]:
    """name, image, kernel, window, feature groups, batch groups."""
    yield "plain", (2, 3, 6, 5), (4, 3, 3, 3), Window.of([3, 3]), 1, 1
    yield "stride and pads", (1, 3, 7, 6), (4, 3, 3, 2), Window.of([3, 2], [2, 3], [1, 0], [2, 1]), 1, 1
    yield "dilated", (1, 2, 9, 9), (2, 2, 3, 3), Window.of([3, 3], window_dilations=[2, 3]), 1, 1
    yield "transposed", (1, 2, 4, 4), (3, 2, 3, 3), Window.of([3, 3], [1, 1], [2, 1], [2, 1], [2, 3]), 1, 1
    yield "cropped", (1, 2, 8, 8), (3, 2, 3, 3), Window.of([3, 3], [1, 1], [-1, -2], [0, -1]), 1, 1
    yield "groups", (2, 6, 5, 5), (4, 3, 2, 2), Window.of([2, 2]), 2, 1
    yield "depthwise", (1, 4, 5, 5), (8, 1, 3, 3), Window.of([3, 3], [1, 1], [1, 1], [1, 1]), 4, 1
    yield "batch groups", (4, 3, 5, 5), (6, 3, 2, 2), Window.of([2, 2]), 1, 2
    yield "one dimension", (2, 3, 11), (4, 3, 5), Window.of([5], [2], [2], [2]), 1, 1
    yield "three dimensions", (1, 2, 4, 5, 3), (3, 2, 2, 3, 1), Window.of([2, 3, 1]), 1, 1
    yield "no dimension", (2, 3), (4, 3), Window(), 1, 1
    yield "empty batch", (0, 3, 6, 5), (4, 3, 3, 3), Window.of([3, 3]), 1, 1
    yield "reversed", (1, 2, 6), (3, 2, 3), Window((WindowDimension(3, reversal=True),)), 1, 1


def reduction_cases() -> Iterator[tuple[str, Case]]:
    shapes: tuple[tuple[Shape, Shape], ...] = (((3, 4, 5), (1,)), ((3, 4, 5), (0, 2)), ((7,), (0,)), ((3, 0), (1,)))
    shapes = (*shapes, ((0, 3), (1,)), ((), ()), ((33, 129), (1,)))
    for element, opcode in product((F32, F64, F16, BF16, S32, S8, U8), ("add", "multiply", "maximum", "minimum")):
        for shape, dimensions in shapes:
            build: Build = lambda b, x, o=opcode, d=dimensions: b.reduce_by(o, x, d)  # noqa: E731
            if opcode == "multiply" and shape == (33, 129):
                continue
            ulps = 16 if element.is_float and opcode in ("add", "multiply") else 0
            yield (
                "reduce",
                Case(f"{opcode} {element}{list(shape)} {dimensions}", build, (random(element, shape),), ulps),
            )
    for element, opcode in product((PRED, S32, U8), ("and", "or", "xor")):
        build = lambda b, x, o=opcode: b.reduce_by(o, x, [1])  # noqa: E731
        yield "reduce", Case(f"{opcode} {element}", build, (random(element, (4, 6)),))
    index = np.arange(35, dtype=np.int32).reshape(7, 5)
    for dimension in (0, 1):
        arg: Build = lambda b, x, i, d=dimension: argmax(b, x, i, d)  # noqa: E731
        yield "reduce", Case(f"argmax {dimension}", arg, (random(F32, (7, 5)), index))

    for element, opcode in product((F32, BF16, S32), ("add", "maximum", "multiply")):
        for name, shape, window in windows():
            build = lambda b, x, o=opcode, w=window: window_by(b, o, x, w)  # noqa: E731
            ulps = 16 if element.is_float and opcode != "maximum" else 0
            yield "reduce-window", Case(f"{opcode} {element} {name}", build, (random(element, shape),), ulps)

    for element in (F32, S32):
        window = Window.of([1, 2, 2], [1, 2, 1], [0, 1, 0], [0, 0, 1])
        operand = random(element, (2, 5, 4))
        source = random(element, (2, *Window(window.dimensions[1:]).output_shape((5, 4))), "source")
        pooled: Build = lambda b, x, s, w=window: b.select_and_scatter(  # noqa: E731
            x, s, b.constant(0, x.tensor_type.element), w, order_of(x, "GE"), b.combiner("add", x.tensor_type.element)
        )
        yield "select-and-scatter", Case(str(element), pooled, (operand, source), 2)


def windows() -> Iterator[tuple[str, Shape, Window]]:
    yield "pool", (1, 2, 6, 5), Window.of([1, 1, 3, 2], [1, 1, 2, 2], [0, 0, 1, 0], [0, 0, 1, 1])
    yield "cumulative", (3, 7), Window.of([1, 7], [1, 1], [0, 6], [0, 0])
    yield "dilated", (9,), Window.of([3], window_dilations=[3])
    yield "spread", (5,), Window.of([2], [1], [1], [0], [2])
    yield "cropped", (8,), Window.of([2], [1], [-1], [-2])
    yield "too large", (2,), Window.of([3])


def window_by(b: Builder, opcode: str, x: Instruction, window: Window) -> Instruction:
    element = x.tensor_type.element
    init = b.constant({"add": 0, "multiply": 1, "maximum": -5}[opcode], element)
    return b.reduce_window([x], [init], window, b.combiner(opcode, element))


def argmax(b: Builder, x: Instruction, index: Instruction, dimension: int) -> Instruction:
    """The variadic reduction of values and indices: the greatest value, of equals the least index."""
    inner = Builder("argmax")
    types = [TensorType(F32), TensorType(S32)] * 2
    a, i, c, j = (inner.parameter(t) for t in types)
    better = inner.compare(c, a, "GT")
    tie = inner.and_(inner.compare(c, a, "EQ"), inner.compare(j, i, "LT"))
    taken = inner.or_(better, tie)
    combiner = inner.build(inner.tuple(inner.select(taken, c, a), inner.select(taken, j, i)))
    inits = [b.constant(-np.inf, F32), b.constant(0, S32)]
    return b.reduce([x, index], inits, [dimension], combiner)
