"""OrtValue and IOBinding, beside onnxruntime's on the CPU, and on a pretended GPU."""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto

import onnxla.compat as ort
from onnxla.compat import InferenceSession, OrtDevice, OrtValue, device_memory, providers
from onnxla.compat.errors import InvalidArgument
from onnxla.runtime import cuda_driver
from tests.compat.small_models import defaults, numbers
from tests.gpu.pretended_driver import PretendedDriver
from tests.gpu.test_models import feeds_of, mlp
from tests.gpu.test_recording import expected_of


@pytest.mark.parametrize("make", [ort, onnxruntime], ids=["onnxla", "onnxruntime"])
def test_a_tensor_shares_the_arrays_memory(make: Any) -> None:
    array = np.arange(6, dtype=np.int64).reshape(2, 3)
    value = make.OrtValue.ortvalue_from_numpy(array)
    assert (value.shape(), value.data_type(), value.element_type()) == ([2, 3], "tensor(int64)", 7)
    assert (value.device_name(), value.tensor_size_in_bytes(), value.data_ptr()) == ("cpu", 48, array.ctypes.data)
    assert value.is_tensor() and value.has_value() and not value.is_sparse_tensor()
    array[0, 0] = 9
    assert value.numpy()[0, 0] == 9 and np.asarray(value)[0, 0] == 9 and np.from_dlpack(value)[0, 0] == 9
    value.update_inplace(np.zeros((2, 3), np.int64))
    assert not array.any()
    with pytest.raises(RuntimeError, match="size"):
        value.update_inplace(np.zeros(5, np.int64))
    turned = make.OrtValue.ortvalue_from_numpy(array.T)
    assert turned.shape() == [3, 2] and turned.data_ptr() != array.ctypes.data
    with pytest.raises(RuntimeError):
        make.OrtValue.ortvalue_from_numpy([1, 2])
    with pytest.raises(Exception, match="Unsupported device type: abacus"):
        make.OrtValue.ortvalue_from_numpy(array, "abacus", 0)
    for name, kind in (("cpu", 0), ("cuda", 1)):
        device = make.OrtDevice.make(name, 1)
        assert (device.device_type(), device.device_id()) == (kind, 1)


def test_types_that_numpy_lacks() -> None:
    bits = np.full(3, 0x3F80, np.uint16)
    value = OrtValue.ortvalue_from_numpy_with_onnx_type(bits, TensorProto.BFLOAT16)
    assert value.data_type() == "tensor(bfloat16)" and value.numpy().tolist() == [1, 1, 1]
    assert OrtValue.ortvalue_from_shape_and_type([2], TensorProto.BFLOAT16).numpy().dtype == ml_dtypes.bfloat16
    with pytest.raises(InvalidArgument, match="an element of uint16 has 2 bytes, of float32 4"):
        OrtValue.ortvalue_from_numpy_with_onnx_type(bits, TensorProto.FLOAT)
    with pytest.raises(InvalidArgument, match="no element type"):
        OrtValue.ortvalue_from_shape_and_type([2], 99)


def test_what_is_no_tensor_says_so() -> None:
    sequence = OrtValue([numbers(2)])
    assert sequence.is_tensor_sequence() and sequence.data_type() == "seq(tensor(float))" and not sequence.is_tensor()
    with pytest.raises(RuntimeError, match=r"seq\(tensor\(float\)\) is no tensor"):
        sequence.numpy()
    assert OrtValue([{"a": 1.0}]).data_type() == "seq(map(string,tensor(float)))"
    assert not OrtValue(None).has_value()


@pytest.mark.parametrize("make", [ort, onnxruntime], ids=["onnxla", "onnxruntime"])
def test_bound_arrays_are_read_and_written_in_place(make: Any) -> None:
    data, _ = defaults()
    session = make.InferenceSession(data)
    x, out = np.ones((2, 3), np.float32), np.zeros((2, 2), np.float32)
    expected = session.run(None, {"x": x})[0]
    binding = session.io_binding()
    binding.bind_cpu_input("x", x)
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    (copied,) = binding.copy_outputs_to_cpu()
    (value,) = binding.get_outputs()
    np.testing.assert_allclose(copied, expected, 1e-6)
    np.testing.assert_allclose(value.numpy(), expected, 1e-6)
    binding.bind_output("y", "cpu", 0, np.float32, [2, 2], out.ctypes.data)
    session.run_with_iobinding(binding)
    np.testing.assert_allclose(out, expected, 1e-6)
    x *= 2
    target = make.OrtValue.ortvalue_from_shape_and_type([2, 2], np.float32)
    binding.bind_input("x", "cpu", 0, np.float32, [2, 3], x.ctypes.data)
    binding.bind_ortvalue_output("y", target)
    session.run_with_iobinding(binding)
    np.testing.assert_allclose(target.numpy(), session.run(None, {"x": x})[0], 1e-6)
    (result,) = session.run_with_ort_values(["y"], {"x": make.OrtValue.ortvalue_from_numpy(x)})
    np.testing.assert_allclose(result.numpy(), target.numpy(), 1e-6)
    binding.bind_cpu_input("x", x.astype(np.float64))
    with pytest.raises(RuntimeError, match="Error in execution: Unexpected input data type"):
        session.run_with_iobinding(binding)
    with pytest.raises(ValueError, match="element_type"):
        binding.bind_output("y", "cpu", 0, buffer_ptr=out.ctypes.data)
    binding.bind_cpu_input("x", x)
    binding.clear_binding_outputs()
    with pytest.raises(RuntimeError, match="At least one output should be requested"):
        session.run_with_iobinding(binding)


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[PretendedDriver]:
    pretended = PretendedDriver(gpus=2)
    monkeypatch.setattr(cuda_driver, "_bindings", lambda: pretended)
    monkeypatch.setattr(providers, "_has_gpu", lambda: True)
    device_memory._gpu.cache_clear()
    yield pretended
    device_memory._gpu.cache_clear()


def test_values_live_on_a_gpu(driver: PretendedDriver) -> None:
    array = numbers(2, 3)
    value = OrtValue.ortvalue_from_numpy(array, "cuda", 0)
    assert (value.device_name(), value.shape(), value.data_type()) == ("cuda", [2, 3], "tensor(float)")
    np.testing.assert_array_equal(value.numpy(), array)
    value.update_inplace(array + 1)
    np.testing.assert_array_equal(value.numpy(), array + 1)
    with pytest.raises(RuntimeError, match="Can't allocate memory on the CUDA device"):
        OrtValue.ortvalue_from_numpy(array, "cuda", 7)


def test_a_session_on_a_gpu_binds_what_is_there(driver: PretendedDriver) -> None:
    model = mlp()
    feeds = feeds_of(model)
    expected = expected_of(model, feeds)
    session = InferenceSession(model.SerializeToString(), providers=["CUDAExecutionProvider", "CPUExecutionProvider"])
    assert session.get_providers() == ["CUDAExecutionProvider", "CPUExecutionProvider"]
    (name,), (output,) = [a.name for a in session.get_inputs()], [a.name for a in session.get_outputs()]
    np.testing.assert_allclose(session.run(None, feeds)[0], expected, 1e-4, 1e-5)
    binding = session.io_binding()
    binding.bind_ortvalue_input(name, OrtValue.ortvalue_from_numpy(feeds[name], "cuda", 0))
    binding.bind_output(output, "cuda")
    session.run_with_iobinding(binding)
    (value,) = binding.get_outputs()
    assert value.device_name() == "cuda"
    np.testing.assert_allclose(value.numpy(), expected, 1e-4, 1e-5)
    np.testing.assert_allclose(binding.copy_outputs_to_cpu()[0], expected, 1e-4, 1e-5)
    target = OrtValue.ortvalue_from_shape_and_type(list(expected.shape), np.float32, "cuda", 0)
    binding.bind_output(output, "cuda", 0, np.float32, list(expected.shape), target.data_ptr())
    session.run_with_iobinding(binding)
    np.testing.assert_allclose(target.numpy(), expected, 1e-4, 1e-5)
    np.testing.assert_allclose(binding.copy_outputs_to_cpu()[0], expected, 1e-4, 1e-5)
    binding.bind_output(output, "cpu")
    session.run_with_iobinding(binding)
    assert binding.get_outputs()[0].device_name() == "cpu"


def test_options_of_the_gpus_provider(driver: PretendedDriver) -> None:
    data = mlp().SerializeToString()
    with pytest.warns(UserWarning, match="gpu_mem_limit is not kept"):
        session = InferenceSession(
            data, providers=[("CUDAExecutionProvider", {"device_id": 1, "gpu_mem_limit": 1 << 30, "use_tf32": 1})]
        )
    assert session._model._main is not None and session._model._main.device == "cuda:1"
    assert session._model._main.about["options"]["precision"] == "tf32"
    assert OrtDevice.make("cuda", 1).device_id() == 1
