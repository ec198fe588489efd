"""Arrays that other libraries keep on a GPU (PyTorch, CuPy, JAX, Numba), read where they are.

Two protocols say where an array lies: `__cuda_array_interface__`, and DLPack for what lacks it (JAX, bfloat16 of
PyTorch). Nothing is imported from those libraries.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from onnxla.errors import InputError
from onnxla.runtime.dlpack import CUDA, CUDA_MANAGED, read_capsule, require_dense
from onnxla.runtime.streams import LEGACY_STREAM
from onnxla.runtime.tensors import TensorSignature


@dataclass(frozen=True)
class DeviceView:
    """A dense array in a GPU's memory, and what keeps it there."""

    address: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    stream: int
    """Work that is asked for on this stream comes after what fills it; 0 where that is done already."""
    owner: Any
    read_only: bool = False

    @property
    def bytes(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    def overlaps(self, other: "DeviceView") -> bool:
        return self.address < other.address + other.bytes and other.address < self.address + self.bytes


def device_view(value: Any, name: str, stream: int = LEGACY_STREAM) -> DeviceView | None:
    """The array that `value` is on a GPU; None where it is none. `name` is for messages.

    Producers that speak DLPack let their work come before that of `stream`, where ours will be asked for.
    Raises InputError for one that is not dense.
    """
    if isinstance(value, DeviceView):
        return value
    interface = _interface(value)
    if interface is not None:
        return _from_interface(interface, value, name)
    if _speaks_dlpack(value):
        capsule = value.__dlpack__(stream=stream)
        found = read_capsule(capsule, name)
        return DeviceView(found.address, found.shape, found.dtype, stream, (value, capsule))
    return None


def is_on_gpu(value: Any) -> bool:
    """Whether `device_view` would find an array there."""
    return isinstance(value, DeviceView) or _interface(value) is not None or _speaks_dlpack(value)


def looks_like(value: Any, signature: TensorSignature) -> bool:
    """Whether an array on a GPU has the type of the signature, by what its library calls shape and dtype: nothing is
    exchanged, and nobody is made to wait."""
    interface = _interface(value)
    if interface is not None:
        shape, dtype = tuple(interface["shape"]), interface["typestr"].lstrip("<=|")
        return shape == signature.shape and dtype == signature.dtype.str.lstrip("<=|")
    if not _speaks_dlpack(value):
        return False
    name = str(getattr(value, "dtype", "")).rpartition(".")[2]
    return tuple(getattr(value, "shape", ())) == signature.shape and name == signature.dtype.name


def _interface(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic | int | float | list | tuple):
        return None
    try:
        return getattr(value, "__cuda_array_interface__", None)
    except (TypeError, RuntimeError):  # PyTorch's way to say no for a type or a tensor it cannot show
        return None


def _speaks_dlpack(value: Any) -> bool:
    """Whether it is an array on a GPU of whose place DLPack tells."""
    if isinstance(value, np.ndarray | np.generic) or not hasattr(value, "__dlpack__"):
        return False
    return value.__dlpack_device__()[0] in (CUDA, CUDA_MANAGED)


def _from_interface(interface: Any, owner: Any, name: str) -> DeviceView:
    """Version 3 of the protocol, which is a dict; older versions say nothing about streams."""
    address, read_only = interface["data"]
    shape, dtype = tuple(interface["shape"]), np.dtype(interface["typestr"])
    strides = interface.get("strides")
    if strides is not None:
        require_dense(name, shape, [s // dtype.itemsize for s in strides])
    if interface.get("mask") is not None:
        raise InputError(f"{name}: an array on a GPU with a mask")
    stream = interface.get("stream", LEGACY_STREAM)
    return DeviceView(int(address), shape, dtype, 0 if stream is None else int(stream), owner, bool(read_only))
