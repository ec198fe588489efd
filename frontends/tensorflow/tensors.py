"""TensorProto and TensorShapeProto as numpy arrays and tuples."""

import math
from typing import Any

import numpy as np

from onnxla.errors import HloError, ModelFormatError
from onnxla.frontends.tensorflow.element_types import STRING, code_name, element_of_code
from onnxla.frontends.tensorflow.messages import DATA_TYPES, REFERENCE
from onnxla.hlo.types import Array

_VALUE_FIELD = {
    "FLOAT": "float_val",
    "DOUBLE": "double_val",
    "INT64": "int64_val",
    "UINT32": "uint32_val",
    "UINT64": "uint64_val",
    "BOOL": "bool_val",
    "STRING": "string_val",
    "COMPLEX64": "scomplex_val",
    "COMPLEX128": "dcomplex_val",
    "HALF": "half_val",
    "BFLOAT16": "half_val",
    **dict.fromkeys(("INT32", "INT16", "INT8", "UINT16", "UINT8", "INT4", "UINT4"), "int_val"),
}

MAX_ELEMENTS, MAX_WRITTEN_OUT = 1 << 34, 1 << 28
"""Most elements of a constant, and of one whose values an abbreviation is written out to."""


def shape_of(proto: Any) -> tuple[int | None, ...] | None:
    """A TensorShapeProto; None for an unknown size, and for an unknown rank."""
    if proto.unknown_rank:
        return None
    return tuple(None if d.size < 0 else int(d.size) for d in proto.dim)


def tensor_array(proto: Any) -> Array:
    """The values of a TensorProto; strings as an array of `bytes` objects.

    Raises ModelFormatError where the values do not fit type and shape.
    """
    shape = shape_of(proto.tensor_shape)
    if shape is None or any(n is None for n in shape):
        raise ModelFormatError("a constant has no static shape")
    sizes = tuple(n for n in shape if n is not None)
    count = math.prod(sizes)
    if count > MAX_ELEMENTS:
        raise ModelFormatError(f"a constant of {count} elements is too large")
    if proto.dtype == STRING:
        return _filled(np.array(list(proto.string_val) or [b""], object), sizes, count)
    try:
        dtype = element_of_code(proto.dtype).dtype
    except HloError as error:
        raise ModelFormatError(f"a constant of type {code_name(proto.dtype)} cannot be read") from error
    if proto.tensor_content:
        content = proto.tensor_content
        if len(content) != count * dtype.itemsize:
            raise ModelFormatError(f"a constant of {count} {dtype} has {len(content)} bytes")
        return np.frombuffer(content, dtype).reshape(sizes)
    return _filled(_listed(proto, dtype), sizes, count)


def _listed(proto: Any, dtype: np.dtype[Any]) -> Array:
    """The values that are written down one by one."""
    name = DATA_TYPES[proto.dtype % REFERENCE]
    if name.startswith("FLOAT8"):
        return np.frombuffer(proto.float8_val, dtype)
    if name not in _VALUE_FIELD:
        raise ModelFormatError(f"a constant of type {code_name(proto.dtype)} cannot be read")
    values = getattr(proto, _VALUE_FIELD[name])
    if name in ("HALF", "BFLOAT16"):
        return np.array(values, np.uint16).view(dtype)
    if name.startswith("COMPLEX"):
        pairs = np.array(values, np.float64).reshape(-1, 2)
        return (pairs[:, 0] + 1j * pairs[:, 1]).astype(dtype)
    return np.array(values).astype(dtype)


def _filled(values: Array, shape: tuple[int, ...], count: int) -> Array:
    """`values` in `shape`: the last one repeats, and none at all means zeros, as TensorFlow abbreviates."""
    if values.size > count and count:
        raise ModelFormatError(f"a constant of {count} elements has {values.size} values")
    if values.size == 0:
        values = np.zeros(1, values.dtype)
    if values.size == 1:
        return np.broadcast_to(values[0:1].reshape(()), shape)
    if count > max(values.size, MAX_WRITTEN_OUT):
        raise ModelFormatError(f"a constant of {count} elements has {values.size} values")
    rest = np.full(max(count - values.size, 0), values[-1], values.dtype)
    return np.concatenate([values[:count], rest]).reshape(shape)
