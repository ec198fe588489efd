"""ONNX's own node tests through the GPU path, on the simulated device: a test of each operator.

All 2024 of them pass but for what the CPU does not pass either, `ROUNDED`, and `TOO_LONG`, as
`python -m tests.gpu.run_conformance` shows in half an hour; one of each operator is run here.
"""

from collections.abc import Iterator

import numpy as np
import pytest

import onnxla.backend
from onnxla.conformance.cases import case_index, operator_of, read_case
from onnxla.conformance.runners import run_onnxla
from onnxla.errors import DeviceError
from onnxla.runtime import cuda_device
from tests.cli.command import onnxla as command
from tests.gpu.simulated_device import SimulatedDevice

SLOW = ("test_operator_conv", "test_sce_", "test_gemm_all", "test_maxpool_3d", "test_attention_4d_with_qk", "test_flex")
REJECTED = ("Compress", "ImageDecoder", "NonMaxSuppression", "NonZero", "Unique")
TOO_LONG = ("test_operator_conv",)
"""More than a minute of simulation: 68 million products in a convolution; `test_simulated_contractions.py` has
smaller ones."""
ROUNDED = ("test_attention_4d_causal_fp16", "test_attention_4d_causal_fp16_expanded")
"""A GPU's kernels round to half precision between each other, which is one place more than these tests allow."""
ALWAYS = ("test_convinteger_without_padding", "test_loop11", "test_if", "test_scan9_sum", "test_sequence_map_identity")


def chosen() -> Iterator[str]:
    seen = set()
    for name, case in sorted(case_index().items()):
        if case.kind != "node" or name.startswith(SLOW) or "_expanded" in name or "dft_inverse" in name:
            continue
        operator = operator_of(read_case(name))
        if name in ALWAYS or (operator not in seen and operator not in REJECTED):
            seen.add(operator)
            yield name


@pytest.fixture(autouse=True)
def simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_device, "CudaDevice", SimulatedDevice)


@pytest.mark.parametrize("name", list(chosen()))
@pytest.mark.filterwarnings("ignore")
def test_case(name: str) -> None:
    with np.errstate(all="ignore"):
        outcome = run_onnxla(read_case(name), "CUDA")
    assert outcome.status == "pass", f"{outcome.kind}: {outcome.message}"


@pytest.mark.parametrize("name", ROUNDED)
def test_half_precision_is_rounded_between_kernels(name: str) -> None:
    outcome = run_onnxla(read_case(name), "CUDA")
    assert (outcome.status, outcome.kind) == ("fail", "mismatch")


def test_the_command_runs_them_on_a_gpu() -> None:
    ended = command("conformance", "test_relu", "--target", "gpu", "--no-reference")
    assert ended.code == 0 and "2 tests: 2 pass" in ended.out
    assert onnxla.backend.supports_device("CUDA")


def test_without_a_gpu_the_command_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise DeviceError("no NVIDIA driver")

    monkeypatch.setattr(cuda_device, "CudaDevice", missing)
    ended = command("conformance", "test_relu", "--target", "gpu")
    assert ended.code != 0 and "no NVIDIA driver" in ended.err
    assert not onnxla.backend.supports_device("CUDA")


def test_no_such_target() -> None:
    ended = command("conformance", "test_relu", "--target", "tpu")
    assert ended.code != 0 and "no target 'tpu'; there are 'cpu' and 'gpu'" in ended.err
