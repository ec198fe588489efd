"""Element types, tensor types and tuple types, spelled as XLA spells them.

A tensor is dense and row-major: its text always shows the layout `{n-1,...,0}`. Another
order of dimensions is an explicit `transpose`, so a layout choice is visible in the program.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt

from onnxla.errors import HloError

Array: TypeAlias = npt.NDArray[Any]
Shape: TypeAlias = tuple[int, ...]


class Kind(Enum):
    """What arithmetic an element type has."""

    PRED = "pred"
    SIGNED = "signed"
    UNSIGNED = "unsigned"
    FLOAT = "float"
    COMPLEX = "complex"


@dataclass(frozen=True)
class ElementType:
    """A scalar type. `bits` is the width XLA counts; in memory s4, u4 and narrower take a byte."""

    name: str
    kind: Kind
    bits: int
    dtype: np.dtype[Any]

    @property
    def bytes(self) -> int:
        """Size of one element in memory, in bytes."""
        return self.dtype.itemsize

    @property
    def is_float(self) -> bool:
        return self.kind is Kind.FLOAT

    @property
    def is_integer(self) -> bool:
        return self.kind in (Kind.SIGNED, Kind.UNSIGNED)

    @property
    def is_signed(self) -> bool:
        return self.kind is Kind.SIGNED

    @property
    def is_complex(self) -> bool:
        return self.kind is Kind.COMPLEX

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return self.name.upper()


def _element(name: str, kind: Kind, bits: int, dtype: npt.DTypeLike) -> ElementType:
    return ElementType(name, kind, bits, np.dtype(dtype))


PRED = _element("pred", Kind.PRED, 8, np.bool_)
S2 = _element("s2", Kind.SIGNED, 2, ml_dtypes.int2)
S4 = _element("s4", Kind.SIGNED, 4, ml_dtypes.int4)
S8 = _element("s8", Kind.SIGNED, 8, np.int8)
S16 = _element("s16", Kind.SIGNED, 16, np.int16)
S32 = _element("s32", Kind.SIGNED, 32, np.int32)
S64 = _element("s64", Kind.SIGNED, 64, np.int64)
U2 = _element("u2", Kind.UNSIGNED, 2, ml_dtypes.uint2)
U4 = _element("u4", Kind.UNSIGNED, 4, ml_dtypes.uint4)
U8 = _element("u8", Kind.UNSIGNED, 8, np.uint8)
U16 = _element("u16", Kind.UNSIGNED, 16, np.uint16)
U32 = _element("u32", Kind.UNSIGNED, 32, np.uint32)
U64 = _element("u64", Kind.UNSIGNED, 64, np.uint64)
F4E2M1FN = _element("f4e2m1fn", Kind.FLOAT, 4, ml_dtypes.float4_e2m1fn)
F8E4M3FN = _element("f8e4m3fn", Kind.FLOAT, 8, ml_dtypes.float8_e4m3fn)
F8E4M3FNUZ = _element("f8e4m3fnuz", Kind.FLOAT, 8, ml_dtypes.float8_e4m3fnuz)
F8E5M2 = _element("f8e5m2", Kind.FLOAT, 8, ml_dtypes.float8_e5m2)
F8E5M2FNUZ = _element("f8e5m2fnuz", Kind.FLOAT, 8, ml_dtypes.float8_e5m2fnuz)
F8E8M0FNU = _element("f8e8m0fnu", Kind.FLOAT, 8, ml_dtypes.float8_e8m0fnu)
BF16 = _element("bf16", Kind.FLOAT, 16, ml_dtypes.bfloat16)
F16 = _element("f16", Kind.FLOAT, 16, np.float16)
F32 = _element("f32", Kind.FLOAT, 32, np.float32)
F64 = _element("f64", Kind.FLOAT, 64, np.float64)
C64 = _element("c64", Kind.COMPLEX, 64, np.complex64)
C128 = _element("c128", Kind.COMPLEX, 128, np.complex128)

ELEMENT_TYPES: dict[str, ElementType] = {
    e.name: e
    for e in (
        *(PRED, S2, S4, S8, S16, S32, S64, U2, U4, U8, U16, U32, U64),
        *(F4E2M1FN, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0FNU),
        *(BF16, F16, F32, F64, C64, C128),
    )
}
_BY_DTYPE = {e.dtype: e for e in ELEMENT_TYPES.values()}


def element_of(dtype: npt.DTypeLike) -> ElementType:
    """The element type that a numpy (or ml_dtypes) dtype carries. Raises HloError for others."""
    native = np.dtype(dtype).newbyteorder("=")
    if native not in _BY_DTYPE:
        raise HloError(f"no element type for numpy dtype {np.dtype(dtype)}")
    return _BY_DTYPE[native]


@dataclass(frozen=True)
class TensorType:
    """The type of an array: element type and static shape."""

    element: ElementType
    shape: Shape = ()

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """Bytes of the dense array."""
        return self.size * self.element.bytes

    def with_shape(self, shape: Sequence[int]) -> "TensorType":
        return TensorType(self.element, tuple(shape))

    def with_size(self, dimension: int, size: int) -> "TensorType":
        return self.with_shape((*self.shape[:dimension], size, *self.shape[dimension + 1 :]))

    def with_element(self, element: ElementType) -> "TensorType":
        return TensorType(element, self.shape)

    def __str__(self) -> str:
        layout = ",".join(str(d) for d in reversed(range(self.rank)))
        return f"{self.element}[{','.join(map(str, self.shape))}]" + (f"{{{layout}}}" if layout else "")


@dataclass(frozen=True)
class TupleType:
    """The type of a tuple of values."""

    elements: tuple["Type", ...]

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.elements))})"


Type: TypeAlias = TensorType | TupleType
Value: TypeAlias = Any
"""What the evaluator computes: a numpy array for a TensorType, a Python tuple for a TupleType."""


def type_of(array: Array) -> TensorType:
    """The tensor type of a numpy array."""
    return TensorType(element_of(array.dtype), tuple(int(n) for n in array.shape))


def row_major_strides(shape: Shape) -> Shape:
    """Elements to step for each dimension of a dense row-major array of `shape`."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))
