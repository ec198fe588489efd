"""A transposed convolution, split by remainders, keeps its value for every stride, kernel and padding."""

import numpy as np
import pytest

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Module
from onnxla.hlo.ops.contraction import Convolution
from onnxla.hlo.types import type_of
from onnxla.hlo.window import ConvolutionDimensions, Window, WindowDimension
from onnxla.passes.dilated_convolutions import SplitDilatedConvolutions


@pytest.mark.parametrize("stride", [(2, 2), (3, 1), (1, 4)])
@pytest.mark.parametrize("kernel", [(1, 1), (4, 4), (3, 2), (2, 5)])
@pytest.mark.parametrize("pads", [(0, 0, 0, 0), (2, 2, 1, 3), (-1, 2, 0, -1)])
@pytest.mark.parametrize("groups", [1, 2])
def test_value(stride: tuple[int, int], kernel: tuple[int, int], pads: tuple[int, int, int, int], groups: int) -> None:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((2, 5, 6, 4)).astype(np.float32)
    w = rng.standard_normal((*kernel, 4 // groups, 6)).astype(np.float32)
    window = Window(
        (
            WindowDimension(kernel[0], 1, pads[0], pads[1], base_dilation=stride[0]),
            WindowDimension(kernel[1], 1, pads[2], pads[3], base_dilation=stride[1]),
        )
    )
    b = Builder()
    y = b.convolution(
        b.parameter(type_of(x)), b.constant(w), window, ConvolutionDimensions.parse("b01f_01io->b01f"), groups
    )
    module = Module("m", b.build(y))
    before = module.entry.evaluate(x)
    assert SplitDilatedConvolutions().run(module)
    left = [i.op for i in module.entry.instructions() if isinstance(i.op, Convolution)]
    assert all(w.base_dilation == 1 for op in left for w in op.window.dimensions)
    np.testing.assert_allclose(module.entry.evaluate(x), before, rtol=1e-5, atol=1e-5)


def test_a_kernel_as_wide_as_the_stride_gives_whole_lines() -> None:
    """2x2 by 2: two convolutions, one for each line of a pair, and nothing to weave within lines."""
    rng = np.random.default_rng(4)
    x, w = rng.standard_normal((2, 5, 6, 3)).astype(np.float32), rng.standard_normal((2, 2, 3, 4)).astype(np.float32)
    b = Builder()
    window = Window((WindowDimension(2, 1, 1, 1, base_dilation=2),) * 2)
    y = b.convolution(b.parameter(type_of(x)), b.constant(w), window, ConvolutionDimensions.parse("b01f_01io->b01f"))
    module = Module("m", b.build(y))
    before = module.entry.evaluate(x)
    assert SplitDilatedConvolutions().run(module)
    shapes = [i.shape for i in module.entry.instructions() if isinstance(i.op, Convolution)]
    assert shapes == [(2, 5, 6, 8)] * 2
    np.testing.assert_allclose(module.entry.evaluate(x), before, rtol=1e-5, atol=1e-5)


def test_strided_convolutions_of_plain_inputs_stay() -> None:
    b = Builder()
    x = b.parameter(type_of(np.zeros((1, 5, 2), np.float32)))
    w = b.constant(np.zeros((3, 2, 2), np.float32))
    y = b.convolution(x, w, Window((WindowDimension(3, 2),)), ConvolutionDimensions.parse("b0f_0io->b0f"))
    assert not SplitDilatedConvolutions().run(Module("m", b.build(y)))
