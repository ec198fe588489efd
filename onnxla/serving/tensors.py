"""Tensors of the Open Inference Protocol and numpy's: datatypes, raw bytes (little endian) and JSON.

JSON has no infinity and no NaN. Triton, its clients and Python write and read `NaN`, `Infinity` and `-Infinity` as bare
words, and so does this: a strict reader refuses the whole answer instead of taking a wrong number for it.
"""

import math
import struct
from itertools import chain
from typing import Any

import ml_dtypes
import numpy as np

from onnxla.errors import harmless_line
from onnxla.serving.errors import InvalidRequestError, UnsupportedRequestError
from onnxla.serving.requests import Array

DTYPES: dict[str, np.dtype[Any]] = {
    "BOOL": np.dtype(np.bool_),
    "UINT8": np.dtype(np.uint8),
    "UINT16": np.dtype(np.uint16),
    "UINT32": np.dtype(np.uint32),
    "UINT64": np.dtype(np.uint64),
    "INT8": np.dtype(np.int8),
    "INT16": np.dtype(np.int16),
    "INT32": np.dtype(np.int32),
    "INT64": np.dtype(np.int64),
    "FP16": np.dtype(np.float16),
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "FP32": np.dtype(np.float32),
    "FP64": np.dtype(np.float64),
    "BYTES": np.dtype(object),
}
"""The protocol's datatypes; BYTES are arrays of `bytes`."""
_DATATYPES = {dtype: name for name, dtype in DTYPES.items()}

_ON_THE_WIRE = frozenset(dtype for dtype in _DATATYPES if dtype.kind != "O" and dtype == dtype.newbyteorder("<"))
"""Types whose elements lie in memory as they are sent."""
_SMALL = 4096
"""Bytes up to which copying a tensor costs less than making a view of it."""

MAX_RANK = 32
MAX_STRINGS = 2**20
"""Most elements of one BYTES tensor: each is an object, made while other requests wait."""

_TOLD = 5
"""Most wrong elements of one tensor that an error shows."""

_LENGTH = struct.Struct("<I")


def datatype_of(dtype: np.dtype[Any], name: str = "") -> str:
    """The protocol's name for a numpy type. Raises UnsupportedRequestError where it has none."""
    found = _DATATYPES.get(dtype) or _DATATYPES.get(dtype.newbyteorder("="))
    if found is not None:
        return found
    if dtype.kind in "SU":
        return "BYTES"
    subject = f"tensor '{harmless_line(name)}'" if name else "a tensor"
    raise UnsupportedRequestError(
        f"{subject} is of type {dtype}, for which the Open Inference Protocol has no datatype"
    )


def checked_type(name: str, datatype: object, shape: object) -> tuple[np.dtype[Any], tuple[int, ...], int]:
    """(dtype, shape, number of elements) of an input. Raises InvalidRequestError with everything that is wrong."""
    problems = []
    dtype = DTYPES.get(datatype) if isinstance(datatype, str) else None
    if dtype is None:
        problems.append(f"datatype {_shown(datatype)} is not one of {', '.join(DTYPES)}")
    dims: tuple[int, ...] = ()
    if not isinstance(shape, (list, tuple)) or not set(map(type, shape)) <= {int}:
        problems.append(f"shape {_shown(shape)} is not a list of whole numbers")
    elif len(shape) > MAX_RANK:
        problems.append(f"{len(shape)} dimensions are more than {MAX_RANK}")
    else:
        dims = tuple(shape)
        if any(size < 0 for size in dims):
            problems.append(
                f"shape {_shown(list(dims))} has a negative size: a request names the size of every dimension"
            )
        elif math.prod(size or 1 for size in dims) >= 2**59:
            problems.append(f"shape {_shown(list(dims))} has more elements than can be addressed")
    if problems:
        raise _wrong(name, "; ".join(problems))
    assert dtype is not None
    count = math.prod(dims)
    if dtype.kind == "O" and count > MAX_STRINGS:
        raise _wrong(name, f"{count} strings are more than {MAX_STRINGS}")
    return dtype, dims, count


def from_raw(name: str, datatype: object, shape: object, data: bytes | memoryview) -> Array:
    """The array whose elements `data` holds in row-major order, exactly. A view where that is possible: read only."""
    dtype, dims, count = checked_type(name, datatype, shape)
    if dtype.kind == "O":
        return _strings_from_raw(name, dims, count, data)
    if len(data) != count * dtype.itemsize:
        raise _wrong(
            name,
            f"{datatype} of shape {list(dims)} takes {count * dtype.itemsize} bytes, and {len(data)} were sent",
        )
    array: Array = np.frombuffer(data, dtype, count).reshape(dims)
    if dtype.kind == "b":
        array = np.not_equal(array.view(np.uint8), 0)  # any other byte is no bool to compiled code
        return array
    return array if array.flags.aligned else array.copy()


def _strings_from_raw(name: str, shape: tuple[int, ...], count: int, data: bytes | memoryview) -> Array:
    strings: list[bytes] = []
    place, end = 0, len(data)
    while place < end:
        if place + 4 > end:
            raise _wrong(name, f"the length of string {len(strings)} takes 4 bytes, and {end - place} are left")
        (length,) = _LENGTH.unpack_from(data, place)
        place += 4
        if place + length > end:
            raise _wrong(name, f"string {len(strings)} has {length} bytes by its length, and {end - place} are left")
        if len(strings) == count:
            raise _wrong(name, f"BYTES of shape {list(shape)} are {count} strings, and more were sent")
        strings.append(bytes(data[place : place + length]))
        place += length
    if len(strings) != count:
        raise _wrong(name, f"BYTES of shape {list(shape)} are {count} strings, and {len(strings)} were sent")
    return of_strings(strings, shape)


def of_strings(elements: list[bytes], shape: tuple[int, ...]) -> Array:
    """Strings, as many as the shape has elements."""
    array = np.empty(len(elements), object)
    array[:] = elements
    return array.reshape(shape)


_KINDS: dict[str, tuple[set[type], str]] = {
    "b": ({bool}, "true or false"),
    "i": ({int}, "whole numbers"),
    "u": ({int}, "whole numbers"),
    "f": ({int, float}, "numbers"),
    "V": ({int, float}, "numbers"),
    "O": ({str}, "strings"),
}
"""What JSON may have for numpy's kinds of types."""


def from_json(name: str, datatype: object, shape: object, data: object) -> Array:
    """The array whose elements JSON's `data` lists, flat in row-major order or nested as the shape is."""
    dtype, dims, count = checked_type(name, datatype, shape)
    flat = _flat(name, dims, count, data)
    types, words = _KINDS[dtype.kind]
    if not set(map(type, flat)) <= types:
        wrong = [element for element in flat if type(element) not in types]
        told = ", ".join(map(_shown, wrong[:_TOLD])) + f" and {len(wrong) - _TOLD} more" * (len(wrong) > _TOLD)
        raise _wrong(name, f"{datatype} takes {words}, and {told} {'is' if len(wrong) == 1 else 'are'} among its data")
    if dtype.kind == "O":
        return of_strings([text.encode("utf-8", "surrogatepass") for text in flat], dims)
    return from_numbers(name, datatype, dtype, flat).reshape(dims)


def from_numbers(name: str, datatype: object, dtype: np.dtype[Any], flat: list[Any]) -> Array:
    """A list of Python's numbers as an array; refuses those that the type cannot hold."""
    try:
        if dtype.kind not in "fV":
            return np.array(flat, dtype)
        with np.errstate(over="ignore"):
            array: Array = np.array(flat, np.float64).astype(dtype)
        finite = np.isfinite(array)
        if not finite.all():
            wrong = [value for value, fits in zip(flat, finite, strict=True) if not fits and math.isfinite(value)]
            if wrong:
                raise OverflowError
    except OverflowError:
        raise _wrong(name, f"{datatype} cannot hold a number among its data: it is out of range") from None
    return array


def _flat(name: str, shape: tuple[int, ...], count: int, data: object) -> list[Any]:
    if not isinstance(data, list):
        raise _wrong(name, f"data is not a list but {_shown(data)}")
    flat: list[Any] = data
    if flat and type(flat[0]) is list:
        for depth, size in enumerate(shape):
            if len(flat) != math.prod(shape[:depth]) * size:
                raise _wrong(name, f"nested data do not have shape {list(shape)}: dimension {depth} differs")
            if depth == len(shape) - 1:
                break
            if any(type(part) is not list or len(part) != shape[depth + 1] for part in flat):
                raise _wrong(name, f"nested data do not have shape {list(shape)}: dimension {depth + 1} differs")
            flat = list(chain.from_iterable(flat))
    if len(flat) != count:
        raise _wrong(name, f"shape {list(shape)} has {count} elements, and data has {len(flat)}")
    return flat


def to_raw(array: Array) -> bytes | memoryview:
    """The elements in row-major order, as the protocol has them on the wire."""
    if array.dtype.kind in "SUO":
        parts: list[bytes] = []
        for element in array.ravel().tolist():
            text = element if isinstance(element, bytes) else str(element).encode("utf-8", "surrogatepass")
            parts += (_LENGTH.pack(len(text)), text)
        return b"".join(parts)
    if array.dtype in _ON_THE_WIRE and array.nbytes <= _SMALL:
        return array.tobytes()
    flat = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(-1)
    return flat.view(np.uint8).data


def to_json(name: str, array: Array) -> list[Any]:
    """The elements in row-major order as JSON's values. Raises InvalidRequestError for BYTES that are no text."""
    if array.dtype.kind in "SUO":
        try:
            return [x.decode() if isinstance(x, bytes) else str(x) for x in array.ravel().tolist()]
        except UnicodeDecodeError:
            raise InvalidRequestError(
                f"output '{harmless_line(name)}' has bytes that are no UTF-8, which JSON cannot hold: "
                "ask for it with binary_data"
            ) from None
    wide = array.astype(np.float32) if array.dtype.itemsize == 2 and array.dtype.kind in "fV" else array
    values: list[Any] = wide.ravel().tolist()
    return values


def _shown(value: object) -> str:
    text = harmless_line(repr(value))
    return text if len(text) <= 60 else f"{text[:57]}..."


def _wrong(name: str, text: str) -> InvalidRequestError:
    return InvalidRequestError(f"input '{harmless_line(name)}': {text}")
