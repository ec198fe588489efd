"""Every kernel class compiles for seven architectures, spills nothing but what is stated, and keeps to its budget."""

import re
from collections.abc import Callable

import pytest

from onnxla.codegen.gpu.compile_nvrtc import compile_cuda
from onnxla.codegen.gpu.emit_cuda import emit_cuda
from onnxla.codegen.gpu.schedule import lower
from onnxla.codegen.gpu.target import GpuTarget
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import BF16, F16, F32
from tests.gpu.kernel_classes import (
    attention,
    convolution,
    elementwise,
    fused,
    product,
    product_of_bytes,
    reduction,
    running_sum,
    scatter,
    softmax,
    sort,
    transpose,
    update,
)
from tests.gpu.model_kernels import resources_of

ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")


CLASSES: dict[str, Callable[[], Instruction]] = {
    "loop": lambda: elementwise(700),
    "row": lambda: softmax((3, 5000)),
    "reduction": lambda: reduction((9000, 300), [0]),
    "transpose": lambda: transpose((300, 400), (1, 0)),
    "product of f32": lambda: product(300, 200, 100, F32),
    "product of bf16": lambda: product(300, 200, 100, BF16),
    "product of bytes": lambda: product_of_bytes(64, 64, 64),
    "convolution of f32": lambda: convolution(F32),
    "convolution of f16": lambda: convolution(F16),
    "depthwise convolution": lambda: convolution(F32, 16),
    "attention of f32": lambda: fused(attention(2, 40, 70, 24, 24, F32)),
    "attention of f16": lambda: fused(attention(2, 40, 70, 24, 24, F16)),
    "sort": lambda: sort(70),
    "scatter": lambda: scatter(70),
    "update": lambda: update(70),
    "scan": lambda: running_sum(70),
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
