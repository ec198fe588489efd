"""onnxruntime on the CPU: the judge of every result."""

import ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from onnxla.errors import InputError
from onnxla.runtime.tensors import Array, dtype_of_onnx_type


class OnnxruntimePeer:
    """One session of onnxruntime on the CPU."""

    name = "onnxruntime"

    def __init__(self, model: Path | bytes, threads: int, *, folder: Path | None = None) -> None:
        """`folder`: where the external data of a model in memory lies. Raises InputError where onnxruntime refuses."""
        import onnxruntime

        self.version: str = onnxruntime.__version__
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 4
        if folder is not None:
            options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(folder))
        try:
            self._session = onnxruntime.InferenceSession(
                model if isinstance(model, bytes) else str(model), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # it has no common base
            raise InputError(f"onnxruntime {self.version} cannot load the model: {error}") from error
        self.output_names: list[str] = [o.name for o in self._session.get_outputs()]

    def run(self, feeds: Mapping[str, Array], names: Sequence[str] | None = None) -> dict[str, Any]:
        """The outputs by name: arrays, or lists, dicts and None. Raises InputError where onnxruntime fails."""
        names = list(self.output_names if names is None else names)
        types = {o.name: o.type for o in self._session.get_outputs()}
        strangers = [name for name in names if name not in types]
        if strangers:
            raise InputError(
                f"the model that onnxruntime runs has no output {', '.join(strangers)} (it has {', '.join(types)}): "
                "compare an artifact with the model it was made from"
            )
        structured = any(dtype_of_onnx_type(types[name]) is None for name in names)
        try:
            if structured or any(_is_text(array) for array in feeds.values()):
                results = self._session.run(names, _native(feeds))
            else:
                values = {name: _ort_value(array) for name, array in feeds.items()}
                results = [_array(value) for value in self._session.run_with_ort_values(names, values)]
        except Exception as error:  # it has no common base
            raise InputError(f"onnxruntime {self.version} cannot run the model: {error}") from error
        return dict(zip(names, results, strict=True))

    def runner(self, feeds: Mapping[str, Array]) -> Callable[[], object]:
        """A run as its users call it, on arrays where it takes them: what a benchmark times."""
        if all(array.dtype.isbuiltin == 1 or _is_text(array) for array in feeds.values()):
            native = _native(feeds)
            return lambda: self._session.run(None, native)
        values = {name: _ort_value(array) for name, array in feeds.items()}
        return lambda: self._session.run_with_ort_values(self.output_names, values)


def _is_text(array: Array) -> bool:
    return array.dtype.kind in "OSU"


def _native(feeds: Mapping[str, Array]) -> dict[str, Array]:
    """Arrays as `InferenceSession.run` takes them: strings as Python objects."""
    return {name: array.astype(object) if _is_text(array) else array for name, array in feeds.items()}


def _ort_value(array: Array) -> Any:
    """An array of numbers, of ml_dtypes' types too, as an OrtValue."""
    import onnxruntime
    from onnx.helper import np_dtype_to_tensor_dtype

    dense = np.ascontiguousarray(array).reshape(array.shape)
    return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(dense, np_dtype_to_tensor_dtype(array.dtype))


def _array(value: Any) -> Array:
    """An OrtValue as an array; numpy does not know bfloat16, so its bytes are taken. Raises InputError for others."""
    dtype = dtype_of_onnx_type(value.data_type())
    if dtype is None:
        raise InputError(f"an output is {value.data_type()}; only tensors of numbers can be compared")
    if dtype.isbuiltin == 1:
        return np.asarray(value.numpy())
    shape = tuple(value.shape())
    raw = ctypes.string_at(value.data_ptr(), math.prod(shape) * dtype.itemsize)
    return np.frombuffer(raw, dtype).reshape(shape)
