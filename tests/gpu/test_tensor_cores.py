"""Products and convolutions of half precision on tensor cores, in the simulator: values, races, shared banks."""

import re

import numpy as np
import pytest

from onnxla.codegen.gpu import tensor_core
from onnxla.codegen.gpu.compile_nvrtc import compile_cuda
from onnxla.codegen.gpu.emit_cuda import emit_cuda
from onnxla.codegen.gpu.schedule import lower
from onnxla.codegen.gpu.target import GpuTarget
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.contraction import ConvolutionDimensions, Window
from onnxla.hlo.types import BF16, F16, F32, ElementType, TensorType
from tests.gpu.kernel_classes import product
from tests.gpu.ptx_memory import bank_conflicts
from tests.gpu.running import check, fusion, run, samples

TOLERANCE = {F16: 2e-3, BF16: 1e-2, F32: 1e-4}


def code_of(instruction: Instruction, target: GpuTarget | None = None) -> str:
    return "".join(emit_cuda(c.kernel, "kernel") for c in lower(instruction, target or GpuTarget()).calls)


def check_half(instruction: Instruction, element: ElementType) -> None:
    """Right within the rounding of the result, without faults and without bank conflicts."""
    assert "mma.sync" in code_of(instruction)
    _, reports = run(instruction, samples(instruction))
    assert not reports.conflicts
    check(instruction, rtol=TOLERANCE[element], atol=TOLERANCE[element] * 8)


@pytest.mark.parametrize("element", [F16, BF16])
@pytest.mark.parametrize("lhs", [0, 1])
@pytest.mark.parametrize("rhs", [0, 1])
def test_products_of_all_layouts(lhs: int, rhs: int, element: ElementType) -> None:
    check_half(product(72, 40, 80, element, lhs, rhs), element)


@pytest.mark.parametrize(
    ("m", "k", "n"), [(64, 32, 64), (65, 33, 35), (1, 64, 100), (5, 16, 16), (130, 48, 20), (70, 500, 18), (16, 17, 1)]
)
def test_products_of_awkward_sizes(m: int, k: int, n: int) -> None:
    check_half(product(m, k, n, F16), F16)


@pytest.mark.parametrize(("size", "bytes"), [(64, 16), (36, 8), (34, 4), (33, 0)])
def test_slices_are_copied_in_the_largest_parcels_that_the_size_allows(size: int, bytes: int) -> None:
    code = code_of(product(64, size, 64, F16, 1, 1))
    assert set(map(int, re.findall(r"\[%0\], \[%1\], (\d+)", code))) == ({bytes} if bytes else set())


def test_the_largest_tile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_core, "ENOUGH_BLOCKS", 1)
    check_half(product(130, 72, 200, F16), F16)
    check_half(product(128, 33, 129, BF16, 0, 1), BF16)


def test_a_batched_product_with_a_producer_and_an_epilogue() -> None:
    b = Builder()
    x, y = b.parameter(TensorType(F16, (2, 20, 32))), b.parameter(TensorType(F16, (2, 32, 24)))
    bias = b.parameter(TensorType(F16, (24,)))
    total = b.dot(b.negate(x), y, [2], [1], [0], [0])
    shifted = b.add(total, b.broadcast(bias, (2, 20, 24), [2]))
    instruction = fusion(b, b.maximum(shifted, b.full_like(shifted, 0.0)), kind="kOutput")
    check_half(instruction, F16)
    assert len(lower(instruction, GpuTarget()).calls) == 1


def test_sums_of_half_precision_stay_f32() -> None:
    b = Builder()
    x, y = b.parameter(TensorType(F16, (32, 64))), b.parameter(TensorType(F16, (64, 32)))
    check_half(b.dot(x, y, [1], [0], element=F32), F32)
    ones = [np.full((32, 64), 200.0, "f2"), np.full((64, 32), 200.0, "f2")]
    (total,), _ = run(b.dot(x, y, [1], [0], element=F32), ones)
    assert (total == 64 * 200.0 * 200.0).all()  # beyond f16


@pytest.mark.parametrize(
    ("window", "groups"),
    [
        (Window.of([3, 3], [1, 1], [1, 1], [1, 1]), 1),
        (Window.of([3, 3], [2, 2], [0, 1], [1, 0]), 2),
        (Window.of([3, 3], [1, 1], [2, 2], [2, 2], [1, 1], [2, 2]), 1),
        (Window.of([1, 1]), 1),
    ],
)
@pytest.mark.parametrize("last", [True, False])
def test_convolutions(window: Window, groups: int, last: bool) -> None:
    b = Builder()
    kernel = tuple(w.size for w in window.dimensions)
    if last:
        x, w = b.parameter(TensorType(F16, (2, 9, 7, 16))), b.parameter(TensorType(F16, (*kernel, 16 // groups, 32)))
        instruction = b.convolution(x, w, window, ConvolutionDimensions.nhwc(2), groups)
        assert "cp.async" in code_of(instruction)
    else:
        x, w = b.parameter(TensorType(F16, (2, 16, 9, 7))), b.parameter(TensorType(F16, (32, 16 // groups, *kernel)))
        instruction = b.convolution(x, w, window, ConvolutionDimensions.nchw(2), groups)
    check_half(instruction, F16)


def test_older_architectures_and_small_products_have_no_tensor_cores() -> None:
    assert "mma" not in code_of(product(64, 64, 64, F16), GpuTarget("sm_75"))
    assert "mma" not in code_of(product(64, 64, 64, F32))
    assert "mma" not in code_of(product(8, 64, 8, F16))


def test_without_the_exchange_of_chunks_banks_conflict() -> None:
    instruction = product(64, 64, 64, F16)
    _, reports = run(instruction, samples(instruction), lambda source: source.replace(" ^ ", " + 0 * "))
    assert sum(v for text, v in reports.conflicts.items() if text.startswith("ldmatrix")) > 0


def test_bank_conflicts_are_counted() -> None:
    lane = np.arange(32)
    warp = np.zeros(32, np.int64)
    assert bank_conflicts(4 * lane, warp, lane, 4) == 0
    assert bank_conflicts(0 * lane, warp, lane, 4) == 0  # one word for all
    assert bank_conflicts(8 * lane, warp, lane, 4) == 1
    assert bank_conflicts(128 * lane, warp, lane, 4) == 31
    assert bank_conflicts(16 * lane, warp, lane, 16) == 0  # four rounds that nobody can avoid
    assert bank_conflicts(64 * lane, warp, lane, 16) == 4 * 3


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_120"])
@pytest.mark.parametrize("enough", [1, 64])
def test_resources(architecture: str, enough: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_core, "ENOUGH_BLOCKS", enough)
    (call,) = lower(product(300, 200, 400, F16), GpuTarget(architecture)).calls
    log = compile_cuda(emit_cuda(call.kernel, "kernel"), architecture).log
    assert all(int(n) == 0 for n in re.findall(r"(\d+) bytes spill", log)), log
    assert max(map(int, re.findall(r"Used (\d+) registers", log))) * call.kernel.threads <= 65536 // 2, log
    assert all(int(n) <= GpuTarget().shared_bytes for n in re.findall(r"(\d+) bytes smem", log)), log
