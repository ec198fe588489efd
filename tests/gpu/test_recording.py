"""Launches recorded, revised and replayed, and arrays that are on the device already, on the simulated device."""

import gc
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import onnxla
from onnxla.errors import InputError
from onnxla.runtime.device_arrays import device_view
from onnxla.runtime.device_executable import DeviceExecutable
from onnxla.runtime.dlpack import CPU, exported, make_capsule, read_capsule
from onnxla.runtime.tensors import Array, dtype_of
from tests.gpu.simulated_device import SimulatedDevice
from tests.gpu.test_models import feeds_of, looped, mlp


def executable_of(model: onnx.ModelProto) -> tuple[DeviceExecutable, SimulatedDevice]:
    compiled = onnxla.compile(model, target="gpu", options={"cache_dir": None})
    device = SimulatedDevice()
    return DeviceExecutable(compiled.programs[0], device), device


def expected_of(model: onnx.ModelProto, feeds: dict[str, Array]) -> Array:
    (result,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)
    return np.asarray(result)


class OnDevice:
    """An array of another library, on the simulated device."""

    def __init__(self, device: SimulatedDevice, array: Array, offset: int = 0, stream: int | None = 7) -> None:
        self.device, self.dtype, self.shape = device, array.dtype, array.shape
        self.address = device.allocate(array.nbytes + offset) + offset
        device.memory.write(self.address, array)
        self.__cuda_array_interface__: dict[str, Any] = {
            "data": (self.address, False),
            "shape": array.shape,
            "typestr": array.dtype.str,
            "version": 3,
            "stream": stream,
        }

    def numpy(self) -> Array:
        size = int(np.prod(self.shape)) * self.dtype.itemsize
        return self.device.memory.read(self.address, size).view(self.dtype).reshape(self.shape)


def test_the_second_run_records_and_later_ones_replay() -> None:
    executable, device = executable_of(mlp())
    kernels = None
    for run in range(4):
        feeds = feeds_of(mlp())
        device.launches.clear()
        (result,) = executable.run(list(feeds.values()), 1)
        kernels = kernels or list(device.launches)
        assert device.launches == kernels
        assert device.replays == max(run, 0)
    assert len(kernels or ()) > 1
    del result
    executable.release_memory()
    assert device.forgotten == 1


@pytest.mark.parametrize("make", [mlp, looped])
def test_replayed_results_are_those_of_new_inputs(make: Any) -> None:
    model = make()
    executable, _ = executable_of(model)
    for _ in range(3):
        feeds = feeds_of(model)
        (result,) = executable.run(list(feeds.values()), 1)
        np.testing.assert_allclose(result, expected_of(model, feeds), 1e-4, 1e-5)


@pytest.mark.parametrize("offset", [0, 4])
def test_arrays_on_the_device_are_read_and_written_there(offset: int) -> None:
    """Those that do not lie as kernels want it are copied on the device."""
    model = mlp()
    executable, device = executable_of(model)
    feeds = feeds_of(model)
    x = OnDevice(device, feeds["x"], offset)
    y = OnDevice(device, np.zeros((5, 7), "f4"), offset)
    for _ in range(3):
        results: list[Any] = executable.run([x], 1, out=[y])
        assert results == [y]
        np.testing.assert_allclose(y.numpy(), expected_of(model, feeds), 1e-4, 1e-5)
        device.memory.write(y.address, np.zeros((5, 7), "f4"))
    assert device.awaited == [7, 7, 7]
    assert device.replays == 2
    own = {space for space, _ in executable._session.own}  # type: ignore[union-attr]
    assert ("input" in own) == ("output" in own) == bool(offset)


def test_host_and_device_arrays_mix() -> None:
    model = mlp()
    executable, device = executable_of(model)
    feeds = feeds_of(model)
    (result,) = executable.run([OnDevice(device, feeds["x"])], 1)
    np.testing.assert_allclose(result, expected_of(model, feeds), 1e-4, 1e-5)
    y = OnDevice(device, np.zeros((5, 7), "f4"), stream=None)
    executable.run(list(feeds.values()), 1, out=[y])
    np.testing.assert_array_equal(y.numpy(), result)


def test_a_model_with_open_shapes_takes_them_once_it_is_compiled_for_the_shape() -> None:
    model = mlp()
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    device = SimulatedDevice()
    compiled = onnxla.compile(model, target="gpu", dims={"batch": [3, 5]}, options={"cache_dir": None})
    compiled._specialisations.executables = [DeviceExecutable(p, device) for p in compiled.programs]
    for batch in (3, 5):
        x = np.random.default_rng(batch).standard_normal((batch, 20)).astype("f4")
        y = OnDevice(device, np.zeros((batch, 7), "f4"))
        compiled.run(None, {"x": OnDevice(device, x)}, out=[y])
        np.testing.assert_allclose(y.numpy(), expected_of(model, {"x": x}), 1e-4, 1e-5)
    with pytest.raises(InputError, match="x: an array on a GPU; only code for a GPU takes it"):
        compiled.run(None, {"x": OnDevice(device, np.zeros((4, 20), "f4"))})


def test_arrays_at_other_places_revise_the_launches_that_read_and_write_them() -> None:
    model = mlp()
    executable, device = executable_of(model)
    for run in range(5):
        feeds = feeds_of(model)
        x, y = OnDevice(device, feeds["x"]), OnDevice(device, np.zeros((5, 7), "f4"))
        executable.run([x], 1, out=[y])
        np.testing.assert_allclose(y.numpy(), expected_of(model, feeds), 1e-4, 1e-5)
        assert device.replays == run
    launches = len(set(device.launches))
    assert 0 < device.revised <= 3 * 2 < 3 * launches  # the first and the last kernel, for runs that replay old ones
    revised = device.revised
    executable.run([x], 1, out=[y])
    assert device.revised == revised and device.replays == 5  # nothing has moved


def test_what_does_not_fit_is_named_before_anything_runs() -> None:
    executable, device = executable_of(mlp())
    x = OnDevice(device, np.zeros((5, 20), "f4"))
    with pytest.raises(InputError, match=r"x: dtype float64, the model takes float32\nx: shape \[5, 2\]"):
        executable.run([OnDevice(device, np.zeros((5, 2)))], 1)
    with pytest.raises(InputError, match=r"y: out has shape \[7, 5\], the model gives \[5, 7\]"):
        executable.run([x], 1, out=[OnDevice(device, np.zeros((7, 5), "f4"))])
    with pytest.raises(InputError, match="overlap each other, or inputs"):
        y = OnDevice(device, np.zeros((5, 7), "f4"))
        y.__cuda_array_interface__["data"] = (x.address + 64, False)
        executable.run([x], 1, out=[y])
    with pytest.raises(InputError, match="must be dense"):
        x.__cuda_array_interface__["strides"] = (4, 20)
        executable.run([x], 1)
    with pytest.raises(InputError, match="out is read-only"):
        y = OnDevice(device, np.zeros((5, 7), "f4"))
        y.__cuda_array_interface__["data"] = (y.address, True)
        executable.run([np.zeros((5, 20), "f4")], 1, out=[y])
    assert not device.launches


@pytest.mark.parametrize("dtype", ["f4", "f2", "i8", "u1", "c8", "?"])
def test_dlpack_capsules_are_read(dtype: str) -> None:
    array = np.zeros((3, 4, 5), dtype)[1:]
    found = read_capsule(array.__dlpack__(), "x")
    assert (found.address, found.shape, found.dtype) == (array.ctypes.data, array.shape, array.dtype)
    with pytest.raises(InputError, match="x: an array on a GPU must be dense"):
        read_capsule(array[:, ::2].__dlpack__(), "x")


class Shown:
    """An array of this machine, shown by our capsules."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU, 0

    def __dlpack__(self, **_: Any) -> Any:
        return make_capsule(self.array.ctypes.data, self.array.shape, self.array.dtype, CPU, 0, self)


@pytest.mark.parametrize("shape", [(), (0, 3), (5,), (2, 3, 4)])
@pytest.mark.parametrize("dtype", ["f4", "f2", "i8", "u1", "c16", "?"])
def test_our_capsules_are_read_by_numpy_and_given_back(dtype: str, shape: tuple[int, ...]) -> None:
    gc.collect()
    before = exported()
    array = np.asarray(np.random.default_rng(0).standard_normal(shape) * 9, dtype)
    taken = np.from_dlpack(Shown(array))
    assert taken.dtype == array.dtype and taken.shape == array.shape and exported() == before + 1
    np.testing.assert_array_equal(taken, array)
    del taken
    unused = Shown(array).__dlpack__()
    assert exported() == before + 1
    del unused
    assert exported() == before


def test_bfloat16_has_a_name_in_dlpack_and_8_bit_floats_have_none() -> None:
    array = np.zeros(3, dtype_of("bf16"))
    assert read_capsule(Shown(array).__dlpack__(), "x").dtype == array.dtype
    with pytest.raises(InputError, match="no name for float8_e5m2"):
        Shown(np.zeros(3, dtype_of("f8e5m2"))).__dlpack__()


def test_arrays_of_this_machine_are_no_device_arrays() -> None:
    assert device_view(np.zeros(3), "x") is None
    assert device_view([1.0], "x") is None

    class Hosted:
        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

        def __dlpack__(self) -> object:
            raise AssertionError

    assert device_view(Hosted(), "x") is None
