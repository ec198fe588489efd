"""Every kernel class compiles for every architecture without spills and within its budget of registers and memory."""

import re

import pytest

from onnxla.codegen.gpu.compile_nvrtc import compile_cuda
from onnxla.codegen.gpu.emit_cuda import emit_cuda
from onnxla.codegen.gpu.schedule import lower
from onnxla.codegen.gpu.target import GpuTarget
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import BF16, F32
from tests.gpu.test_simulated_contractions import product
from tests.gpu.test_simulated_kernels import softmax
from tests.gpu.test_simulated_tiles import reduction, transpose

CLASSES = {
    "row": softmax((3, 5000)),
    "reduction": reduction((9000, 300), [0]),
    "transpose": transpose((300, 400), (1, 0)),
    "product of f32": product(300, 200, 100, F32),
    "product of bf16": product(300, 200, 100, BF16),
}


def registers_and_spills(log: str) -> tuple[int, int, int]:
    """Of the kernel that ptxas speaks of: registers of a thread, bytes spilled, bytes of shared memory."""
    found = [re.findall(pattern, log) for pattern in (r"Used (\d+) reg", r"(\d+) bytes spill", r"(\d+) bytes smem")]
    registers, spilled, shared = (max(map(int, numbers), default=0) for numbers in found)
    assert registers, "no report of ptxas"
    return registers, spilled, shared


@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"])
@pytest.mark.parametrize("name", CLASSES)
def test_resources(name: str, architecture: str) -> None:
    instruction: Instruction = CLASSES[name]
    for call in lower(instruction, GpuTarget(architecture)).calls:
        log = compile_cuda(emit_cuda(call.kernel, "kernel"), architecture).log
        registers, spilled, shared = registers_and_spills(log)
        assert not spilled, log
        assert registers * call.kernel.threads <= 65536 // 2, log
        assert shared <= GpuTarget().shared_bytes, log
