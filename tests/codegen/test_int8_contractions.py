"""Sums of products of bytes are exact on every CPU: compared with numpy in 64-bit integers, wrapped to 32."""

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.contraction import ConvolutionDimensions, Window
from onnxla.hlo.types import S32, Array
from tests.codegen.kernel_runner import run_together
from tests.hlo.case import Case

TARGETS = ("host", "x86-64-v3", "x86-64")


def bytes_of(shape: Sequence[int], dtype: type, seed: int) -> Array:
    limits = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(limits.min, limits.max + 1, shape).astype(dtype)


def nearly_all(value: int, shape: Sequence[int]) -> Array:
    """Weights that are `value` but for one: those alike everywhere are no constant to kernels, but a number spread."""
    weights = np.full(shape, value, np.int8)
    weights.flat[-1] = 1
    return weights


def convolved(x: Array, w: Array, window: Window, groups: int) -> Array:
    """The witness, channels last: one product of matrices for each place of the kernel."""
    image = x.astype(np.int64)
    low, high = ([getattr(d, side) for d in window.dimensions] for side in ("pad_low", "pad_high"))
    padded = np.pad(image, [(0, 0), *zip(low, high, strict=True), (0, 0)])
    sizes = []
    for length, d in zip(padded.shape[1:-1], window.dimensions, strict=True):
        sizes.append((length - (d.size - 1) * d.window_dilation - 1) // d.stride + 1)
    each, features = w.shape[2], w.shape[3] // groups
    total = np.zeros((x.shape[0], *sizes, groups, features), np.int64)
    kernel = w.astype(np.int64).reshape(*w.shape[:3], groups, features)
    for place in np.ndindex(*w.shape[:2]):
        cut = [slice(None)]
        for at, size, d in zip(place, sizes, window.dimensions, strict=True):
            start = at * d.window_dilation
            cut.append(slice(start, start + (size - 1) * d.stride + 1, d.stride))
        pixels = padded[tuple(cut)].reshape(x.shape[0], *sizes, groups, each)
        total += np.einsum("...gc,cgf->...gf", pixels, kernel[place])
    return total.reshape(x.shape[0], *sizes, -1).astype(np.int32)


def convolution(name: str, x: Array, w: Array, window: Window, groups: int = 1) -> tuple[Case, Array]:
    def build(b: Builder, p: Instruction) -> Instruction:
        return b.convolution(p, b.constant(w), window, ConvolutionDimensions.nhwc(2), groups, element=S32)

    return Case(name, build, (x,)), convolved(x, w, window, groups)


def direct_cases() -> Iterator[tuple[Case, Array]]:
    """Pointwise, strided, dilated, grouped, without a pair of channels, of more channels than pixels."""
    for dtype in (np.uint8, np.int8):
        for height, width, channels, features in ((5, 7, 18, 21), (1, 1, 64, 5), (9, 3, 5, 40), (13, 13, 260, 16)):
            x = bytes_of((2, height, width, channels), dtype, channels)
            w = bytes_of((1, 1, channels, features), np.int8, features)
            yield convolution(f"1x1 {dtype.__name__} {x.shape} {features}", x, w, Window.of([1, 1]))
    x = bytes_of((1, 15, 11, 6), np.uint8, 1)
    for name, window in (
        ("stride 2", Window.of([3, 3], [2, 2], [1, 0], [2, 1])),
        ("dilated", Window.of([3, 3], [1, 2], [2, 1], [0, 3], window_dilations=[2, 1])),
        ("5x2", Window.of([5, 2], [1, 1], [4, 0], [0, 1])),
    ):
        sizes = [d.size for d in window.dimensions]
        yield convolution(name, x, bytes_of((*sizes, 6, 19), np.int8, 2), window)
        yield convolution(f"{name}, odd", x[..., :3], bytes_of((*sizes, 3, 19), np.int8, 3), window)
        yield convolution(f"{name}, groups", x, bytes_of((*sizes, 2, 12), np.int8, 4), window, 3)


def dot_cases() -> Iterator[tuple[Case, Array]]:
    for dtype in (np.uint8, np.int8):
        for rows, depth, columns in ((1, 64, 64), (70, 130, 33), (5, 7, 9), (200, 16, 1), (0, 4, 4)):
            x, w = bytes_of((rows, depth), dtype, rows), bytes_of((depth, columns), np.int8, columns)
            case = Case(
                f"dot {dtype.__name__} {rows}x{depth}x{columns}",
                lambda b, p, k=w: b.dot(p, b.constant(k), [1], [0], element=S32),
                (x,),
            )
            yield case, (x.astype(np.int64) @ w.astype(np.int64)).astype(np.int32)
    x, w = np.full((7, 4608), 255, np.uint8), nearly_all(-128, (4608, 20))
    yield (
        Case("all at their limits", lambda b, p, k=w: b.dot(p, b.constant(k), [1], [0], element=S32), (x,)),
        (x.astype(np.int64) @ w.astype(np.int64)).astype(np.int32),
    )


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("cases", [direct_cases, dot_cases])
def test_sums_are_exact(cases: object, target: str) -> None:
    assert callable(cases)
    pairs = list(cases())
    for (case, expected), results in zip(pairs, run_together([case for case, _ in pairs], target), strict=True):
        np.testing.assert_array_equal(results[0], expected, err_msg=case.name)
