"""Loops and rows in the simulator: results as `evaluate` gives them, and no fault."""

import numpy as np
import pytest

from onnxla.hlo.builder import Builder
from onnxla.hlo.types import BF16, F16, F32, F64, PRED, S8, S32, S64, U8, ElementType, TensorType
from tests.gpu.kernel_classes import softmax
from tests.gpu.ptx_operations import operation
from tests.gpu.ptx_text import UnsupportedPtx, parse_ptx
from tests.gpu.running import check, fusion, run, samples


@pytest.mark.parametrize("shape", [(1, 1), (5, 7), (3, 64), (2, 1000), (2, 3, 33)])
def test_softmax(shape: tuple[int, ...]) -> None:
    check(softmax(shape))


@pytest.mark.parametrize("element", [F16, BF16, F64])
def test_softmax_of_other_types(element: ElementType) -> None:
    check(softmax((2, 100), element), rtol={F16: 1e-2, BF16: 4e-2, F64: 1e-12}[element])


@pytest.mark.parametrize("opcode", ["add", "maximum", "minimum", "multiply"])
def test_a_row_reduction(opcode: str) -> None:
    b = Builder()
    check(fusion(b, b.reduce_by(opcode, b.parameter(TensorType(F32, (3, 300))), [1])), rtol=1e-4)


@pytest.mark.parametrize("opcode", ["exponential", "log", "logistic", "tanh", "erf", "rsqrt", "sine", "floor", "sign"])
@pytest.mark.parametrize("element", [F32, F64])
def test_functions(opcode: str, element: ElementType) -> None:
    b = Builder()
    x = np.linspace(0.01, 9, 300).astype(element.dtype)
    check(fusion(b, b.unary(opcode, b.parameter(TensorType(element, (300,))))), [x], rtol=2e-6)


@pytest.mark.parametrize("opcode", ["add", "multiply", "divide", "remainder", "maximum", "power"])
@pytest.mark.parametrize("element", [F32, S8, S32, S64, U8])
def test_arithmetic(opcode: str, element: ElementType) -> None:
    b = Builder()
    type = TensorType(element, (300,))
    instruction = fusion(b, b.binary(opcode, b.parameter(type), b.parameter(type)))
    x, y = samples(instruction)
    check(instruction, [np.abs(x), np.where(y == 0, 3, np.abs(y)).astype(y.dtype)], rtol=1e-5)


@pytest.mark.parametrize("source", [F16, BF16, F32, F64, S8, S32, PRED])
@pytest.mark.parametrize("target", [F16, BF16, F32, S8, S64, PRED])
def test_conversions(source: ElementType, target: ElementType) -> None:
    if source is target:
        return
    b = Builder()
    check(fusion(b, b.convert(b.parameter(TensorType(source, (100,))), target)), rtol=0, atol=0)


def test_data_movement_in_one_loop() -> None:
    b = Builder()
    x = b.parameter(TensorType(F32, (4, 6)))
    y = b.parameter(TensorType(F32, (3, 4)))
    turned = b.transpose(x, (1, 0))
    check(fusion(b, b.concatenate([b.slice(turned, (1, 0), (4, 4), (1, 1)), y], 0)))


@pytest.mark.parametrize(
    ("opcode", "expected"),
    [
        ("dp4a.u32.u32", 10 + 1 * 5 + 2 * 6 + 0x80 * 7 + 0xFF * 0xFE),
        ("dp4a.s32.s32", 10 + 1 * 5 + 2 * 6 - 0x80 * 7 + 1 * 2),
        ("dp4a.u32.s32", 10 + 1 * 5 + 2 * 6 + 0x80 * 7 - 0xFF * 2),
        ("dp2a.lo.u32.u32", 10 + 0x0201 * 5 + 0xFF80 * 6),
        ("dp2a.hi.s32.s32", 10 + 0x0201 * 7 + 0x80 * 2),
    ],
)
def test_products_of_packed_numbers(opcode: str, expected: int) -> None:
    """NVRTC makes them of its own accord, of indices too."""
    op = operation(opcode)
    first, second, third = op.operands
    x, y = np.array([0xFF800201], "u4"), np.array([0xFE070605], "u4")
    (result,) = op.function(x.view(first), y.view(second), np.array([10]).astype(third))
    assert result == expected


@pytest.mark.parametrize("opcode", ["sin.approx.f32", "add.rz.f32", "ld.volatile.global.f32", "tanh.approx.f32"])
def test_an_unknown_operation_is_refused(opcode: str) -> None:
    with pytest.raises(UnsupportedPtx):
        operation(opcode)


def test_an_unknown_directive_is_refused() -> None:
    with pytest.raises(UnsupportedPtx):
        parse_ptx(".visible .func f()\n{\n}\n")


# Mutations that must be noticed; tests/gpu/test_mutations.py takes things away from every class of kernels.


def test_a_barrier_in_a_branch_is_noticed() -> None:
    instruction = softmax((2, 1000))
    _, reports = run(
        instruction,
        samples(instruction),
        lambda s: s.replace("__syncthreads();", "if (threadIdx.x < 32) __syncthreads();", 1),
    )
    assert reports.kinds & {"threads of a block at different barriers", "barrier that some threads never reach"}


def test_blocks_that_write_the_same_place_are_noticed() -> None:
    b = Builder()
    instruction = fusion(b, b.add(b.parameter(TensorType(F32, (300,))), b.parameter(TensorType(F32, (300,)))))
    _, reports = run(
        instruction, samples(instruction), lambda s: s.replace("task = blockIdx.x", "task = blockIdx.x / 2")
    )
    assert "global race" in reports.kinds
