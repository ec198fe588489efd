"""Column and split reductions, and transposes, in the simulator."""

import pytest

from onnxla.codegen.gpu.emit_cuda import emit_cuda
from onnxla.codegen.gpu.schedule import lower
from onnxla.codegen.gpu.target import GpuTarget
from onnxla.hlo.types import BF16, F32, S32, ElementType
from tests.gpu.kernel_classes import reduction, transpose
from tests.gpu.running import check, run, samples


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
