"""TensorProto to array, in every encoding, without a copy where the bytes are already the array."""

import math

import ml_dtypes
import numpy as np
from onnx import SparseTensorProto, TensorProto, numpy_helper

from onnxla.errors import HloError, ModelFormatError, ResourceLimitError
from onnxla.frontends.onnx.element_types import element_of_code
from onnxla.frontends.onnx.external_data import ModelFolder
from onnxla.hlo.types import C64, C128, F32, F64, S64, U32, U64, Array, ElementType

MAX_DENSE_ELEMENTS = 1 << 31
"""The largest tensor that a sparse initializer may unfold to."""


def tensor_array(tensor: TensorProto, raw: memoryview | None = None, folder: ModelFolder | None = None) -> Array:
    """The values of a tensor; strings come as an object array of `str`.

    `raw` stands in for raw_data that was left in the file; `folder` resolves external data. Raises
    ModelFormatError when the data does not fit the type and dimensions.
    """
    shape = tuple(tensor.dims)
    if any(n < 0 for n in shape):
        raise ModelFormatError(f"tensor {tensor.name!r} has a negative dimension: {list(shape)}")
    if tensor.data_type == TensorProto.STRING:
        return _strings(tensor, shape)
    try:
        element = element_of_code(tensor.data_type)
    except HloError as error:
        raise ModelFormatError(f"tensor {tensor.name!r}: {error}") from error
    if tensor.data_location == TensorProto.EXTERNAL:
        if folder is None:
            raise ModelFormatError(
                f"tensor {tensor.name!r} lies in an external file; give the model as a path, or its folder"
            )
        raw = folder.bytes_of(tensor)
    elif raw is None and tensor.HasField("raw_data"):
        raw = memoryview(tensor.raw_data)
    if raw is not None:
        return _from_bytes(tensor.name, raw, element, shape)
    return _from_fields(tensor, element, shape)


def _from_bytes(name: str, raw: memoryview, element: ElementType, shape: tuple[int, ...]) -> Array:
    count = math.prod(shape)
    packed = element.bits < 8
    expected = (count * element.bits + 7) // 8 if packed else count * element.bytes
    if len(raw) != expected:
        raise ModelFormatError(
            f"tensor {name!r} of {element}{list(shape)} needs {expected} bytes of data and has {len(raw)}"
        )
    if packed:
        return unpack_narrow(np.frombuffer(raw, np.uint8), element, count).reshape(shape)
    if element.dtype == np.bool_:
        # Any byte but 0 means true; a bool array must hold only 0 and 1.
        return np.asarray(np.frombuffer(raw, np.uint8) != 0).reshape(shape)
    return np.frombuffer(raw, element.dtype).reshape(shape)


def unpack_narrow(packed: Array, element: ElementType, count: int) -> Array:
    """`count` values of two or four bits each, the low bits of a byte first, one byte apiece."""
    shifts = np.arange(0, 8, element.bits, dtype=np.uint8)
    bits = ((packed[:, None] >> shifts) & ((1 << element.bits) - 1)).reshape(-1)[:count].astype(np.uint8)
    if element.is_float:
        return bits.view(ml_dtypes.float4_e2m1fn)
    if element.is_signed:
        sign = np.int8(1 << (element.bits - 1))
        return ((bits.astype(np.int8) ^ sign) - sign).astype(element.dtype)
    return bits.astype(element.dtype)


def _from_fields(tensor: TensorProto, element: ElementType, shape: tuple[int, ...]) -> Array:
    """The typed repeated fields; each holds several types (see TensorProto in onnx.proto)."""
    count = math.prod(shape)
    if element in (F32, C64):
        stored, each = len(tensor.float_data), 2 if element is C64 else 1
    elif element in (F64, C128):
        stored, each = len(tensor.double_data), 2 if element is C128 else 1
    elif element is S64:
        stored, each = len(tensor.int64_data), 1
    elif element in (U32, U64):
        stored, each = len(tensor.uint64_data), 1
    else:
        stored, each = len(tensor.int32_data), 1
    per_entry = 8 // element.bits if element.bits < 8 else 1
    expected = -(-count * each // per_entry)
    if stored != expected:
        raise ModelFormatError(
            f"tensor {tensor.name!r} of {element}{list(shape)} needs {expected} stored numbers and has {stored}"
        )
    if per_entry > 1:
        packed = np.array(tensor.int32_data, np.int64).astype(np.uint8)
        return unpack_narrow(packed, element, count).reshape(shape)
    try:
        return np.asarray(numpy_helper.to_array(tensor)).astype(element.dtype, copy=False).reshape(shape)
    except (ValueError, TypeError, OverflowError) as error:
        raise ModelFormatError(f"tensor {tensor.name!r} cannot be read: {error}") from error


def _strings(tensor: TensorProto, shape: tuple[int, ...]) -> Array:
    if len(tensor.string_data) != math.prod(shape):
        raise ModelFormatError(
            f"tensor {tensor.name!r} of string{list(shape)} has {len(tensor.string_data)} strings stored"
        )
    try:
        values = [s.decode() for s in tensor.string_data]
    except UnicodeDecodeError as error:
        raise ModelFormatError(f"tensor {tensor.name!r} holds strings that are not UTF-8") from error
    result = np.empty(len(values), object)
    result[:] = values
    return result.reshape(shape)


def dense_array(sparse: SparseTensorProto, folder: ModelFolder | None = None) -> Array:
    """A sparse tensor with its zeros written out. Raises ModelFormatError, or ResourceLimitError when too large."""
    name, shape = sparse.values.name, tuple(sparse.dims)
    if any(n < 0 for n in shape):
        raise ModelFormatError(f"sparse tensor {name!r} has a negative dimension: {list(shape)}")
    size = math.prod(shape)
    if size > MAX_DENSE_ELEMENTS:
        raise ResourceLimitError(f"sparse tensor {name!r} of {list(shape)} unfolds to {size} elements")
    values = tensor_array(sparse.values, folder=folder).reshape(-1)
    indices = tensor_array(sparse.indices, folder=folder)
    if indices.dtype != np.int64 or indices.shape not in {(len(values),), (len(values), len(shape))}:
        raise ModelFormatError(f"sparse tensor {name!r} has indices {indices.dtype}{list(indices.shape)}")
    limits = np.array([size] if indices.ndim == 1 else shape, np.int64)
    columns = indices.reshape(len(values), -1)
    if ((columns < 0) | (columns >= limits)).any():
        raise ModelFormatError(f"sparse tensor {name!r} has an index outside {list(shape)}")
    dense = np.zeros(shape, values.dtype)
    if indices.ndim == 1:
        dense.reshape(-1)[indices] = values
    else:
        dense[tuple(columns.T)] = values
    return dense
