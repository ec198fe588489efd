"""The runtime on a GPU where there is one, and on the pretended driver here: what callers see of it, and no more.

What the driver is asked for is in `test_cuda_device.py`.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

import onnxla
from onnxla.errors import DeviceError
from onnxla.runtime import cuda_driver
from onnxla.runtime.cuda_device import CudaDevice
from onnxla.runtime.device_results import DeviceArray
from onnxla.runtime.model import CompiledModel
from tests.gpu.devices import device_named
from tests.gpu.pretended_driver import PretendedDriver
from tests.gpu.test_models import feeds_of, looped, mlp, model_of, small_cnn, weight
from tests.gpu.test_recording import expected_of

OPTIONS = {"cache_dir": None}
MLP = mlp()
NEEDS_GPU: Any = pytest.param("cuda", marks=pytest.mark.needs_gpu)


@pytest.fixture(params=["pretended", NEEDS_GPU])
def gpus(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """How many there are."""
    if request.param == "pretended":
        pretended = PretendedDriver(gpus=2)
        monkeypatch.setattr(cuda_driver, "_bindings", lambda: pretended)
    else:
        device_named("cuda")
    yield len(cuda_driver.gpus(cuda_driver.cuda_driver()))


@pytest.fixture(scope="module")
def code() -> CompiledModel:
    return onnxla.compile(MLP, target="gpu", options=OPTIONS)


def fresh(code: CompiledModel, device: str = "cuda") -> CompiledModel:
    """The same code, new on a device."""
    return CompiledModel(code._signature, code.programs, device=device)


def another_stream() -> int:
    """One that the device does not know."""
    device = CudaDevice()
    with device.active():
        return int(cuda_driver.checked(device._driver, device._driver.cuStreamCreate(1)))


@pytest.mark.parametrize("make", [mlp, small_cnn, looped])
def test_runs_after_the_first_replay_with_new_inputs(make: Any, gpus: int) -> None:
    made = make()
    model = onnxla.compile(made, target="gpu", options=OPTIONS)
    for _ in range(4):
        feeds = feeds_of(made)
        (result,) = model.run(None, feeds)
        np.testing.assert_allclose(result, expected_of(made, feeds), 1e-4, 1e-5)
        assert model.run(None, feeds)[0].tobytes() == result.tobytes()


def test_runs_on_two_streams_share_one_arena_in_turns(code: CompiledModel, gpus: int) -> None:
    model, other = fresh(code), another_stream()
    feeds = [feeds_of(MLP) for _ in range(4)]
    pending = [model.run_async(None, f, stream=s) for f, s in zip(feeds, (None, other, None, other), strict=True)]
    for given, run in reversed(list(zip(feeds, pending, strict=True))):
        (result,) = run.wait()
        assert isinstance(result, DeviceArray) and result.device == "cuda:0"
        np.testing.assert_allclose(result.numpy(), expected_of(MLP, given), 1e-4, 1e-5)
        np.testing.assert_array_equal(np.asarray(result), result.numpy())


def test_inputs_may_change_as_soon_as_the_run_was_asked_for(code: CompiledModel, gpus: int) -> None:
    """They are in pinned memory by then, and no buffer is used again before its copy is done."""
    model = fresh(code)
    x = np.empty((5, 20), "f4")
    y = [np.empty((5, 7), "f4") for _ in range(4)]
    given, pending = [], []
    for k in range(4):
        x[...] = np.random.default_rng(k).standard_normal(x.shape)
        given.append(x.copy())
        pending.append(model.run_async(None, {"x": x}, out={"y": y[k]}))
        x[...] = np.nan
    for k, run in enumerate(pending):
        assert run.wait()[0] is y[k]
        np.testing.assert_allclose(y[k], expected_of(MLP, {"x": given[k]}), 1e-4, 1e-5)


def test_results_on_the_gpu_are_read_and_written_where_they_are(code: CompiledModel, gpus: int) -> None:
    model, feeds = fresh(code), feeds_of(MLP)
    double = onnxla.compile(
        model_of([helper.make_node("Add", ["y", "y"], ["z"])], {"y": (5, 7)}, {}, "z"), target="gpu", options=OPTIONS
    )
    (place,) = model.run_async(None, feeds).outputs
    for _ in range(3):
        feeds = feeds_of(MLP)
        pending = model.run_async(None, feeds, out=[place])
        assert pending.outputs == [place]
        (z,) = double.run(None, {"y": place})
        np.testing.assert_allclose(z, 2 * expected_of(MLP, feeds), 1e-4, 1e-5)


def test_many_threads_run_one_model(code: CompiledModel, gpus: int) -> None:
    model, driver = fresh(code), cuda_driver.cuda_driver()
    if isinstance(driver, PretendedDriver):
        driver.eager = True  # its streams have no locks
    feeds = [feeds_of(MLP) for _ in range(12)]
    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(lambda f: model.run(None, f)[0], feeds))
    for given, result in zip(feeds, results, strict=True):
        np.testing.assert_allclose(result, expected_of(MLP, given), 1e-4, 1e-5)


def test_every_gpu_that_there_is(code: CompiledModel, gpus: int) -> None:
    feeds = feeds_of(MLP)
    for number in range(gpus):
        model = fresh(code, f"cuda:{number}")
        for _ in range(2):
            np.testing.assert_allclose(model.run(None, feeds)[0], expected_of(MLP, feeds), 1e-4, 1e-5)
        assert model.device == f"cuda:{number}"
    with pytest.raises(DeviceError, match=f"no GPU cuda:{gpus}: the CUDA driver sees cuda:0 "):
        fresh(code, f"cuda:{gpus}").run(None, feeds)


def test_a_file_for_both_kinds_of_machine_runs_on_the_gpu(tmp_path: Path, gpus: int) -> None:
    feeds, path = feeds_of(MLP), tmp_path / "model.onnxla"
    onnxla.compile(MLP, target="cpu,gpu", options=OPTIONS).save(path)
    for device, chosen in ((None, "cuda:0"), ("cpu", "cpu"), ("cuda", "cuda:0")):
        model = onnxla.load_compiled(path, device=device)
        assert model.device == chosen
        np.testing.assert_allclose(model.run(None, feeds)[0], expected_of(MLP, feeds), 1e-4, 1e-5)


@pytest.mark.needs_gpu
@pytest.mark.parametrize("library", ["", "cublaslt"])
def test_a_large_product_by_us_and_by_cublaslt_where_it_is(library: str) -> None:
    device_named("cuda")
    if isinstance(cuda_driver.cuda_driver(), PretendedDriver):
        pytest.skip("too large to simulate")
    product = model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": (1024, 1024)}, {"w": weight(1024, 1024)})
    feeds = feeds_of(product)
    model = onnxla.compile(product, target="gpu", options=OPTIONS | {"gpu_library": library})
    for _ in range(3):
        np.testing.assert_allclose(model.run(None, feeds)[0], expected_of(product, feeds), 1e-3, 1e-4)


@pytest.mark.needs_gpu
def test_tensors_of_pytorch_on_its_stream(code: CompiledModel) -> None:
    device_named("cuda")
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no GPU in PyTorch")
    model = fresh(code)
    for stream in (torch.cuda.current_stream(), torch.cuda.Stream()):
        with torch.cuda.stream(stream):
            for _ in range(3):
                x = 2 * torch.randn(5, 20, device="cuda")
                y = torch.empty(5, 7, device="cuda")
                pending = model.run_async(None, {"x": x}, out=[y], stream=stream)
                (other,) = model.run_async(None, {"x": x}, stream=stream).outputs
                same = torch.equal(torch.from_dlpack(other), y)
                expected = expected_of(MLP, {"x": x.cpu().numpy()})
                assert pending.wait() == [y] and same
                np.testing.assert_allclose(y.cpu().numpy(), expected, 1e-4, 1e-5)
