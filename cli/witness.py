"""onnxruntime as the judge: the same model on the same inputs."""

import ctypes
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from onnxla.errors import InputError
from onnxla.runtime.program import Array, dtype_of_onnx_type


class Witness:
    """One session of onnxruntime on the CPU."""

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

    def run(self, feeds: Mapping[str, Array], names: Sequence[str] | None = None) -> dict[str, Array]:
        """The outputs by name. Raises InputError where onnxruntime fails."""
        import onnxruntime
        from onnx.helper import np_dtype_to_tensor_dtype

        values = {
            name: onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(
                np.ascontiguousarray(array).reshape(array.shape), np_dtype_to_tensor_dtype(array.dtype)
            )
            for name, array in feeds.items()
        }
        names = list(self.output_names if names is None else names)
        try:
            results = self._session.run_with_ort_values(names, values)
        except Exception as error:  # it has no common base
            raise InputError(f"onnxruntime {self.version} cannot run the model: {error}") from error
        return {name: _array(name, value) for name, value in zip(names, results, strict=True)}

    def run_plainly(self, feeds: Mapping[str, Array]) -> list[Any]:
        """As its users call it: what a benchmark times."""
        return list(self._session.run(None, dict(feeds)))


def _array(name: str, value: Any) -> Array:
    """An OrtValue as an array; numpy does not know bfloat16, so its bytes are taken."""
    dtype = dtype_of_onnx_type(value.data_type())
    if dtype is None:
        raise InputError(f"the output {name} is {value.data_type()}; only tensors of numbers can be compared")
    if dtype.isbuiltin == 1:
        return np.asarray(value.numpy())
    shape = tuple(value.shape())
    raw = ctypes.string_at(value.data_ptr(), math.prod(shape) * dtype.itemsize)
    return np.frombuffer(raw, dtype).reshape(shape)
