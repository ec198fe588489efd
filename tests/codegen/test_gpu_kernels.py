"""The loop and row classes as CUDA C++: NVRTC accepts them for every architecture, and they keep to their budget."""

import re

import pytest

from onnxla.codegen.gpu.compile_nvrtc import CompiledKernel, compile_cuda
from onnxla.codegen.gpu.emit_cuda import emit_cuda
from onnxla.codegen.gpu.schedule import lower
from onnxla.codegen.gpu.target import GpuTarget
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.control_flow import Fusion
from onnxla.hlo.types import BF16, F16, F32, F64, S8, S32, TensorType

ARCHITECTURES = ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"]


def fuse(inner: Builder, root: Instruction) -> Instruction:
    """A fusion around what `inner` has built."""
    body = inner.build(root)
    outer = Builder()
    return outer.emit(Fusion("kLoop", body), *(outer.parameter(p.type) for p in inner.parameters))


def softmax(shape: tuple[int, ...]) -> Instruction:
    b = Builder()
    x = b.parameter(TensorType(F32, shape))
    last, kept = len(shape) - 1, range(len(shape) - 1)
    shifted = b.subtract(x, b.broadcast(b.reduce_by("maximum", x, [last]), shape, kept))
    e = b.exponential(shifted)
    return fuse(b, b.divide(e, b.broadcast(b.reduce_by("add", e, [last]), shape, kept)))


def fused_multiply_add() -> Instruction:
    b = Builder()
    x, y = b.parameter(TensorType(F32, (3, 500))), b.parameter(TensorType(F32, (3, 500)))
    return fuse(b, b.add(b.multiply(x, y), b.full_like(x, 1.0)))


def compiled(instruction: Instruction, architecture: str = "sm_80") -> list[CompiledKernel]:
    calls = lower(instruction, GpuTarget(architecture)).calls
    return [compile_cuda(emit_cuda(call.kernel, "kernel"), architecture) for call in calls]


def number(pattern: str, log: str) -> int:
    found = re.search(pattern, log)
    return int(found.group(1)) if found else 0


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_softmax_compiles_without_spills(architecture: str) -> None:
    (kernel,) = compiled(softmax((3, 5000)), architecture)
    assert number(r"(\d+) bytes spill", kernel.log) == 0
    assert 0 < number(r"Used (\d+) registers", kernel.log) <= 64
    assert kernel.cubin[:4] == b"\x7fELF"


def test_an_elementwise_fusion_is_one_kernel_without_intermediates() -> None:
    (kernel,) = compiled(fused_multiply_add())
    assert kernel.ptx.count("ld.global.f32") == 2
    assert kernel.ptx.count("st.global.f32") == 1


def test_a_block_reduction_meets_between_barriers() -> None:
    (call,) = lower(softmax((2, 5000)), GpuTarget()).calls
    source = emit_cuda(call.kernel, "kernel")
    assert source.count("__syncthreads();") == 2  # one for the maximum, one for the sum
    assert call.kernel.threads == 512 and call.kernel.tasks == 2


@pytest.mark.parametrize("source", [F16, BF16, F32, F64, S8, S32])
@pytest.mark.parametrize("target", [F16, BF16, F32, F64, S8, S32])
def test_conversions_compile(source, target) -> None:  # type: ignore[no-untyped-def]
    if source is target:
        return
    b = Builder()
    compiled(fuse(b, b.convert(b.parameter(TensorType(source, (100,))), target)))


@pytest.mark.parametrize("opcode", ["exponential", "log", "logistic", "tanh", "erf", "rsqrt", "sqrt", "floor", "sign"])
def test_functions_compile(opcode: str) -> None:
    b = Builder()
    compiled(fuse(b, b.unary(opcode, b.parameter(TensorType(F32, (100,))))))
