"""`CudaDevice` on a pretended driver: whole models, streams, graphs, staging, several GPUs, errors and freeing."""

import ctypes
import gc
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver as real
from onnx import helper

import onnxla
from onnxla.errors import DeviceError, InputError, ResourceLimitError
from onnxla.runtime import cuda_driver, cuda_staging
from onnxla.runtime.cuda_device import CudaDevice
from onnxla.runtime.device import DeviceCode
from onnxla.runtime.device_executable import DeviceExecutable
from onnxla.runtime.model import CompiledModel
from onnxla.runtime.tensors import Array
from tests.gpu.pretended_driver import MINE, Misuse, PretendedDriver
from tests.gpu.test_models import feeds_of, looped, mlp, model_of, small_cnn
from tests.gpu.test_recording import expected_of

OPTIONS = {"cache_dir": None}
MLP = mlp()


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[PretendedDriver]:
    pretended = PretendedDriver(gpus=2)
    monkeypatch.setattr(cuda_driver, "_bindings", lambda: pretended)
    yield pretended
    assert not pretended._stack(), "a context was left current"


@pytest.fixture(scope="module")
def model() -> CompiledModel:
    return onnxla.compile(MLP, target="gpu", options=OPTIONS)


def fresh(model: CompiledModel, device: str = "cuda") -> CompiledModel:
    """The same code, new on a device."""
    return CompiledModel(model._signature, model.programs, device=device)


class Theirs:
    """An array of another library on a GPU, which `MINE` fills when somebody waits for that."""

    def __init__(self, driver: PretendedDriver, array: Array, gpu: int = 0, stream: int = MINE) -> None:
        self.driver, self.dtype, self.shape, self.bytes = driver, array.dtype, array.shape, array.nbytes
        driver.cuCtxPushCurrent(real.CUcontext(100 + gpu))
        self.address = int(driver.cuMemAlloc(array.nbytes)[1])
        driver.cuMemcpyHtoDAsync(self.address, array.ctypes.data, array.nbytes, real.CUstream(MINE))
        driver.cuCtxPopCurrent()
        self.__cuda_array_interface__: dict[str, Any] = {
            "data": (self.address, False),
            "shape": array.shape,
            "typestr": array.dtype.str,
            "version": 3,
            "stream": stream,
        }

    def numpy(self) -> Array:
        """What is there when all of `MINE` is done."""
        self.driver._drain(self.driver._objects[MINE], self.driver._asked)
        return self.driver.memory.read(self.address, self.bytes).view(self.dtype).reshape(self.shape)


class Stream:
    """A stream as PyTorch and CuPy have it."""

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, MINE


@pytest.mark.parametrize("make", [mlp, small_cnn, looped])
@pytest.mark.parametrize("eager", [False, True])
def test_models_run_as_often_as_wanted(make: Any, eager: bool, driver: PretendedDriver) -> None:
    driver.eager = eager
    made = make()
    model = onnxla.compile(made, target="gpu", options=OPTIONS)
    for _ in range(3):
        feeds = feeds_of(made)
        (result,) = model.run(None, feeds)
        np.testing.assert_allclose(result, expected_of(made, feeds), 1e-4, 1e-5)
    assert driver.counts["cuGraphLaunch"] >= 2 and driver.counts["cuGraphInstantiate"] >= 1


def test_the_first_run_launches_and_the_second_records(model: CompiledModel, driver: PretendedDriver) -> None:
    again, feeds = fresh(model), feeds_of(MLP)
    launches = len(model.programs[0].steps)
    for asked in (launches, launches, 0):
        driver.calls.clear()
        again.run(None, feeds)
        assert driver.calls.count("cuLaunchKernel") == asked
    assert driver.calls.count("cuGraphLaunch") == 1
    assert driver.counts["cuGraphInstantiate"] == 1


def test_arrays_on_the_gpu_are_read_and_written_where_they_are(model: CompiledModel, driver: PretendedDriver) -> None:
    """New places in every run; the run on our stream waits for theirs, theirs for nothing until we are done."""
    again = fresh(model)
    for _ in range(4):
        feeds = feeds_of(MLP)
        x, y = Theirs(driver, feeds["x"]), Theirs(driver, np.zeros((5, 7), "f4"))
        driver.calls.clear()
        assert again.run(None, {"x": x}, out=[y]) == [y]
        np.testing.assert_allclose(y.numpy(), expected_of(MLP, feeds), 1e-4, 1e-5)
        assert "cuMemcpyDtoDAsync" not in driver.calls and "cuMemcpyDtoHAsync" not in driver.calls
    assert driver.counts["cuGraphLaunch"] == 3
    assert 0 < driver.counts["cuGraphExecKernelNodeSetParams"] <= 4


def test_a_run_on_the_callers_stream_comes_after_what_is_on_it(model: CompiledModel, driver: PretendedDriver) -> None:
    again = fresh(model)
    for stream in (Stream(), MINE, Stream()):
        feeds = feeds_of(MLP)
        x, y = Theirs(driver, feeds["x"]), Theirs(driver, np.zeros((5, 7), "f4"))
        waits = driver.counts["cuEventSynchronize"]
        pending = again.run_async(None, {"x": x}, out=[y], stream=stream)
        assert not pending.done() and driver.counts["cuEventSynchronize"] == waits
        assert pending.outputs == [y]
        np.testing.assert_allclose(y.numpy(), expected_of(MLP, feeds), 1e-4, 1e-5)
        assert pending.done() and pending.wait() == [y]


def test_results_on_the_gpu_feed_the_next_model_and_are_freed(model: CompiledModel, driver: PretendedDriver) -> None:
    double = onnxla.compile(
        model_of([helper.make_node("Add", ["y", "y"], ["z"])], {"y": (5, 7)}, {}, "z"), target="gpu", options=OPTIONS
    )
    again, feeds = fresh(model), feeds_of(MLP)
    first = again.run_async(None, feeds)
    (z,) = double.run(None, {"y": first.outputs[0]})
    np.testing.assert_allclose(z, 2 * expected_of(MLP, feeds), 1e-4, 1e-5)
    held = len(driver._holder)
    del first
    double.release_memory()
    gc.collect()
    assert len(driver._holder) < held
    again.release_memory()
    del again, double
    gc.collect()
    assert not driver._holder


def test_what_another_library_takes_waits_for_the_run(model: CompiledModel, driver: PretendedDriver) -> None:
    (result,) = fresh(model).run_async(["y"], feeds_of(MLP)).outputs
    interface = result.__cuda_array_interface__
    assert interface["data"] == (result.address, False) and interface["stream"] == result._stream
    driver.calls.clear()
    capsule = result.__dlpack__(stream=MINE)
    assert driver.calls.count("cuStreamWaitEvent") == 1
    assert result.__dlpack_device__() == (2, 0) and capsule is not None
    with pytest.raises(BufferError, match="without a copy"):
        result.__dlpack__(dl_device=(1, 0))
    with pytest.raises(ValueError, match="without a copy"):
        result.__array__(copy=False)


def test_long_copies_go_in_pieces_through_bounded_memory(
    driver: PretendedDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onnxla.runtime.cuda_device.LARGEST", 8192)
    monkeypatch.setattr(cuda_staging, "BOUND", 5 * 8192)
    device = CudaDevice()
    rng = np.random.default_rng(0)
    with device.active():
        address = device.allocate(1 << 20)
        for size in (1, 8192, 8193, 100_000, 300_000):
            sent, received = rng.integers(0, 256, size, np.uint8), np.zeros(size, np.uint8)
            device.upload(address, sent, device.stream)
            kept = sent.copy()
            sent[...] = 0
            finish = device.download(address, received, device.stream)
            device.upload(address, np.zeros(size, np.uint8), device.stream)
            device.synchronize(device.mark(device.stream))
            finish()
            np.testing.assert_array_equal(received, kept)
            assert sum(map(len, driver._pinned.values())) <= 6 * 8192  # one more than the bound
        device.trim()
        assert not driver._pinned


def test_each_gpu_has_its_own_context_code_and_weights(model: CompiledModel, driver: PretendedDriver) -> None:
    feeds = feeds_of(MLP)
    models = [fresh(model, device) for device in ("cuda:0", "cuda:1")]
    for _ in range(3):
        for one in models:
            np.testing.assert_allclose(one.run(None, feeds)[0], expected_of(MLP, feeds), 1e-4, 1e-5)
    assert [one.device for one in models] == ["cuda:0", "cuda:1"]
    assert {gpu for _, gpu in driver._holder.values()} == {0, 1}
    x = Theirs(driver, feeds["x"], gpu=0)
    with pytest.raises(InputError, match=r"is on cuda:0, and the model on cuda:1; copy it there"):
        models[1].run(None, {"x": x})


def test_a_gpu_that_is_not_there_is_named_with_those_that_are(model: CompiledModel, driver: PretendedDriver) -> None:
    text = r"no GPU cuda:2: the CUDA driver sees cuda:0 Pretended 0 \(sm_120, 8192 MiB\); cuda:1 Pretended 1"
    with pytest.raises(DeviceError, match=text):
        fresh(model, "cuda:2").run(None, feeds_of(MLP))
    with pytest.raises(InputError, match="device='cuda:x': write cpu, cuda, or cuda:1"):
        fresh(model, "cuda:x")
    with pytest.raises(DeviceError, match="the model has no code for a CPU"):
        fresh(model, "cpu")


@pytest.mark.parametrize(
    ("stream", "text"),
    [
        (True, "is no stream"),
        (-1, "is no stream"),
        ("cuda", "takes a CUDA stream: a number, or an object with __cuda_stream__"),
        (12345, "stream 0x3039 is none of cuda:0"),
    ],
)
def test_what_is_no_stream_is_refused(stream: Any, text: str, model: CompiledModel, driver: PretendedDriver) -> None:
    with pytest.raises(InputError, match=text):
        fresh(model).run_async(None, feeds_of(MLP), stream=stream)


def test_a_stream_that_is_captured_is_refused(model: CompiledModel, driver: PretendedDriver) -> None:
    again = fresh(model)
    again.run(None, feeds_of(MLP))
    driver._objects[MINE].captured = []
    with pytest.raises(InputError, match="is being captured"):
        again.run_async(None, feeds_of(MLP), stream=MINE)
    driver._objects[MINE].captured = None


def test_a_launch_that_fails_names_its_kernel_and_node(model: CompiledModel, driver: PretendedDriver) -> None:
    driver.fail["cuLaunchKernel"] = real.CUresult.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
    with pytest.raises(DeviceError, match=r"kernel onnxla_0\w* \(.*Gemm.*\) failed: .*OUT_OF_RESOURCES \(what"):
        fresh(model).run(None, feeds_of(MLP))


def test_a_failure_while_recording_leaves_the_stream_usable(model: CompiledModel, driver: PretendedDriver) -> None:
    again, feeds = fresh(model), feeds_of(MLP)
    again.run(None, feeds)
    driver.fail["cuLaunchKernel"] = real.CUresult.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
    with pytest.raises(DeviceError, match="Gemm"):
        again.run(None, feeds)
    for _ in range(2):
        np.testing.assert_allclose(again.run(None, feeds)[0], expected_of(MLP, feeds), 1e-4, 1e-5)


def test_a_kernel_that_fails_afterwards(
    model: CompiledModel, driver: PretendedDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels = [step.kernel for step in model.programs[0].steps]
    driver.failing_kernel = kernels[1]
    with pytest.raises(DeviceError, match=rf"ILLEGAL_ADDRESS.*this run launched kernel {kernels[0]} \(.*LAUNCH_BLOCK"):
        fresh(model).run(None, feeds_of(MLP))
    driver.broken = None
    monkeypatch.setenv("ONNXLA_LAUNCH_BLOCKING", "1")
    with pytest.raises(DeviceError, match=rf"^kernel {kernels[1]} \(.*\) failed: .*ILLEGAL_ADDRESS"):
        fresh(model).run(None, feeds_of(MLP))
    driver.failing_kernel, driver.broken = "", None


def test_without_memory_the_error_says_how_much_is_left(model: CompiledModel, driver: PretendedDriver) -> None:
    driver.fail["cuMemAlloc"] = real.CUresult.CUDA_ERROR_OUT_OF_MEMORY
    with pytest.raises(ResourceLimitError, match=r"cuda:0 has no \d+ bytes left: 1000 of"):
        fresh(model).run(None, feeds_of(MLP))


CODE = DeviceCode((), "ptx", {f"sm_{n}": b"\x7fELF" + n.encode() for n in ("80", "86", "90a", "90")})


@pytest.mark.parametrize(
    ("capability", "image"),
    [((8, 0), b"\x7fELF80"), ((8, 9), b"\x7fELF86"), ((9, 0), b"\x7fELF90"), ((12, 0), b"ptx\0"), ((7, 5), b"ptx\0")],
)
def test_machine_code_of_the_generation_is_preferred(
    capability: tuple[int, int], image: bytes, driver: PretendedDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[bytes] = []

    def load(data: bytes) -> Any:
        loaded.append(data)
        return real.CUmodule(8)

    monkeypatch.setattr(driver, "_cuModuleLoadData", load, raising=False)
    driver.capability = capability
    device = CudaDevice()
    with device.active():
        device.load(CODE)
    assert loaded == [image]


def test_code_that_fits_no_gpu_says_what_was_found_and_what_to_do(driver: PretendedDriver) -> None:
    driver.capability, driver.version = (7, 5), 12040
    device = CudaDevice()
    driver.fail["cuModuleLoadData"] = real.CUresult.CUDA_ERROR_NO_BINARY_FOR_GPU
    text = (
        r"cuda:0 Pretended 0 is sm_75, and the code is for sm_80, sm_86.*tried PTX: CUDA_ERROR_NO_BINARY_FOR_GPU.*"
        r"CUDA 12\.4, which is older than the PTX\. .*--arch sm_75\), or update the driver"
    )
    with device.active(), pytest.raises(DeviceError, match=text):
        device.load(CODE)


def test_the_pretended_driver_holds_calls_against_the_bindings(driver: PretendedDriver) -> None:
    with pytest.raises(TypeError):
        driver.cuMemAlloc(1, 2)
    with pytest.raises(TypeError):
        driver.cuMemAlloc("much")
    with pytest.raises(Misuse, match="cuMemAllocate"):
        driver.cuMemAllocate(1)
    with pytest.raises(Misuse, match="no context is current"):
        driver.cuMemAlloc(1)
    device = CudaDevice()
    with device.active(), pytest.raises(Misuse, match="captured"):
        device.record(lambda stream: print(device.allocate(1)))
    parameters = ((1, 2), (ctypes.c_void_p,))
    with device.active(), pytest.raises(TypeError if driver._verified else IndexError):
        driver.cuLaunchKernel(real.CUfunction(8), 1, 1, 1, 32, 1, 1, 0, real.CUstream(8), parameters, 0)


def test_a_call_amid_the_search_for_libcuda(driver: PretendedDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a finalizer makes it, which runs whenever memory is collected: the bindings' lock would never be given up."""
    searches = []

    class DynamicLibNotFoundError(RuntimeError):
        pass

    def search() -> None:
        searches.append(PretendedDriver().cuDriverGetVersion())
        raise DynamicLibNotFoundError

    search.__doc__ = real.cuDriverGetVersion.__doc__
    monkeypatch.setattr(real, "cuDriverGetVersion", search)
    monkeypatch.setattr(driver, "_verified", True)
    assert driver.cuDriverGetVersion() == driver.cuDriverGetVersion() == searches[0]
    assert len(searches) == 2


def test_a_call_as_memory_is_collected(driver: PretendedDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be collected amid a search that the bindings make for anybody: no call searches then."""
    searches = []

    def search() -> None:
        searches.append(1)

    class Cycle:
        pass

    search.__doc__ = real.cuDriverGetVersion.__doc__
    monkeypatch.setattr(real, "cuDriverGetVersion", search)
    monkeypatch.setattr(driver, "_verified", True)
    answers: list[object] = []
    cycle = Cycle()
    cycle.itself = cycle  # type: ignore[attr-defined]
    weakref.finalize(cycle, lambda: answers.append(driver.cuDriverGetVersion()))
    del cycle
    gc.collect()
    assert len(answers) == 1 and not searches


def test_what_is_freed_while_a_graph_is_recorded_goes_afterwards(driver: PretendedDriver) -> None:
    device = CudaDevice()
    with device.active():
        address = device.allocate(64)
        device.record(lambda stream: device.free(address, 64))
        assert address not in driver._holder


def test_an_executable_that_goes_gives_everything_back(model: CompiledModel, driver: PretendedDriver) -> None:
    executable = DeviceExecutable(model.programs[0])
    for _ in range(2):
        executable.run([feeds_of(MLP)["x"]], 1)
    assert driver._holder and driver._pinned and {"_Event", "_Stream"} <= driver.kinds()
    del executable
    gc.collect()
    assert not driver._holder and not driver._pinned and driver.kinds() == {"_Stream"}
    assert len(list(driver._all_streams())) == 2  # those that are not ours
