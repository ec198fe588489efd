"""Attention of f32 on the ordinary cores, in the simulator: head sizes, tails, masks, rows without a key."""

import numpy as np
import pytest

from onnxla.codegen.gpu.compile_nvrtc import compile_cuda
from onnxla.codegen.gpu.emit_cuda import emit_cuda
from onnxla.codegen.gpu.schedule import lower
from onnxla.codegen.gpu.target import GpuTarget
from onnxla.hlo.types import F32
from tests.gpu.kernel_classes import attention, fused
from tests.gpu.running import check, reference, run, samples
from tests.gpu.test_attention import check_attention
from tests.gpu.test_resources import registers_and_spills


@pytest.mark.parametrize(
    ("heads", "queries", "keys", "size", "features"),
    [(1, 33, 40, 24, 20), (3, 5, 7, 5, 3), (1, 3, 33, 20, 100), (1, 1, 1, 1, 1)],
)
def test_awkward_sizes(heads: int, queries: int, keys: int, size: int, features: int) -> None:
    check(fused(attention(heads, queries, keys, size, features, F32)), rtol=2e-5, atol=2e-5)


def test_usual_sizes_meet_no_bank_twice() -> None:
    instruction = fused(attention(2, 32, 64, 32, 32, F32))
    check_attention(instruction, samples(instruction), 2e-5)


def test_masks_that_leave_a_query_without_keys_for_a_round_or_for_good() -> None:
    instruction = fused(attention(1, 8, 130, 8, 8, F32, masked=True))
    arrays = samples(instruction)
    (mask,) = (a for a in arrays if a.shape == (8, 130))
    mask[1, :66] = -np.inf
    mask[2, :129] = -np.inf
    mask[3] = -np.inf
    mask[4, 5] = np.nan
    (result,), reports = run(instruction, arrays)
    assert not reports
    assert [k for k in range(8) if np.isnan(result[0, k]).all()] == [3, 4]
    (expected,) = reference(instruction, arrays)
    np.testing.assert_allclose(result, expected, 2e-5, 2e-5)


@pytest.mark.parametrize("architecture", ["sm_75", "sm_90"])
@pytest.mark.parametrize("size", [64, 128])
def test_resources(size: int, architecture: str) -> None:
    (call,) = lower(fused(attention(8, 128, 256, size, size, F32)), GpuTarget(architecture)).calls
    registers, spilled, shared = registers_and_spills(compile_cuda(emit_cuda(call.kernel, "kernel"), architecture).log)
    assert not spilled and registers <= 168 and shared <= GpuTarget().shared_bytes
