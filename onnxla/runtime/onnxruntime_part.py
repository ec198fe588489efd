"""A part of a model in onnxruntime, from bytes. Arrays go in and come out as views of the same memory.

onnxruntime is loaded when the first part is made; neither onnx nor the compiler is needed.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from onnxla.errors import DeviceError, InputError
from onnxla.runtime.tensors import Array, dtype_of_onnx_type

_CODES = {
    "bfloat16": 16,
    "float8_e4m3fn": 17,
    "float8_e4m3fnuz": 18,
    "float8_e5m2": 19,
    "float8_e5m2fnuz": 20,
    "uint4": 21,
    "int4": 22,
    "float4_e2m1fn": 23,
    "float8_e8m0fnu": 24,
    "uint2": 25,
    "int2": 26,
}
"""ONNX's numbers of the element types that numpy lacks."""


class OnnxruntimePart(ABC):
    """One session of onnxruntime on the CPU. Any number of threads may run it at once."""

    def __init__(
        self,
        name: str,
        data: bytes,
        threads: int,
        *,
        weights: Mapping[str, Array] | None = None,
        folder: str | None = None,
        optimize: bool = True,
    ) -> None:
        """`data` is a model; `weights` are its initializers that are in no file, `folder` has the files of others.

        Raises InputError where onnxruntime refuses the model, DeviceError where it is not installed.
        """
        onnxruntime = onnxruntime_module()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 4
        # Threads that spin after its turn would take the CPUs from compiled clusters, whose turn is next.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        if folder is not None:
            options.add_session_config_entry("session.model_external_initializers_file_folder_path", folder)
        if weights:
            self._weights = {name: ort_value(array) for name, array in weights.items()}  # which it reads in place
            options.add_external_initializers(list(self._weights), list(self._weights.values()))
        if not optimize:
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        try:
            self._session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # it has no common base
            raise InputError(
                f"onnxruntime {onnxruntime.__version__} refuses the part of {name} that cannot be compiled: {error}"
            ) from error
        self._insides = _Insides.of(self._session)
        self._types = {o.name: o.type for o in self._session.get_outputs()}
        inputs = {i.name: i.type for i in self._session.get_inputs()}
        # What is no tensor is not seen through OrtValue: then run() converts, and copies.
        self._shares = all(dtype_of_onnx_type(kind) is not None for kind in (*inputs.values(), *self._types.values()))

    @abstractmethod
    def stored(self) -> tuple[bytes, Mapping[str, Array]]:
        """The model as an artifact keeps it, and its large weights, which are not in it. Raises ArtifactError."""

    def run(self, names: Sequence[str], feeds: Mapping[str, Any]) -> list[Any]:
        """The outputs `names`: arrays, or lists, dicts and None. Raises InputError where onnxruntime fails."""
        try:
            if not self._shares:
                native = {name: _as_objects(value) for name, value in feeds.items()}
                return list(self._session.run(list(names), native))
            return [view_of(value) for value in self._run_shared(names, feeds)]
        except Exception as error:  # it has no common base
            raise InputError(f"onnxruntime cannot run its part of the model: {error}") from error

    def _run_shared(self, names: Sequence[str], feeds: Mapping[str, Any]) -> list[Any]:
        """The outputs as OrtValues, of Python or of C++; both have what `view_of` asks for."""
        if self._insides is None:
            values = {name: ort_value(array) for name, array in feeds.items()}
            return list(self._session.run_with_ort_values(list(names), values))
        arrays = {name: dense(array) for name, array in feeds.items()}  # which must live while it runs
        found = self._insides.run({name: self._insides.value(array) for name, array in arrays.items()}, list(names))
        return [found[k] for k in range(len(names))]


def onnxruntime_module() -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise DeviceError(
            f"fallback='onnxruntime' needs onnxruntime, which cannot be imported ({error}): pip install onnxruntime"
        ) from error
    return onnxruntime


def require_onnxruntime() -> None:
    """Raise DeviceError where onnxruntime is not installed."""
    onnxruntime_module()


class LoadedPart(OnnxruntimePart):
    """A part from an artifact."""

    def __init__(self, name: str, data: bytes, weights: Mapping[str, Array], threads: int) -> None:
        super().__init__(name, data, threads, weights=weights)
        self._stored = (data, dict(weights))

    def stored(self) -> tuple[bytes, Mapping[str, Array]]:
        return self._stored


class _Insides:
    """The C++ objects below a session. Its public methods go through results with an iterator, whose end is an
    exception in C++ (80 us), and look for the device of each input (4 us): most of the time of a small part."""

    def __init__(self, session: Any, make: Any, device: Any) -> None:
        self._session = session
        self._make = make
        self._device = device

    @staticmethod
    def of(session: Any) -> "_Insides | None":
        """None where this onnxruntime looks different inside; then the public methods do the same."""
        try:
            from onnxruntime.capi.onnxruntime_pybind11_state import OrtValue

            device = onnxruntime_module().OrtDevice.make("cpu", 0)._get_c_device()
            native, make = session._sess, OrtValue.ortvalue_from_numpy
            return _Insides(native, make, device) if callable(native.run_with_ort_values) else None
        except (ImportError, AttributeError):
            return None

    def run(self, values: dict[str, Any], names: list[str]) -> Any:
        return self._session.run_with_ort_values(values, names, None)

    def value(self, array: Array) -> Any:
        """As `ort_value`, of a dense array that the caller keeps while the value is used."""
        return self._make(array, self._device) if array.dtype.isbuiltin == 1 else ort_value(array)._get_c_value()


def ort_value(array: Array) -> Any:
    """An array of numbers as an OrtValue on the same memory, which it keeps alive."""
    onnxruntime = onnxruntime_module()
    if array.dtype.isbuiltin == 1:
        return onnxruntime.OrtValue.ortvalue_from_numpy(dense(array))
    code = _CODES[array.dtype.name]
    return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(dense(array), code)


def dense(array: Array) -> Array:
    """The array, or a copy of it where its elements are not one behind the other."""
    flags = array.flags
    return array if flags.c_contiguous and flags.aligned else np.require(array, requirements=["C", "A"])


class _Memory:
    """The memory of an OrtValue for numpy, whose array keeps this object and so the memory."""

    def __init__(self, value: Any, shape: tuple[int, ...], kind: str) -> None:
        self.value = value
        self.__array_interface__ = {"version": 3, "shape": shape, "typestr": kind, "data": (value.data_ptr(), False)}


def view_of(value: Any) -> Array:
    """An OrtValue that is a tensor of numbers as an array on the same memory, which it keeps alive."""
    dtype = dtype_of_onnx_type(value.data_type())
    if dtype is None:
        raise InputError(f"onnxruntime gave {value.data_type()}, which is not shared")
    shape = tuple(value.shape())
    if not all(shape):
        return np.empty(shape, dtype)
    if dtype.isbuiltin == 1:
        return np.asarray(_Memory(value, shape, dtype.str))
    count = math.prod(shape) * dtype.itemsize
    return np.asarray(_Memory(value, (count,), "|u1")).view(dtype).reshape(shape)


def _as_objects(value: Any) -> Any:
    """Strings as `InferenceSession.run` takes them."""
    return value.astype(object) if isinstance(value, np.ndarray) and value.dtype.kind in "SU" else value
