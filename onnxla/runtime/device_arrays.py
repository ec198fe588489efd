"""Arrays that other libraries keep on a GPU (PyTorch, CuPy, JAX, Numba), read where they are.

Two protocols say where an array lies: `__cuda_array_interface__`, and DLPack for what lacks it (JAX, bfloat16 of
PyTorch). Nothing is imported from those libraries.
"""

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np

from onnxla.errors import InputError
from onnxla.runtime.program import dtype_of

LEGACY_STREAM = 1
"""CUDA's number of the stream that work goes to where nobody chose one."""
_CUDA, _CUDA_MANAGED = 2, 13
"""DLPack's numbers of the kinds of memory that a GPU reads."""


@dataclass(frozen=True)
class DeviceView:
    """A dense array in a GPU's memory, and what keeps it there."""

    address: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    stream: int
    """Where the work was asked for that fills it; 0 where it is known to be done."""
    owner: Any
    read_only: bool = False

    @property
    def bytes(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    def overlaps(self, other: "DeviceView") -> bool:
        return self.address < other.address + other.bytes and other.address < self.address + self.bytes


def device_view(value: Any, name: str) -> DeviceView | None:
    """The array that `value` is on a GPU; None where it is none. `name` is for messages.

    Raises InputError for one that is not dense.
    """
    if isinstance(value, np.ndarray | np.generic | int | float | list | tuple):
        return None
    try:
        interface = getattr(value, "__cuda_array_interface__", None)
    except (TypeError, RuntimeError, AttributeError):  # PyTorch's way to say no for a type or a tensor it cannot show
        interface = None
    if interface is not None:
        return _from_interface(interface, value, name)
    if hasattr(value, "__dlpack__") and value.__dlpack_device__()[0] in (_CUDA, _CUDA_MANAGED):
        # stream 1: the producer lets its work on it come before ours
        return view_of_capsule(value.__dlpack__(stream=LEGACY_STREAM), name, value)
    return None


def _from_interface(interface: Any, owner: Any, name: str) -> DeviceView:
    """Version 3 of the protocol, which is a dict; older versions say nothing about streams."""
    address, read_only = interface["data"]
    shape, dtype = tuple(interface["shape"]), np.dtype(interface["typestr"])
    strides = interface.get("strides")
    if strides is not None:
        _require_dense(name, shape, [s // dtype.itemsize for s in strides])
    stream = interface.get("stream", LEGACY_STREAM)
    return DeviceView(int(address), shape, dtype, 0 if stream is None else int(stream), owner, bool(read_only))


class _Tensor(ctypes.Structure):
    """DLTensor of dlpack.h, version 0: the first member of DLManagedTensor."""

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


_KINDS = {0: "s", 1: "u", 2: "f", 4: "bf", 5: "c", 6: "pred"}
"""DLPack's type codes as the beginnings of HLO's names."""


def view_of_capsule(capsule: Any, name: str, owner: Any) -> DeviceView:
    """What a DLPack capsule describes. The capsule stays unused, so its owner frees it when it goes with the view."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    tensor = _Tensor.from_address(pointer(capsule, b"dltensor"))
    kind = _KINDS.get(tensor.code)
    if kind is None or tensor.lanes != 1:
        raise InputError(f"{name}: DLPack's type {tensor.code} of {tensor.bits} bits is not known")
    dtype = dtype_of(kind if kind == "pred" else f"{kind}{tensor.bits}")
    shape = tuple(tensor.shape[: tensor.ndim])
    if tensor.strides:
        _require_dense(name, shape, tensor.strides[: tensor.ndim])
    address = (tensor.data or 0) + tensor.byte_offset
    return DeviceView(address, shape, dtype, LEGACY_STREAM, (owner, capsule))


def _require_dense(name: str, shape: tuple[int, ...], strides: Any) -> None:
    """Strides in elements must be those of rows one behind the other; those of single elements do not matter."""
    expected = 1
    for size, stride in zip(reversed(shape), reversed(list(strides)), strict=True):
        if size > 1 and stride != expected and 0 not in shape:
            raise InputError(f"{name}: an array on a GPU must be dense, its rows one behind the other; copy it first")
        expected *= size
