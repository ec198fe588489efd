"""Python values as the dense arrays that native code reads."""

from typing import Any

import numpy as np

from onnxla.errors import InputError
from onnxla.runtime.tensors import Array


def native_array(value: Any, name: str, dtype: np.dtype[Any]) -> Array:
    """`value` as a dense array of `dtype`, in this machine's byte order; `name` is for the message.

    Arrays must have the dtype already; Python numbers and lists are converted where nothing but precision is lost;
    objects with `__dlpack__` are taken without a copy where they are dense. Raises InputError.
    """
    if type(value) is np.ndarray and value.dtype == dtype and value.flags.c_contiguous and value.flags.aligned:
        return value
    if not isinstance(value, np.ndarray) and hasattr(value, "__cuda_array_interface__"):
        raise InputError(
            f"{name}: an array on a GPU; only code for a GPU takes it, and only for shapes there is code for"
        )
    try:
        if isinstance(value, (bool, int, float, complex, list, tuple)):
            array = np.asarray(value)
            if np.can_cast(array.dtype, dtype, "same_kind"):
                return np.array(value, dtype)
        elif not isinstance(value, (np.ndarray, np.generic)) and hasattr(value, "__dlpack__"):
            array = np.from_dlpack(value)
        else:
            array = np.asarray(value)
    except Exception as error:
        raise InputError(f"{name}: {type(value).__name__} is not an array: {error}") from error
    if array.dtype.newbyteorder("=") != dtype:
        raise InputError(f"{name}: dtype {array.dtype}, the model takes {dtype}")
    return np.require(array, dtype, ["C", "A"])
