"""Layers of quantised models give the same bytes on every CPU: those that sums in integers and one factor give.

Each layer is spelled as QuantizeLinear and DequantizeLinear spell it, and goes through all passes.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from onnxla.codegen.cpu.target import host_target, named_target
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.contraction import ConvolutionDimensions, Window
from onnxla.hlo.types import F32, S32, Array, element_of
from tests.codegen import arm64
from tests.codegen.kernel_runner import run_together
from tests.codegen.test_int8_contractions import bytes_of, convolved
from tests.hlo.case import Case

V3 = named_target("x86-64-v3")
DOT_PRODUCTS = str(replace(V3, features=tuple(sorted((*V3.features, "avxvnni")))))
"""Bytes are multiplied as they are, in 256 bits."""
TARGETS = ("host", "x86-64-v3", "x86-64")


def spread(b: Builder, numbers: npt.ArrayLike, like: Instruction, axis: int | None = None) -> Instruction:
    array: Array = np.asarray(numbers, like.tensor_type.element.dtype)
    return b.broadcast(b.constant(array), like.shape, [] if axis is None else [axis])


def dequantised(b: Builder, q: Instruction, zero: int, scale: npt.ArrayLike, axis: int | None = None) -> Instruction:
    wide = b.convert(q, S32)
    number = b.convert(b.subtract(wide, spread(b, zero, wide)) if zero else wide, F32)
    return b.multiply(number, spread(b, scale, number, axis))


def quantised(b: Builder, x: Instruction, zero: int, scale: npt.ArrayLike, like: type) -> Instruction:
    whole = b.unary("round-nearest-even", b.divide(x, spread(b, scale, x)))
    return b.convert(b.add(whole, spread(b, zero, whole)) if zero else whole, element_of(np.dtype(like)))


def as_bytes(scaled: Array, zero: int, like: type) -> Array:
    limits = np.iinfo(like)
    whole: Array = np.clip(np.rint(scaled) + zero, limits.min, limits.max).astype(like)
    return whole


def layer(
    name: str, x: Array, w: Array, window: Window, zeros: tuple[int, int], groups: int = 1, relu: bool = False
) -> tuple[Case, Array]:
    """A convolution, channels last, with a bias that has the scale of its products."""
    rng = np.random.default_rng(w.size)
    features, kind = w.shape[-1], x.dtype.type
    x_scale, y_scale = np.float32(0.02), np.float32(0.3)
    w_scale = rng.uniform(0.001, 0.01, (features,)).astype(np.float32)
    bias = rng.integers(-3000, 3000, features).astype(np.int32)
    factor: Array = x_scale * w_scale

    def build(b: Builder, p: Instruction) -> Instruction:
        weights = dequantised(b, b.constant(w), 0, w_scale, 3)
        left = dequantised(b, p, zeros[0], x_scale)
        y = b.convolution(left, weights, window, ConvolutionDimensions.nhwc(2), groups)
        y = b.add(y, spread(b, np.multiply(bias, factor, dtype=np.float32), y, 3))
        return quantised(b, b.maximum(y, spread(b, 0, y)) if relu else y, zeros[1], y_scale, kind)

    sums = convolved(x.astype(np.int64) - zeros[0], w, window, groups)
    scaled = (sums + bias).astype(np.float32) * (factor / y_scale)
    return Case(name, build, (x,)), as_bytes(np.maximum(scaled, 0) if relu else scaled, zeros[1], kind)


def layers() -> Iterator[tuple[Case, Array]]:
    shapes = (
        ("1x1", (2, 5, 7, 18), (1, 1, 18, 21), Window.of([1, 1]), 1),
        ("3x3", (1, 9, 11, 16), (3, 3, 16, 33), Window.of([3, 3], [1, 1], [1, 1], [1, 1]), 1),
        ("stride 2, uneven edges", (2, 15, 11, 6), (3, 3, 6, 19), Window.of([3, 3], [2, 2], [0, 1], [1, 2]), 1),
        ("three channels", (2, 17, 13, 3), (7, 7, 3, 8), Window.of([7, 7], [2, 2], [3, 3], [3, 3]), 1),
        ("groups", (1, 8, 8, 12), (3, 2, 4, 9), Window.of([3, 2], [1, 1], [2, 0], [0, 1]), 3),
        ("depthwise", (2, 9, 9, 20), (3, 3, 1, 20), Window.of([3, 3], [1, 1], [1, 1], [1, 1]), 20),
        ("deep", (1, 3, 3, 516), (1, 1, 516, 40), Window.of([1, 1]), 1),
    )
    for name, image, kernel, window, groups in shapes:
        w = bytes_of(kernel, np.int8, image[3])
        for zeros in ((0, 255), (255, 3)):
            yield layer(f"{name} u8 {zeros}", bytes_of(image, np.uint8, 1), w, window, zeros, groups)
        yield layer(f"{name} s8", bytes_of(image, np.int8, 2), w, window, (-128, 127), groups, relu=True)


def residual() -> tuple[Case, Array]:
    """A convolution, quantised, and another value added to it; the sum is quantised again."""
    rng = np.random.default_rng(11)
    x, r = bytes_of((2, 6, 5, 24), np.uint8, 3), bytes_of((2, 6, 5, 37), np.uint8, 4)
    w = bytes_of((1, 1, 24, 37), np.int8, 5)
    w_scale = rng.uniform(0.001, 0.01, (37,)).astype(np.float32)
    x_scale, y_scale, r_scale, z_scale = (np.float32(s) for s in (0.02, 0.25, 0.0625, 0.125))

    def build(b: Builder, p: Instruction, q: Instruction) -> Instruction:
        weights = dequantised(b, b.constant(w), 0, w_scale, 3)
        y = b.convolution(dequantised(b, p, 9, x_scale), weights, Window.of([1, 1]), ConvolutionDimensions.nhwc(2))
        y = dequantised(b, quantised(b, y, 131, y_scale, np.uint8), 131, y_scale)
        total = b.add(y, dequantised(b, q, 77, r_scale))
        return quantised(b, b.maximum(total, spread(b, 0, total)), 0, z_scale, np.uint8)

    sums = convolved(x.astype(np.int64) - 9, w, Window.of([1, 1]), 1)
    y = as_bytes(sums.astype(np.float32) * (x_scale * w_scale / y_scale), 131, np.uint8)
    total = (y.astype(np.float32) - 131) * np.float32(2) + (r.astype(np.float32) - 77) * np.float32(0.5)
    return Case("residual", build, (x, r)), as_bytes(total, 0, np.uint8)


def check(target: str) -> None:
    pairs = [*layers(), residual()]
    for (case, expected), results in zip(pairs, run_together([case for case, _ in pairs], target), strict=True):
        np.testing.assert_array_equal(results[0], expected, err_msg=case.name)


@pytest.mark.parametrize("target", TARGETS)
def test_bytes_are_the_same_on_every_cpu(target: str) -> None:
    check(target)


@pytest.mark.skipif(not host_target().has("avxvnni"), reason="this CPU has no AVX-VNNI")
def test_bytes_with_dot_products_of_256_bits() -> None:
    check(DOT_PRODUCTS)


@pytest.mark.skipif(not arm64.is_possible(), reason="needs a cross compiler and an emulator of 64-bit Arm")
def test_bytes_on_arm64() -> None:
    check(arm64.TARGET)
