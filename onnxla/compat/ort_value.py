"""OrtValue: a tensor in this process' memory or on a GPU, a sequence, maps, or nothing."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from onnxla.compat.device_memory import fill, on_gpu, on_host, require_device
from onnxla.compat.errors import InvalidArgument, compat_error
from onnxla.compat.types import dtype_of_element_type, element_type_of, type_of_value
from onnxla.hlo.types import Array
from onnxla.runtime.device_arrays import device_view, is_on_gpu
from onnxla.runtime.device_results import DeviceArray
from onnxla.runtime.dlpack import CPU


class OrtDevice:
    """A device by onnxruntime's words: `OrtDevice.make("cuda", 0)`."""

    def __init__(self, name: str, number: int) -> None:
        self._name, self._number = name, number

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: int = -1) -> "OrtDevice":
        """`cpu` or `cuda`. Raises Exception for another name."""
        require_device(ort_device_name, device_id)
        return OrtDevice(ort_device_name.lower(), int(device_id))

    def device_id(self) -> int:
        return self._number

    def device_type(self) -> int:
        """0 for a CPU, 1 for a GPU."""
        return int(self._name != "cpu")


class OrtValue:
    """A value of a model's inputs or outputs. On the CPU it shares the memory of the array that it was made of."""

    def __init__(self, value: Any) -> None:
        """`value` is an array of numpy or on a GPU, a list, a dict, or None for an optional without a value."""
        self._value = value

    def __repr__(self) -> str:
        return f"<OrtValue {self.data_type()}>"

    # Making

    @classmethod
    def ortvalue_from_numpy(
        cls, numpy_obj: Any, /, device_type: str = "cpu", device_id: int = 0, vendor_id: int = -1
    ) -> "OrtValue":
        """A tensor of this array: shared where it is dense and stays on the CPU, else copied.

        Raises RuntimeError for what is no array, and for a device that is not there.
        """
        if not isinstance(numpy_obj, np.ndarray):
            raise RuntimeError(f"an OrtValue is made of a numpy array, not of {type(numpy_obj).__name__}")
        array = np.asarray(numpy_obj, order="C")
        number = require_device(device_type, device_id)
        return cls(array if number is None else on_gpu(array.shape, array.dtype, number, array))

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, data: Array, /, onnx_element_type: int) -> "OrtValue":
        """The array's memory read as elements of another type of the same size, such as bfloat16 in uint16."""
        dtype = dtype_of_element_type(int(onnx_element_type))
        if data.dtype.itemsize != dtype.itemsize:
            raise compat_error(
                InvalidArgument,
                f"an element of {data.dtype} has {data.dtype.itemsize} bytes, of {dtype} {dtype.itemsize}",
            )
        return cls(np.asarray(data, order="C").view(dtype))

    @classmethod
    def ortvalue_from_shape_and_type(
        cls, shape: Sequence[int], element_type: Any, device_type: str = "cpu", device_id: int = 0, vendor_id: int = -1
    ) -> "OrtValue":
        """Memory for a tensor, whatever is in it. `element_type` is numpy's type or ONNX's number."""
        dtype, number = dtype_of_element_type(element_type), require_device(device_type, device_id)
        return cls(np.empty(tuple(shape), dtype) if number is None else on_gpu(shape, dtype, number))

    @classmethod
    def from_dlpack(cls, data: Any, /) -> "OrtValue":
        """The tensor of another library, in its memory. Raises TypeError for what does not speak DLPack."""
        if not hasattr(data, "__dlpack__"):
            raise TypeError(f"{type(data).__name__} has no __dlpack__: give the tensor, not its capsule")
        return cls(data if is_on_gpu(data) else np.from_dlpack(data))

    # Looking at it

    def data_type(self) -> str:
        """Such as `tensor(float)`."""
        return type_of_value(self._view())

    def element_type(self) -> int:
        """ONNX's number of the element type."""
        return element_type_of(self._tensor().dtype)

    def shape(self) -> list[int]:
        return list(self._tensor().shape)

    def tensor_size_in_bytes(self) -> int:
        tensor = self._tensor()
        return int(np.prod(tensor.shape, dtype=np.int64)) * int(tensor.dtype.itemsize)

    def device_name(self) -> str:
        """`cpu` or `cuda`."""
        return "cuda" if is_on_gpu(self._value) else "cpu"

    def data_ptr(self) -> int:
        """The address of the first element."""
        tensor = self._tensor()
        return int(tensor.ctypes.data if isinstance(tensor, np.ndarray) else tensor.address)

    def has_value(self) -> bool:
        return self._value is not None

    def is_tensor(self) -> bool:
        return self._value is not None and not isinstance(self._value, (list, tuple, dict))

    def is_sparse_tensor(self) -> bool:
        return False

    def is_tensor_sequence(self) -> bool:
        return isinstance(self._value, (list, tuple)) and not any(isinstance(v, dict) for v in self._value)

    # Taking it out

    def numpy(self) -> Any:
        """The array: shared on the CPU, a copy from a GPU. Raises RuntimeError for what is no tensor."""
        self._tensor()
        return on_host(self._value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        array = self.numpy()
        return np.array(array, dtype, copy=copy) if copy is not None else np.asarray(array, dtype)

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self._tensor_with_dlpack().__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        if isinstance(self._value, np.ndarray):
            return CPU, 0
        device: tuple[int, int] = self._tensor_with_dlpack().__dlpack_device__()
        return device

    def update_inplace(self, data: Any) -> None:
        """Write other values, of the same type and number of bytes, over those of this tensor, where it is.

        Raises RuntimeError where they do not fit, TypeError for what is neither an array nor an OrtValue.
        """
        if isinstance(data, OrtValue):
            data = data.numpy()
        if not isinstance(data, np.ndarray):
            raise TypeError("data must be a numpy.ndarray or an OrtValue.")
        tensor = self._tensor()
        if data.dtype != tensor.dtype:
            raise RuntimeError(f"The input type {data.dtype} does not match the type {tensor.dtype} of the OrtValue.")
        if data.size != int(np.prod(tensor.shape, dtype=np.int64)):
            raise RuntimeError("The input size of numpy arrays does not match the size of the OrtValue.")
        if isinstance(self._value, np.ndarray):
            self._value[...] = data.reshape(self._value.shape)
        elif isinstance(self._value, DeviceArray):
            fill(self._value, data)
        else:
            raise RuntimeError("the tensor is another library's, on a GPU; write to it with that")

    # Inside

    def _view(self) -> Any:
        """The value with `shape`, `dtype` and `address` where it is on a GPU."""
        if isinstance(self._value, (np.ndarray, DeviceArray)) or not is_on_gpu(self._value):
            return self._value
        return device_view(self._value, "OrtValue")

    def _tensor(self) -> Any:
        if not self.is_tensor():
            raise RuntimeError(f"an OrtValue of {self.data_type()} is no tensor")
        return self._view()

    def _tensor_with_dlpack(self) -> Any:
        self._tensor()
        return self._value


def value_of(given: Any) -> Any:
    """What a run takes for a value that may be an OrtValue."""
    return given._value if isinstance(given, OrtValue) else given
