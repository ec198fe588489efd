"""8-bit products and convolutions on tensor cores, in the simulator: exact, and requantised in the same kernel."""

import numpy as np
import pytest

from onnxla.codegen.gpu.schedule import lower
from onnxla.codegen.gpu.target import GpuTarget
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction, Module
from onnxla.hlo.ops.contraction import ConvolutionDimensions, Window
from onnxla.hlo.types import F32, S8, S32, U8, Array, ElementType, TensorType
from onnxla.passes.weights_along_depth import WeightsAlongDepth
from tests.gpu.kernel_classes import product_of_bytes
from tests.gpu.running import fusion, reference, run
from tests.gpu.test_tensor_cores import code_of


def whole_range(instruction: Instruction) -> list[Array]:
    """Every value of the operands' types."""
    rng = np.random.default_rng(1)
    arrays = []
    for o in instruction.operands:
        dtype = o.tensor_type.element.dtype
        if dtype.kind == "f":
            arrays.append(rng.uniform(0.001, 0.002, o.shape).astype(dtype))
        else:
            arrays.append(rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, o.shape).astype(dtype))
    return arrays


def check_exact(instruction: Instruction, conflicts: bool = False) -> None:
    assert "m16n8k32" in code_of(instruction)
    arrays = whole_range(instruction)
    (result,), reports = run(instruction, arrays)
    assert not reports, dict(reports)
    assert conflicts or not reports.conflicts
    np.testing.assert_array_equal(result, reference(instruction, arrays)[0])


@pytest.mark.parametrize(("m", "k", "n"), [(64, 64, 64), (70, 100, 40), (1, 68, 100), (33, 17, 16)])
def test_products_of_awkward_sizes(m: int, k: int, n: int) -> None:
    check_exact(product_of_bytes(m, k, n))


@pytest.mark.parametrize(("left", "right", "lhs", "rhs"), [(S8, S8, 1, 0), (S8, U8, 0, 1), (U8, U8, 0, 0)])
def test_signs_and_layouts(left: ElementType, right: ElementType, lhs: int, rhs: int) -> None:
    check_exact(product_of_bytes(20, 36, 24, left, right, lhs, rhs), conflicts=True)


def convolution(weights: Array) -> tuple[Builder, Instruction]:
    """Requantised: scaled by feature, rounded, clamped and stored as bytes."""
    b = Builder()
    x, scale = b.parameter(TensorType(U8, (2, 6, 5, 16))), b.parameter(TensorType(F32, (24,)))
    window = Window.of([3, 3], [1, 1], [1, 1], [1, 1])
    sums = b.convolution(x, b.constant(weights), window, ConvolutionDimensions.nhwc(2), element=S32)
    scaled = b.multiply(b.convert(sums, F32), b.broadcast(scale, sums.shape, [3]))
    low, high = (b.full(sums.shape, value, F32) for value in (0.0, 255.0))
    return b, b.convert(b.minimum(b.maximum(b.unary("round-nearest-even", scaled), low), high), U8)


def test_a_convolution_is_requantised_in_its_kernel() -> None:
    weights = np.random.default_rng(0).integers(-128, 128, (3, 3, 16, 24)).astype(np.int8)
    inner, result = convolution(weights)
    given = [np.full(p.shape, 3, p.tensor_type.element.dtype) for p in inner.parameters]
    module = Module("m", inner.build(result))
    before = module.entry.evaluate(*given)
    assert WeightsAlongDepth().run(module)
    assert not WeightsAlongDepth().run(module)
    np.testing.assert_array_equal(before, module.entry.evaluate(*given))
    b = Builder()
    x, w, scale = (
        b.parameter(t) for t in (TensorType(U8, (2, 6, 5, 16)), TensorType(S8, (24, 3, 3, 16)), TensorType(F32, (24,)))
    )
    (turned,) = (i for i in module.entry.instructions() if i.op.opcode == "convolution")
    scaled = b.multiply(b.convert(b.emit(turned.op, x, w), F32), b.broadcast(scale, turned.shape, [3]))
    low, high = (b.full(turned.shape, value, F32) for value in (0.0, 255.0))
    kernel = fusion(b, b.convert(b.clamp(low, b.unary("round-nearest-even", scaled), high), U8), kind="kOutput")
    assert len(lower(kernel, GpuTarget()).calls) == 1
    check_exact(kernel)


def test_weights_of_products_are_turned() -> None:
    b = Builder()
    x = b.parameter(TensorType(U8, (3, 8)))
    weights = np.random.default_rng(0).integers(-128, 128, (8, 5)).astype(np.int8)
    module = Module("m", b.build(b.dot(x, b.constant(weights), [1], [0], element=S32)))
    given = np.arange(24, dtype=np.uint8).reshape(3, 8)
    before = module.entry.evaluate(given)
    assert WeightsAlongDepth().run(module)
    assert module.entry.root.operands[1].shape == (5, 8)
    np.testing.assert_array_equal(module.entry.evaluate(given), before)


def test_older_architectures_and_small_products_sum_on_ordinary_cores() -> None:
    assert "mma" not in code_of(product_of_bytes(64, 64, 64), GpuTarget("sm_75"))
    assert "mma" not in code_of(product_of_bytes(8, 64, 8))
