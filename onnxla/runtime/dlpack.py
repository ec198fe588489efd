"""DLPack, the protocol by which libraries show each other arrays: capsules read and made. Version 0 of its structures,
which everybody takes.
"""

import ctypes
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onnxla.errors import InputError
from onnxla.runtime.tensors import dtype_of, element_of_dtype

CPU, CUDA, CUDA_MANAGED = 1, 2, 13
"""DLPack's numbers of kinds of memory."""
_NAME = b"dltensor"
_KINDS = {0: "s", 1: "u", 2: "f", 4: "bf", 5: "c", 6: "pred"}
"""DLPack's type codes as the beginnings of HLO's names."""


class _Tensor(ctypes.Structure):
    """DLTensor of dlpack.h: the first member of DLManagedTensor."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


_PYTHON = ctypes.PyDLL(ctypes.pythonapi._name, handle=ctypes.pythonapi._handle)
"""Python's own functions, with prototypes that other libraries do not change."""
_read = _PYTHON["PyCapsule_GetPointer"]
_read.restype, _read.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
_read_bare, _is_valid = _PYTHON["PyCapsule_GetPointer"], _PYTHON["PyCapsule_IsValid"]
_read_bare.restype, _read_bare.argtypes = ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_char_p)
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, (ctypes.c_void_p, ctypes.c_char_p)
_new = _PYTHON["PyCapsule_New"]
_new.restype, _new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    """DLManagedTensor."""

    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _Deleter))


@dataclass(frozen=True)
class Described:
    """The array that a capsule describes."""

    address: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    device: int


def read_capsule(capsule: Any, name: str) -> Described:
    """What a capsule says. It stays unused, so its owner frees it when it goes. Raises InputError unless dense."""
    tensor = _Tensor.from_address(_read(capsule, _NAME))
    kind = _KINDS.get(tensor.code)
    if kind is None or tensor.lanes != 1:
        raise InputError(f"{name}: DLPack's type {tensor.code} of {tensor.bits} bits is not known")
    dtype = dtype_of(kind if kind == "pred" else f"{kind}{tensor.bits}")
    shape = tuple(tensor.shape[: tensor.ndim])
    if tensor.strides:
        require_dense(name, shape, tensor.strides[: tensor.ndim])
    return Described((tensor.data or 0) + tensor.byte_offset, shape, dtype, tensor.device_id)


def make_capsule(address: int, shape: Sequence[int], dtype: np.dtype[Any], kind: int, device: int, owner: Any) -> Any:
    """A capsule of a dense array; `owner` lives until whoever takes it is done. Raises InputError for element types
    that DLPack has no name for."""
    element = element_of_dtype(dtype)
    code = next((c for c, k in _KINDS.items() if element == k or element.removeprefix(k).isdigit()), None)
    if code is None:
        raise InputError(f"DLPack has no name for {dtype}")
    managed = _Managed()
    sizes = (ctypes.c_int64 * max(len(shape), 1))(*shape)
    strides = (ctypes.c_int64 * max(len(shape), 1))(*(math.prod(shape[k + 1 :]) for k in range(len(shape))))
    managed.tensor = _Tensor(address, kind, device, len(shape), code, 8 * dtype.itemsize, 1, sizes, strides, 0)
    managed.deleter = _DELETE
    place = ctypes.addressof(managed)
    _EXPORTED[place] = (managed, sizes, strides, owner)
    return _new(place, _NAME, ctypes.cast(_DESTROY, ctypes.c_void_p))


_EXPORTED: dict[int, Any] = {}
"""What others were shown and may still read, by the address of its structure."""


def exported() -> int:
    """How many arrays others were shown and have not given back."""
    return len(_EXPORTED)


def _delete(place: int) -> None:
    """Called by whoever took the array, on any thread."""
    _EXPORTED.pop(place, None)


def _destroy(capsule: int) -> None:
    """Called as the capsule goes: frees what nobody took. It takes the bare pointer, since the capsule is no more
    referred to and must not be again."""
    if _is_valid(capsule, _NAME):
        _EXPORTED.pop(_read_bare(capsule, _NAME), None)


_DELETE = _Deleter(_delete)
_DESTROY = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_destroy)


def require_dense(name: str, shape: Sequence[int], strides: Sequence[int]) -> None:
    """Strides in elements must be those of rows one behind the other; those of single elements do not matter."""
    expected = itertools.accumulate(reversed(shape[1:]), lambda a, b: a * b, initial=1)
    for size, stride, wanted in zip(reversed(shape), reversed(strides), expected, strict=False):
        if size > 1 and stride != wanted and 0 not in shape:
            raise InputError(f"{name}: an array on a GPU must be dense, its rows one behind the other; copy it first")
