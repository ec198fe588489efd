"""Tensors as the runtime knows them: element types with their dtypes and ONNX's names, and signatures."""

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from onnxla.errors import ArtifactError

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

# The element's name in HLO: its name in a signature (onnxruntime's words), and its dtype in numpy or ml_dtypes.
_ELEMENTS = {
    "pred": ("bool", "bool"),
    "s2": ("int2", "int2"),
    "s4": ("int4", "int4"),
    "s8": ("int8", "int8"),
    "s16": ("int16", "int16"),
    "s32": ("int32", "int32"),
    "s64": ("int64", "int64"),
    "u2": ("uint2", "uint2"),
    "u4": ("uint4", "uint4"),
    "u8": ("uint8", "uint8"),
    "u16": ("uint16", "uint16"),
    "u32": ("uint32", "uint32"),
    "u64": ("uint64", "uint64"),
    "f4e2m1fn": ("float4e2m1", "float4_e2m1fn"),
    "f8e4m3fn": ("float8e4m3fn", "float8_e4m3fn"),
    "f8e4m3fnuz": ("float8e4m3fnuz", "float8_e4m3fnuz"),
    "f8e5m2": ("float8e5m2", "float8_e5m2"),
    "f8e5m2fnuz": ("float8e5m2fnuz", "float8_e5m2fnuz"),
    "f8e8m0fnu": ("float8e8m0", "float8_e8m0fnu"),
    "bf16": ("bfloat16", "bfloat16"),
    "f16": ("float16", "float16"),
    "f32": ("float", "float32"),
    "f64": ("double", "float64"),
    "c64": ("complex64", "complex64"),
    "c128": ("complex128", "complex128"),
}
_MAX_RANK = 64


@cache
def dtype_of(element: str) -> np.dtype[Any]:
    """The dtype that carries `element`. ml_dtypes is imported only for the types numpy lacks."""
    if element not in _ELEMENTS:
        raise ArtifactError(f"unknown element type {element!r}")
    name = _ELEMENTS[element][1]
    if hasattr(np, name) or name == "bool":
        return np.dtype(name)
    import ml_dtypes

    dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
    return dtype


def element_of_dtype(dtype: np.dtype[Any]) -> str:
    """The inverse of `dtype_of`; byte order does not count. Raises ArtifactError for other dtypes."""
    for element, (_, name) in _ELEMENTS.items():
        if dtype.name == name:
            return element
    raise ArtifactError(f"no element type for dtype {dtype}")


@dataclass(frozen=True)
class TensorSignature:
    """One input or output: its name in the model, element type (HLO's name) and static shape."""

    name: str
    element: str
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        dtype_of(self.element)
        if len(self.shape) > _MAX_RANK or any(n < 0 for n in self.shape) or self.bytes >= 1 << 62:
            raise ArtifactError(f"{self.name}: impossible shape {list(self.shape)}")

    @property
    def dtype(self) -> np.dtype[Any]:
        return dtype_of(self.element)

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def type(self) -> str:
        """The type as onnxruntime spells it, such as `tensor(float)`."""
        return onnx_type(self.element)

    def __str__(self) -> str:
        return f"{self.name} {self.element}[{','.join(map(str, self.shape))}]"


def onnx_type(element: str) -> str:
    """`tensor(float)` for `f32`."""
    return f"tensor({_ELEMENTS[element][0]})"


_ELEMENT_OF_TYPE = {onnx_type(element): element for element in _ELEMENTS}


def dtype_of_onnx_type(text: str) -> np.dtype[Any] | None:
    """The dtype of `tensor(float)`; None for a type whose values are not tensors of numbers."""
    element = _ELEMENT_OF_TYPE.get(text)
    return None if element is None else dtype_of(element)
