"""One factor in place of several gives the same bytes, but where a result lies between two steps of the grid."""

import numpy as np
import numpy.typing as npt
import pytest

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction, Module
from onnxla.hlo.types import F32, S8, S32, U8, Array, type_of
from onnxla.hlo.window import ConvolutionDimensions, Window
from onnxla.passes.merge_scales import MergeScales


def spread(b: Builder, numbers: npt.ArrayLike, like: Instruction, axis: int | None = None) -> Instruction:
    return b.broadcast(b.constant(np.asarray(numbers, np.float32)), like.shape, [] if axis is None else [axis])


def dequantised(b: Builder, byte: Instruction, zero: int, scale: float) -> Instruction:
    wide = b.convert(byte, S32)
    value = b.convert(b.subtract(wide, b.full_like(wide, zero)), F32)
    return b.multiply(value, spread(b, scale, value))


def quantised(b: Builder, x: Instruction, zero: int, scale: float) -> Instruction:
    whole = b.unary("round-nearest-even", b.divide(x, spread(b, scale, x)))
    return b.convert(b.add(whole, b.full_like(whole, zero)), U8)


def convolution(b: Builder, x: Array, w: Array) -> Instruction:
    dims = ConvolutionDimensions.nhwc(2)
    return b.convolution(b.parameter(type_of(x)), b.constant(w), Window.of([1, 1]), dims, element=S32)


@pytest.mark.parametrize("grid", [True, False])
def test_a_convolution_is_rounded_as_onnxruntime_rounds_it(grid: bool) -> None:
    rng = np.random.default_rng(7)
    x = rng.integers(0, 256, (1, 9, 11, 12)).astype(np.uint8)
    w = rng.integers(-128, 128, (1, 1, 12, 6)).astype(np.int8)
    scale, scales, out = np.float32(0.0371), rng.uniform(1e-4, 1e-2, 6).astype(np.float32), np.float32(0.0913)
    multiples = rng.integers(-9000, 9000, 6).astype(np.int32)
    factor = scale * scales
    bias = multiples * factor if grid else rng.standard_normal(6).astype(np.float32)
    b = Builder()
    sums = b.convert(convolution(b, x, w), F32)
    scaled = b.multiply(b.multiply(sums, spread(b, scale, sums)), spread(b, scales, sums, 3))
    y = quantised(b, b.add(scaled, spread(b, bias, sums, 3)), 131, float(out))
    module = Module("m", b.build(y))
    before = module.entry.evaluate(x)
    assert MergeScales().run(module)
    after = module.entry.evaluate(x)
    steps = np.abs(after.astype(int) - before.astype(int))
    assert steps.max() <= 1 and steps.mean() < 1e-3
    exact = np.einsum("nhwc,cf->nhwf", x.astype(np.int64), w[0, 0].astype(np.int64))
    if grid:
        theirs = np.rint((exact + multiples).astype(np.float32) * (factor / out)) + 131
        np.testing.assert_array_equal(after, np.clip(theirs, 0, 255))


@pytest.mark.parametrize("relu", [True, False])
def test_sums_of_quantised_values(relu: bool) -> None:
    rng = np.random.default_rng(8)
    p, q = rng.integers(0, 256, (5, 7)).astype(np.uint8), rng.integers(-128, 128, (5, 7)).astype(np.int8)
    b = Builder()
    total = b.add(
        dequantised(b, b.parameter(type_of(p)), 100, 0.021), dequantised(b, b.parameter(type_of(q)), -5, 0.037)
    )
    y = quantised(b, b.maximum(total, b.full_like(total, 0)) if relu else total, 17, 0.044)
    module = Module("m", b.build(y))
    before = module.entry.evaluate(p, q)
    assert MergeScales().run(module)
    assert "divide" not in {i.op.opcode for i in module.entry.instructions()}
    assert np.abs(module.entry.evaluate(p, q).astype(int) - before.astype(int)).max() <= 1


@pytest.mark.parametrize("bias", [0.0, 1.5])
def test_products_of_quantised_values(bias: float) -> None:
    p, q = (np.arange(256).astype(kind).reshape(shape) for kind, shape in ((np.uint8, (256, 1)), (np.int8, (1, 256))))
    p, q = (np.broadcast_to(v, (256, 256)).copy() for v in (p, q))
    b = Builder()
    product = b.multiply(
        dequantised(b, b.parameter(type_of(p)), 100, 0.021), dequantised(b, b.parameter(type_of(q)), -5, 0.037)
    )
    y = quantised(b, b.add(product, spread(b, bias, product)) if bias else product, 17, 0.044)
    module = Module("m", b.build(y))
    before = module.entry.evaluate(p, q)
    assert MergeScales().run(module)
    assert "divide" not in {i.op.opcode for i in module.entry.instructions()}
    after = module.entry.evaluate(p, q)
    assert np.abs(after.astype(int) - before.astype(int)).max() <= 1
    if not bias:
        factor = np.float32(0.021) * np.float32(0.037) / np.float32(0.044)
        exact = ((p.astype(np.float32) - 100) * (q.astype(np.float32) + 5)) * factor
        np.testing.assert_array_equal(after, np.clip(np.rint(exact) + 17, 0, 255))


@pytest.mark.parametrize(
    "scales", [(np.inf, 1.0), (np.nan, 1.0), (0.0, 1.0), (1.0, 0.0), (1e-30, 1e30), (1.0, np.inf), (-0.5, 0.25)]
)
def test_unusual_scales_change_nothing(scales: tuple[float, float]) -> None:
    """Negative ones merge all the same; the others stay as they are."""
    q = np.arange(256).astype(np.uint8)
    b = Builder()
    y = quantised(b, dequantised(b, b.parameter(type_of(q)), 100, scales[0]), 7, scales[1])
    module = Module("m", b.build(y))
    with np.errstate(all="ignore"):
        before = module.entry.evaluate(q)
        assert MergeScales().run(module) is (scales[0] < 0)
        np.testing.assert_array_equal(module.entry.evaluate(q), before)


def test_a_bias_that_could_wrap_is_added_in_floats() -> None:
    rng = np.random.default_rng(9)
    x, w = rng.integers(0, 256, (2, 40000)).astype(np.uint8), rng.integers(-128, 128, (40000, 3)).astype(np.int8)
    b = Builder()
    sums = b.convert(b.dot(b.parameter(type_of(x)), b.constant(w), [1], [0], element=S32), F32)
    scaled = b.multiply(sums, spread(b, 0.5, sums))
    y = quantised(b, b.add(scaled, spread(b, [0.5, 1.0, 2.5], sums, 1)), 0, 1e5)
    module = Module("m", b.build(y))
    before = module.entry.evaluate(x)
    assert MergeScales().run(module)
    assert [i for i in module.entry.instructions() if i.op.opcode == "add" and i.tensor_type.element is S32] == []
    assert np.abs(module.entry.evaluate(x).astype(int) - before.astype(int)).max() <= 1


def test_other_signs_of_bytes() -> None:
    """A bias joins sums of signed bytes too."""
    x, w = np.full((2, 4), -128, np.int8), np.full((4, 3), -128, np.int8)
    w[0, 0] = 1
    b = Builder()
    sums = b.convert(b.dot(b.parameter(type_of(x)), b.constant(w), [1], [0], element=S32), F32)
    y = b.multiply(sums, spread(b, 0.5, sums))
    y = b.convert(b.unary("round-nearest-even", b.divide(b.add(y, spread(b, 8.5, sums)), spread(b, 512, sums))), S8)
    module = Module("m", b.build(y))
    before = module.entry.evaluate(x)
    assert MergeScales().run(module)
    np.testing.assert_array_equal(module.entry.evaluate(x), before)
