"""The integer form of a contraction has the value of the one it replaces."""

import numpy as np
import pytest

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction, Module
from onnxla.hlo.ops.contraction import Convolution
from onnxla.hlo.types import F32, S32, Array, type_of
from onnxla.hlo.window import ConvolutionDimensions, Window, WindowDimension
from onnxla.passes.integer_contractions import IntegerContractions


def dequantized(b: Builder, bits: Instruction, zero: int, scale: Array, axis: int = 0) -> Instruction:
    wide = b.convert(bits, S32)
    value = b.convert(b.subtract(wide, b.full_like(wide, zero)), F32)
    dimensions = [axis] if scale.ndim else []
    return b.multiply(value, b.broadcast(b.constant(scale), value.shape, dimensions))


@pytest.mark.parametrize("signed_left", [False, True])
@pytest.mark.parametrize("unsigned_right", [False, True])
@pytest.mark.parametrize("padding", [0, 2])
@pytest.mark.parametrize("groups", [1, 2])
def test_convolutions_keep_their_value(signed_left: bool, unsigned_right: bool, padding: int, groups: int) -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(0, 255, (2, 4, 6, 5)).astype(np.int8 if signed_left else np.uint8)
    w = rng.integers(0, 255, (6, 4 // groups, 3, 2)).astype(np.uint8 if unsigned_right else np.int8)
    b = Builder()
    left = dequantized(b, b.parameter(type_of(x)), 11, np.full((), 0.25, np.float32))
    scales = rng.uniform(0.1, 1, 6).astype(np.float32)
    right = dequantized(b, b.constant(w), 128 if unsigned_right else 0, scales)
    window = Window((WindowDimension(3, 2, padding, padding), WindowDimension(2, 1, padding, 0)))
    y = b.convolution(left, right, window, ConvolutionDimensions.parse("bf01_oi01->bf01"), groups)
    module = Module("m", b.build(y))
    before = module.entry.evaluate(x)
    assert IntegerContractions().run(module)
    np.testing.assert_allclose(module.entry.evaluate(x), before, rtol=1e-5, atol=1e-2)  # the sums were rounded before


@pytest.mark.parametrize("zeros", [(0, 128), (11, 128), (0, 3), (127, 250)])
@pytest.mark.parametrize("layout", ["bf01_oi01->bf01", "b01f_01io->b01f"])
@pytest.mark.parametrize("signed", [False, True])
def test_weights_may_have_a_zero_point(zeros: tuple[int, int], layout: str, signed: bool) -> None:
    rng = np.random.default_rng(3)
    last = layout.startswith("b01f")
    x = rng.integers(0, 255, (2, 9, 8, 5) if last else (2, 5, 9, 8)).astype(np.int8 if signed else np.uint8)
    w = rng.integers(0, 255, (3, 2, 5, 6) if last else (6, 5, 3, 2)).astype(np.uint8)
    b = Builder()
    left = dequantized(b, b.parameter(type_of(x)), zeros[0], np.full((), 0.25, np.float32))
    right = dequantized(b, b.constant(w), zeros[1], rng.uniform(0.1, 1, 6).astype(np.float32), 3 if last else 0)
    window = Window((WindowDimension(3, 2, 2, 1), WindowDimension(2, 1, 0, 1, window_dilation=2)))
    module = Module("m", b.build(b.convolution(left, right, window, ConvolutionDimensions.parse(layout))))
    before = module.entry.evaluate(x)
    assert IntegerContractions().run(module)
    assert all(i.tensor_type.element is S32 for i in module.entry.instructions() if isinstance(i.op, Convolution))
    np.testing.assert_allclose(module.entry.evaluate(x), before, rtol=1e-5, atol=1e-1)  # the sums were rounded before


def test_zero_points_beyond_bytes_stay() -> None:
    b = Builder()
    x = b.subtract(b.convert(b.parameter(type_of(np.zeros((2, 3), np.uint8))), S32), b.full((2, 3), 300, S32))
    w = b.convert(b.constant(np.arange(6).astype(np.int8).reshape(3, 2)), S32)
    assert not IntegerContractions().run(Module("m", b.build(b.dot(x, w, [1], [0]))))


@pytest.mark.parametrize("zeros", [(0, 7), (13, 250)])
def test_products_may_have_weights_with_a_zero_point(zeros: tuple[int, int]) -> None:
    rng = np.random.default_rng(4)
    x, w = rng.integers(0, 255, (2, 5, 7)).astype(np.uint8), rng.integers(0, 255, (7, 3)).astype(np.uint8)
    b = Builder()
    wide = [b.convert(v, S32) for v in (b.parameter(type_of(x)), b.constant(w))]
    left, right = (b.subtract(v, b.full_like(v, z)) for v, z in zip(wide, zeros, strict=True))
    module = Module("m", b.build(b.dot(left, right, [2], [0])))
    before = module.entry.evaluate(x)
    assert IntegerContractions().run(module)
    np.testing.assert_array_equal(module.entry.evaluate(x), before)


@pytest.mark.parametrize("axis", [None, 1, 2])
def test_batched_dots_keep_their_value(axis: int | None) -> None:
    rng = np.random.default_rng(2)
    x = rng.integers(0, 255, (3, 5, 7)).astype(np.uint8)
    w = rng.integers(-128, 127, (3, 4, 7)).astype(np.int8)
    b = Builder()
    left = dequantized(b, b.parameter(type_of(x)), 3, np.full((), 0.5, np.float32))
    scale: Array = np.linspace(1, 2, 1 if axis is None else w.shape[axis], dtype=np.float32)
    scale = scale.reshape(()) if axis is None else scale
    right = dequantized(b, b.constant(w), 0, scale, axis or 0)
    module = Module("m", b.build(b.dot(left, right, [2], [2], [0], [0])))
    before = module.entry.evaluate(x)
    assert IntegerContractions().run(module) is (axis != 2)
    np.testing.assert_allclose(module.entry.evaluate(x), before, rtol=1e-5, atol=1e-2)  # the sums were rounded before


@pytest.mark.parametrize(("depth", "fits"), [(65793, True), (65794, False)])
def test_sums_of_floats_are_those_of_integers_that_32_bits_hold(depth: int, fits: bool) -> None:
    x, w = np.full((1, depth), 255, np.uint8), np.full((depth, 1), -128, np.int8)
    w[0] = 127  # no constant that is the same everywhere
    b = Builder()
    one = np.full((), 1, np.float32)
    left, right = dequantized(b, b.parameter(type_of(x)), 0, one), dequantized(b, b.constant(w), 0, one)
    module = Module("m", b.build(b.dot(left, right, lhs_contracting=(1,), rhs_contracting=(0,))))
    assert IntegerContractions().run(module) == fits
    wanted = x.astype(np.int64) @ w.astype(np.int64)
    np.testing.assert_allclose(module.entry.evaluate(x), wanted, rtol=1e-3)
