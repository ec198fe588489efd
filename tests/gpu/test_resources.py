"""Every kernel class compiles for seven architectures, spills nothing but what is stated, and keeps to its budget."""

import re
from collections.abc import Callable

import pytest

from onnxla.codegen.gpu.compile_nvrtc import compile_cuda
from onnxla.codegen.gpu.emit_cuda import emit_cuda
from onnxla.codegen.gpu.schedule import lower
from onnxla.codegen.gpu.target import GpuTarget
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.contraction import ConvolutionDimensions, Window
from onnxla.hlo.types import BF16, F16, F32, ElementType, TensorType
from tests.gpu import test_bytes
from tests.gpu.model_kernels import resources_of
from tests.gpu.test_attention import attention, fused
from tests.gpu.test_simulated_contractions import product
from tests.gpu.test_simulated_indexing import _running, _scattered, _sorted, _updated
from tests.gpu.test_simulated_kernels import softmax
from tests.gpu.test_simulated_tiles import reduction, transpose

ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")


def convolution(element: ElementType, groups: int = 1) -> Instruction:
    b = Builder()
    x, w = b.parameter(TensorType(element, (1, 16, 12, 16))), b.parameter(TensorType(element, (32, 16 // groups, 3, 3)))
    return b.convolution(x, w, Window.of([3, 3], [1, 1], [1, 1], [1, 1]), ConvolutionDimensions.nchw(2), groups)


def loop() -> Instruction:
    b = Builder()
    x = b.parameter(TensorType(F32, (700,)))
    return b.add(x, b.parameter(TensorType(F32, (700,))))


CLASSES: dict[str, Callable[[], Instruction]] = {
    "loop": loop,
    "row": lambda: softmax((3, 5000)),
    "reduction": lambda: reduction((9000, 300), [0]),
    "transpose": lambda: transpose((300, 400), (1, 0)),
    "product of f32": lambda: product(300, 200, 100, F32),
    "product of bf16": lambda: product(300, 200, 100, BF16),
    "product of bytes": lambda: test_bytes.product(64, 64, 64),
    "convolution of f32": lambda: convolution(F32),
    "convolution of f16": lambda: convolution(F16),
    "depthwise convolution": lambda: convolution(F32, 16),
    "attention of f32": lambda: fused(attention(2, 40, 70, 24, 24, F32)),
    "attention of f16": lambda: fused(attention(2, 40, 70, 24, 24, F16)),
    "sort": _sorted,
    "scatter": _scattered,
    "update": _updated,
    "scan": _running,
}

SPILLED = {"attention_of_f16_0": 64}
"""Bytes that ptxas may spill where one more block fits on a multiprocessor for it; it does not always do so."""


def registers_and_spills(log: str) -> tuple[int, int, int]:
    """Of the kernel that ptxas speaks of: registers of a thread, bytes spilled, bytes of shared memory."""
    found = [re.findall(pattern, log) for pattern in (r"Used (\d+) reg", r"(\d+) bytes spill", r"(\d+) bytes smem")]
    registers, spilled, shared = (max(map(int, numbers), default=0) for numbers in found)
    assert registers, "no report of ptxas"
    return registers, spilled, shared


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_resources(architecture: str) -> None:
    """All classes in one run of NVRTC."""
    target = GpuTarget(architecture)
    kernels = {
        f"{name.replace(' ', '_')}_{part}": call.kernel
        for name, make in CLASSES.items()
        for part, call in enumerate(lower(make(), target).calls)
    }
    made = compile_cuda("\n".join(emit_cuda(kernel, symbol) for symbol, kernel in kernels.items()), architecture)
    found = dict(resources_of(made.log))
    assert set(found) == set(kernels) and len(kernels) >= len(CLASSES) and made.cubin[:4] == b"\x7fELF"
    for symbol, used in found.items():
        assert used.spilled <= SPILLED.get(symbol, 0), (symbol, used)
        assert used.registers * kernels[symbol].threads <= 65536 // 2, (symbol, used)
        assert used.shared <= target.shared_bytes, (symbol, used)
