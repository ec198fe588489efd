"""ONNX's own node tests through the GPU path, on the simulated device and on a GPU where there is one.

All of them pass but for what the CPU does not pass either, and `TOO_LONG`, as `python -m tests.gpu.run_conformance`
shows in half an hour; one of each operator is run here.
"""

from collections.abc import Iterator

import numpy as np
import onnxruntime
import pytest

import onnxla.backend
from onnxla.conformance.cases import case_index, operator_of, read_case
from onnxla.conformance.runners import run_onnxla
from onnxla.errors import DeviceError
from onnxla.runtime import cuda_device
from tests.cli.command import onnxla as command
from tests.gpu.devices import BOTH, device_named
from tests.gpu.simulated_device import SimulatedDevice

SLOW = ("test_operator_conv", "test_sce_", "test_gemm_all", "test_maxpool_3d", "test_attention_4d_with_qk", "test_flex")
REJECTED = ("Compress", "ImageDecoder", "NonMaxSuppression", "NonZero", "Unique")
TOO_LONG = {"test_operator_conv": "tests/gpu/test_conformance.py, test_a_smaller_twin"}
"""More than a minute of simulation (68 million products in a convolution), and where a smaller one is."""
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


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_device, "CudaDevice", SimulatedDevice)


@pytest.fixture(params=BOTH)
def gpu(request: pytest.FixtureRequest) -> None:
    """What runs as "CUDA"."""
    if request.param == "simulated":
        request.getfixturevalue("simulated")
    else:
        device_named(request.param)


@pytest.mark.parametrize("name", list(chosen()))
@pytest.mark.filterwarnings("ignore")
def test_case(name: str, gpu: None) -> None:
    with np.errstate(all="ignore"):
        outcome = run_onnxla(read_case(name), "CUDA")
    assert outcome.status == "pass", f"{outcome.kind}: {outcome.message}"


def test_a_smaller_twin(gpu: None) -> None:
    """The model of `test_operator_conv` with one image of 9 by 7 instead of 20 of 50 by 40."""
    model = read_case("test_operator_conv").model
    image, result = model.graph.input[0], model.graph.output[0]
    x = np.random.default_rng(0).standard_normal((1, 16, 9, 7), "f4")
    for value, shape in ((image, x.shape), (result, (1, 13, 7, 5))):
        for dimension, size in zip(value.type.tensor_type.shape.dim, shape, strict=True):
            dimension.dim_value = size
    (ours,) = onnxla.backend.prepare(model, "CUDA").run([x])
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {image.name: x})
    np.testing.assert_allclose(ours, expected, 1e-4, 1e-5)


def test_the_command_runs_them_on_a_gpu(gpu: None) -> None:
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
