"""Arrays that are put on a GPU for an OrtValue, and memory that is given by its address."""

import ctypes
import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from onnxla.compat.types import dtype_of_element_type
from onnxla.errors import DeviceError
from onnxla.runtime.device_arrays import DeviceView, device_view, is_on_gpu
from onnxla.runtime.device_results import DeviceArray
from onnxla.runtime.streams import LEGACY_STREAM
from onnxla.runtime.tensors import Array, TensorSignature, element_of_dtype

_NAMES = ("cpu", "cuda")


def require_device(name: str, number: int = 0) -> int | None:
    """The number of the GPU that onnxruntime's words mean, None for the CPU. Raises as onnxruntime does: Exception for
    a word that names no device, RuntimeError for one that is not there."""
    if name.lower() not in (*_NAMES, "gpu"):
        raise Exception(f"Unsupported device type: {name}; there are {' and '.join(_NAMES)}")
    return None if name.lower() == "cpu" else int(number)


@functools.cache
def _gpu(number: int) -> Any:
    from onnxla.runtime.cuda_device import CudaDevice

    try:
        return CudaDevice(number)
    except DeviceError as error:
        raise RuntimeError(f"Can't allocate memory on the CUDA device: {error}") from error


def on_gpu(shape: Sequence[int], dtype: np.dtype[Any], number: int, data: Array | None = None) -> DeviceArray:
    """An array in the memory of GPU `number`, with the values of `data` where that is given. Raises RuntimeError."""
    device = _gpu(number)
    with device.active():
        array = DeviceArray(device, TensorSignature("OrtValue", element_of_dtype(dtype), tuple(map(int, shape))))
    if data is not None:
        fill(array, data)
    return array


def fill(array: DeviceArray, data: Array) -> None:
    """Write `data`, of as many bytes, over an array on a GPU, and wait until it is there."""
    device = array._device
    with device.active():
        device.upload(array.address, np.ascontiguousarray(data), device.stream)
        mark = device.mark(device.stream)
        array.written(mark, device.stream)
        device.synchronize(mark)


def at_address(gpu: int | None, element_type: Any, shape: Sequence[int], address: int) -> Any:
    """What lies at an address, as an array that a run reads or writes; whoever gave it keeps it there."""
    dtype, sizes = dtype_of_element_type(element_type), tuple(map(int, shape))
    if gpu is not None:
        return DeviceView(int(address), sizes, dtype, LEGACY_STREAM, None)
    count = math.prod(sizes) * dtype.itemsize
    if not count:
        return np.empty(sizes, dtype)
    return np.frombuffer(memoryview((ctypes.c_char * count).from_address(int(address))), dtype).reshape(sizes)


def on_host(value: Any) -> Any:
    """The value as numpy and Python have it, copied from the GPU where it is there."""
    if not is_on_gpu(value):
        return value
    if isinstance(value, DeviceArray):
        return value.numpy()
    view = device_view(value, "OrtValue")
    assert view is not None
    first = _gpu(0)
    with first.active():
        device = _gpu(first.holder(view.address) or 0)
    array = np.empty(view.shape, view.dtype)
    with device.active():
        if view.stream:
            device.follow(device.stream, view.stream)
        finish = device.download(view.address, array, device.stream)
        device.synchronize(device.mark(device.stream))
        finish()
    return array
