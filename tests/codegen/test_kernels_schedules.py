"""Shapes that reach every branch of a schedule: whole vectors and tails, one row and many, tasks, panels and edges."""

from collections.abc import Iterator

import numpy as np
import pytest

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Computation, Instruction
from onnxla.hlo.ops.contraction import ConvolutionDimensions, Window
from onnxla.hlo.types import BF16, F16, F32, F64, S8, S16, S32, Array, ElementType, TensorType
from tests.codegen.kernel_runner import problems
from tests.hlo.case import Case, random

TARGETS = ("host", "x86-64-v3")


def softmax(b: Builder, x: Instruction) -> Instruction:
    last = len(x.shape) - 1
    kept = range(last)
    top = b.broadcast(b.reduce_by("maximum", x, [last]), x.shape, kept)
    e = b.exponential(b.subtract(x, top))
    return b.divide(e, b.broadcast(b.reduce_by("add", e, [last]), x.shape, kept))


def layer_norm(b: Builder, x: Instruction) -> Instruction:
    last = len(x.shape) - 1

    def mean(v: Instruction) -> Instruction:
        total = b.reduce_by("add", v, [last])
        return b.broadcast(b.multiply(total, b.full_like(total, 1 / x.shape[last])), x.shape, range(last))

    centered = b.subtract(x, mean(x))
    variance = mean(b.multiply(centered, centered))
    return b.multiply(centered, b.unary("rsqrt", b.add(variance, b.full_like(variance, 1e-5))))


def row_cases() -> Iterator[Case]:
    for shape in ((1, 1), (7, 1), (3, 5), (5, 16), (2, 33), (4, 255), (3, 1000), (1, 40003), (130, 64), (2, 3, 77)):
        for element in (F32, F64, F16):
            ulps = 64 if element is not F16 else 4
            yield Case(f"softmax {element}{list(shape)}", softmax, (random(element, shape),), ulps)
        yield Case(f"layer norm {list(shape)}", layer_norm, (random(F32, shape),), 64)


def reduction_cases() -> Iterator[Case]:
    shapes: list[tuple[tuple[int, ...], tuple[int, ...]]] = [((1, 50001), (1,)), ((50001,), (0,)), ((300, 257), (0,))]
    shapes += [((257, 300), (1,)), ((5, 70, 33), (1,)), ((9, 8, 7, 6), (0, 2)), ((4, 1, 513), (0, 2))]
    shapes += [((40, 3, 1000), (0, 2))]
    for shape, dimensions in shapes:
        for element, opcode in ((F32, "add"), (F32, "maximum"), (S32, "add"), (F16, "add"), (F64, "minimum")):

            def build(b: Builder, x: Instruction, o: str = opcode, d: tuple[int, ...] = dimensions) -> Instruction:
                init = b.constant(3, x.tensor_type.element)  # not neutral
                return b.reduce([x], [init], d, b.combiner(o, x.tensor_type.element))

            name = f"{opcode} {element}{list(shape)} {dimensions}"
            yield Case(name, build, (random(element, shape),), 64 if opcode == "add" and element.is_float else 0)


def dot_cases() -> Iterator[Case]:
    sizes = ((1, 64, 64), (64, 64, 1), (7, 129, 33), (65, 40, 130), (3, 1, 5), (200, 16, 17), (16, 300, 48))
    for m, k, n in sizes:
        for element in (F32, F64, BF16, S32):
            x, y = random(element, (m, k), 1), random(element, (k, n), 2)
            name, ulps = f"{element} {m}x{k}x{n}", 64 if element is not BF16 else 4
            yield Case(name, lambda b, p, q: b.dot(p, q, [1], [0]), (x, y), ulps)
            yield Case(
                f"{name} transposed",
                lambda b, p, q: b.dot(p, q, [0], [1]),
                (np.array(x.T, order="C"), np.array(y.T, order="C")),
                ulps,
            )
            yield Case(f"{name} constant", lambda b, p, w=y: b.dot(p, b.constant(w), [1], [0]), (x,), ulps)
    x, y = random(F32, (3, 17, 40), 1), random(F32, (3, 40, 50), 2)
    yield Case("batched", lambda b, p, q: b.matmul(p, q), (x, y), 64)
    yield Case(
        "s8 into s32",
        lambda b, p, q: b.dot(p, q, [1], [0], element=S32),
        (random(S8, (19, 70)), random(S8, (70, 35))),
        0,
    )
    least = np.full((70, 35), -(1 << 15), np.int16)  # its squares add up beyond s32, and wrap
    for wide in (random(S16, (70, 35)), least):
        yield Case(
            "s16 into s32",
            lambda b, p, w=wide: b.dot(p, b.constant(w), [1], [0], element=S32),
            (np.concatenate([random(S16, (18, 70)), least[:, :1].T]),),
            0,
        )


def convolution_cases() -> Iterator[Case]:
    windows = {
        "3x3 same": (Window.of([3, 3], [1, 1], [1, 1], [1, 1]), 1),
        "stride 2": (Window.of([3, 3], [2, 2], [1, 1], [1, 1]), 1),
        "1x1": (Window.of([1, 1]), 1),
        "7x7": (Window.of([7, 7], [2, 2], [3, 3], [3, 3]), 1),
        "dilated": (Window.of([3, 3], [1, 1], [2, 2], [2, 2], window_dilations=[2, 2]), 1),
        "groups": (Window.of([3, 3], [1, 1], [1, 1], [1, 1]), 4),
    }
    for name, (window, groups) in windows.items():
        sizes = [w.size for w in window.dimensions]
        x, w = random(F32, (2, 16, 15, 19), name), random(F32, (40, 16 // groups, *sizes), name)
        build = lambda b, p, v=window, g=groups, k=w: b.convolution(  # noqa: E731
            p, b.constant(k), v, ConvolutionDimensions.nchw(2), g
        )
        yield Case(name, build, (x,), 128)
    narrow = random(S16, (24, 10, 3, 3), "s16")
    yield Case(
        "s16 into s32",
        lambda b, p, k=narrow, v=windows["3x3 same"][0]: b.convolution(
            p, b.constant(k), v, ConvolutionDimensions.nchw(2), element=S32
        ),
        (random(S16, (1, 10, 9, 14)),),
        0,
    )
    for edge in ((0, 1, 2, 1), (2, 2, 0, 0), (1, 0, 0, 2)):  # above, left, below, right
        window = Window.of([3, 3], [1, 1], edge[:2], edge[2:])
        x, w = random(F32, (1, 15, 22, 32), "input"), random(F32, (3, 3, 32, 32), "winograd")
        yield Case(
            f"Winograd padded by {edge}",
            lambda b, p, k=w, v=window: b.convolution(p, b.constant(k), v, ConvolutionDimensions.nhwc(2)),
            (x,),
            512,
        )
    for channels, multiplier in ((16, 1), (24, 1), (7, 1), (8, 2)):
        window = Window.of([3, 3], [1, 1], [1, 1], [1, 1])
        x, w = random(F32, (1, channels, 9, 14)), random(F32, (channels * multiplier, 1, 3, 3), channels)
        yield Case(
            f"depthwise {channels}x{multiplier}",
            lambda b, p, k=w, v=window, g=channels: b.convolution(
                p, b.constant(k), v, ConvolutionDimensions.nchw(2), g
            ),
            (x,),
            128,
        )
    for size, stride, dilation in ((5, 2, 1), (7, 1, 1), (9, 1, 1), (3, 2, 3), (3, 3, 1)):
        reach = (size - 1) * dilation
        window = Window.of([size] * 2, [stride] * 2, [reach // 2] * 2, [reach - reach // 2] * 2, [1, 1], [dilation] * 2)
        x, w = random(F32, (2, 17, 33, 40), size), random(F32, (size, size, 1, 40), stride)
        yield Case(
            f"depthwise {size} stride {stride} dilation {dilation}",
            lambda b, p, k=w, v=window: b.convolution(p, b.constant(k), v, ConvolutionDimensions.nhwc(2), 40),
            (x,),
            128,
        )


def movement_cases() -> Iterator[Case]:
    for element in (F32, S8, F64):
        x = random(element, (37, 70, 5))
        for order in ((1, 0, 2), (2, 1, 0), (0, 2, 1), (2, 0, 1)):
            yield Case(f"transpose {element} {order}", lambda b, p, o=order: b.transpose(p, o), (x,))
        swaps: list[tuple[tuple[int, ...], tuple[int, ...]]] = [((150, 130), (1, 0)), ((3, 1000), (1, 0))]
        swaps += [((2, 4, 33), (0, 2, 1)), ((1, 2, 9, 7), (0, 2, 3, 1)), ((2, 10, 37, 131), (0, 3, 1, 2))]
        for shape, permutation in swaps:
            given = (random(element, shape),)
            yield Case(f"swap {element} {shape}", lambda b, p, o=permutation: b.transpose(p, o), given)
        yield Case(f"slice {element}", lambda b, p: b.slice(p, (3, 1, 0), (30, 70, 5), (2, 3, 2)), (x,))
        yield Case(f"reverse {element}", lambda b, p: b.reverse(p, (0, 2)), (x,))
        yield Case(f"concatenate {element}", lambda b, p: b.concatenate([p, p, p], 2), (x,))
        columns = [random(element, (37, 70, n), n) for n in (1, 1, 3, 20, 1)]
        yield Case(f"concatenate pieces {element}", lambda b, *p: b.concatenate(p, 2), tuple(columns))
        blocks = [random(element, (5, n, 2), n) for n in (9, 1, 20)]
        yield Case(f"concatenate blocks {element}", lambda b, *p: b.concatenate(p, 1), tuple(blocks))
        thin = lambda b, p: b.add(b.slice(p, (0, 0, 1), (37, 70, 4)), b.slice(p, (0, 0, 2), (37, 70, 5)))  # noqa: E731
        yield Case(f"thin rows {element}", thin, (x,))
        padded = lambda b, p: b.pad(p, b.constant(1, p.tensor_type.element), (1, -2, 0), (0, 3, 2), (0, 1, 2))  # noqa: E731
        yield Case(f"pad {element}", padded, (x,))
        for low, high in (
            ((1, 0, 0), (2, 0, 0)),
            ((0, 3, 0), (1, 0, 0)),
            ((1, 2, 3), (0, 0, 19)),
            ((0, 0, 0), (0, 9, 0)),
        ):
            margins = lambda b, p, at=(low, high): b.pad(p, b.constant(3, p.tensor_type.element), *at)  # noqa: E731
            yield Case(f"pad {element} {low} {high}", margins, (x,))


def total_order(element: ElementType) -> Computation:
    """Less than, NaN after everything."""
    b = Builder("total_order")
    left, right = b.parameter(TensorType(element)), b.parameter(TensorType(element))
    less = b.compare(left, right, "LT")
    return b.build(b.or_(less, b.and_(b.is_nan(right), b.not_(b.is_nan(left)))))


def sort_and_scan_cases() -> Iterator[Case]:
    values: Array = random(F32, (5, 300))
    values[0, 5] = values[3, 299] = np.nan
    yield Case("sort with NaN", lambda b, p: b.sort([p], 1, total_order(F32)), (values,))
    for shape, dimension in (((6, 50), 1), ((50, 37), 0), ((1000,), 0)):
        rank = len(shape)

        def build(b: Builder, x: Instruction, d: int = dimension, r: int = rank) -> Instruction:
            n = x.shape[d]
            window = Window.of(
                [n if k == d else 1 for k in range(r)], [1] * r, [n - 1 if k == d else 0 for k in range(r)], [0] * r
            )
            return b.reduce_window([x], [b.constant(0, S32)], window, b.combiner("add", S32))

        yield Case(f"running sum {list(shape)} {dimension}", build, (random(S32, shape),))


FAMILIES = {
    "rows": row_cases,
    "reductions": reduction_cases,
    "dots": dot_cases,
    "convolutions": convolution_cases,
    "movement": movement_cases,
    "sorts and scans": sort_and_scan_cases,
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("family", FAMILIES)
def test_schedules_compute_what_evaluate_says(family: str, target: str) -> None:
    cases = list(FAMILIES[family]())
    found = problems(cases if target == "host" else cases[::2], target, normwise=True)
    assert not found, f"{len(found)} problems\n" + "\n".join(found[:40])
