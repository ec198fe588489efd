"""Matrix products and convolutions in the simulator: awkward shapes, all layouts, fused producers and consumers."""

import pytest

from onnxla.codegen.gpu.schedule import lower
from onnxla.codegen.gpu.target import GpuTarget
from onnxla.hlo.builder import Builder
from onnxla.hlo.ops.contraction import ConvolutionDimensions, Window
from onnxla.hlo.types import BF16, F16, F32, F64, S8, S32, ElementType, TensorType
from tests.gpu.kernel_classes import product
from tests.gpu.running import check, fusion


@pytest.mark.parametrize(("m", "k", "n"), [(64, 32, 64), (65, 33, 17), (1, 100, 30), (70, 16, 1), (3, 1, 3)])
def test_products_of_awkward_sizes(m: int, k: int, n: int) -> None:
    check(product(m, k, n), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("lhs", [0, 1])
@pytest.mark.parametrize("rhs", [0, 1])
def test_products_of_all_layouts(lhs: int, rhs: int) -> None:
    check(product(40, 20, 70, F32, lhs, rhs), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("element", [F16, BF16, F64, S32, S8])
def test_products_of_other_types(element: ElementType) -> None:
    tolerance = {F16: 2e-3, BF16: 1e-2}.get(element, 1e-12)
    check(product(20, 24, 18, element), rtol=tolerance, atol=tolerance)


def test_a_batched_product_with_a_producer_and_an_epilogue() -> None:
    b = Builder()
    x, y = b.parameter(TensorType(F32, (2, 20, 30))), b.parameter(TensorType(F32, (2, 30, 18)))
    bias = b.parameter(TensorType(F32, (18,)))
    total = b.dot(b.exponential(x), y, [2], [1], [0], [0])
    shifted = b.add(total, b.broadcast(bias, (2, 20, 18), [2]))
    instruction = fusion(b, b.maximum(shifted, b.full_like(shifted, 0.0)), kind="kOutput")
    check(instruction, rtol=1e-4, atol=1e-4)
    assert len(lower(instruction, GpuTarget()).calls) == 1


@pytest.mark.parametrize(
    ("window", "groups"),
    [
        (Window.of([3, 3], [1, 1], [1, 1], [1, 1]), 1),
        (Window.of([3, 3], [2, 2], [0, 1], [1, 0]), 1),
        (Window.of([3, 3], [1, 1], [2, 2], [2, 2], [1, 1], [2, 2]), 1),
        (Window.of([3, 3], [1, 1], [1, 1], [1, 1]), 2),
        (Window.of([1, 1]), 1),
    ],
)
def test_convolutions_with_channels_first(window: Window, groups: int) -> None:
    b = Builder()
    kernel = tuple(w.size for w in window.dimensions)
    x = b.parameter(TensorType(F32, (2, 8, 9, 7)))
    w = b.parameter(TensorType(F32, (12, 8 // groups, *kernel)))
    check(b.convolution(x, w, window, ConvolutionDimensions.nchw(2), groups), rtol=1e-4, atol=1e-4)


def test_a_convolution_with_channels_last() -> None:
    b = Builder()
    x, w = b.parameter(TensorType(F32, (1, 10, 9, 5))), b.parameter(TensorType(F32, (3, 3, 5, 20)))
    window = Window.of([3, 3], [1, 1], [1, 1], [1, 1])
    check(b.convolution(x, w, window, ConvolutionDimensions.nhwc(2)), rtol=1e-4, atol=1e-4)


def test_a_depthwise_convolution() -> None:
    b = Builder()
    x, w = b.parameter(TensorType(F32, (1, 6, 9, 9))), b.parameter(TensorType(F32, (6, 1, 3, 3)))
    window = Window.of([3, 3], [1, 1], [1, 1], [1, 1])
    check(b.convolution(x, w, window, ConvolutionDimensions.nchw(2), 6), rtol=1e-4, atol=1e-4)
