"""Column and split reductions, and transposes, in the simulator."""

import numpy as np
import pytest

from onnxla.codegen.gpu.emit_cuda import emit_cuda
from onnxla.codegen.gpu.schedule import lower
from onnxla.codegen.gpu.target import GpuTarget
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import BF16, F32, S32, ElementType, TensorType
from tests.gpu.running import check, fusion, run, samples


def reduction(
    shape: tuple[int, ...], dimensions: list[int], opcode: str = "add", element: ElementType = F32
) -> Instruction:
    """A fused producer, a reduction and an epilogue."""
    b = Builder()
    x = b.multiply(b.parameter(TensorType(element, shape)), b.parameter(TensorType(element, shape)))
    return fusion(b, b.negate(b.reduce_by(opcode, x, dimensions)), kind="kInput")


@pytest.mark.parametrize(
    ("shape", "dimensions", "kernels"),
    [
        ((70, 100), [0], 1),
        ((9000, 3), [0], 2),
        ((3, 70, 40), [1], 1),
        ((2, 9000), [1], 2),
        ((20000,), [0], 2),
        ((40, 5, 60), [0, 2], 1),
        ((90, 600), [0], 1),
    ],
)
def test_a_reduction(shape: tuple[int, ...], dimensions: list[int], kernels: int) -> None:
    instruction = reduction(shape, dimensions)
    check(instruction, rtol=1e-4, atol=2e-3)
    assert len(lower(instruction, GpuTarget()).calls) == kernels


def test_results_repeat_to_the_bit() -> None:
    instruction = reduction((20000,), [0])
    arrays = samples(instruction)
    (first,), _ = run(instruction, arrays)
    (second,), _ = run(instruction, arrays)
    assert first.tobytes() == second.tobytes()


@pytest.mark.parametrize("opcode", ["maximum", "minimum"])
def test_extremes_of_integers(opcode: str) -> None:
    check(reduction((5000, 2), [0], opcode, S32), rtol=0, atol=0)


def transpose(shape: tuple[int, ...], permutation: tuple[int, ...], element: ElementType = F32) -> Instruction:
    b = Builder()
    x = b.negate(b.parameter(TensorType(element, shape)))
    return fusion(b, b.unary("abs", b.transpose(x, permutation)))


@pytest.mark.parametrize(
    ("shape", "permutation"),
    [((40, 70), (1, 0)), ((3, 9, 33), (0, 2, 1)), ((33, 2, 9), (2, 1, 0)), ((2, 8, 5, 16), (0, 3, 2, 1))],
)
@pytest.mark.parametrize("element", [F32, BF16])
def test_a_transpose_through_a_tile(shape: tuple[int, ...], permutation: tuple[int, ...], element: ElementType) -> None:
    instruction = transpose(shape, permutation, element)
    (call,) = lower(instruction, GpuTarget()).calls
    assert "__shared__" in emit_cuda(call.kernel, "kernel")
    check(instruction, rtol=0, atol=0)


def test_a_transpose_that_keeps_the_innermost_dimension_is_a_loop() -> None:
    (call,) = lower(transpose((9, 10, 40), (1, 0, 2)), GpuTarget()).calls
    assert "__shared__" not in emit_cuda(call.kernel, "kernel")


@pytest.mark.parametrize("instruction", [transpose((40, 40), (1, 0)), reduction((300, 40), [0])])
def test_a_missing_barrier_is_noticed(instruction: Instruction) -> None:
    _, reports = run(instruction, samples(instruction), lambda s: s.replace("__syncthreads();", "", 1))
    assert reports.kinds & {"shared race", "uninitialised shared read"}


def test_a_missing_bound_is_noticed() -> None:
    instruction = transpose((40, 40), (1, 0))
    arrays = samples(instruction)
    results, reports = run(instruction, arrays, lambda s: s.replace("< 40", "< 50"))
    assert reports or not np.array_equal(results[0], np.abs(arrays[0].T))
