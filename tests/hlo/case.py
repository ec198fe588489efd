"""What a case of the operation tables is, and the values it is run on."""

import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Computation, Instruction
from onnxla.hlo.numerics import integer_limits
from onnxla.hlo.types import (
    BF16,
    C64,
    C128,
    F16,
    F32,
    F64,
    PRED,
    S4,
    S8,
    S16,
    S32,
    S64,
    U4,
    U8,
    U16,
    U32,
    U64,
    Array,
    ElementType,
    Kind,
    Shape,
    TensorType,
    type_of,
)

FLOATS = (F32, F64, F16, BF16)
INTEGERS = (S8, S16, S32, S64, U8, U16, U32, U64)
NARROW = (S4, U4)
COMPLEX = (C64, C128)
SHAPES: tuple[Shape, ...] = ((), (1,), (0,), (3, 5), (2, 0, 3))

Build = Callable[..., Instruction]


@dataclass(frozen=True)
class Case:
    """A computation and arguments for it."""

    name: str
    build: Build
    """`build(builder, *parameters)` gives the root."""
    arguments: tuple[Array, ...]
    ulps: float = 0.0

    def computation(self) -> Computation:
        b = Builder("case")
        parameters = [b.parameter(type_of(a)) for a in self.arguments]
        return b.build(self.build(b, *parameters))


def random(element: ElementType, shape: Shape, seed: object = 0) -> Array:
    """Moderate values of any type, the same for the same arguments."""
    rng = np.random.default_rng(zlib.crc32(repr((element.name, shape, seed)).encode()))
    if element is PRED:
        return np.asarray(rng.integers(0, 2, shape)).astype(np.bool_)
    if element.is_integer:
        low, high = integer_limits(element)
        return np.asarray(rng.integers(max(low, -9), min(high, 9) + 1, shape)).astype(element.dtype)
    if element.is_complex:
        return np.asarray(rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(element.dtype)
    return np.asarray(rng.normal(size=shape) * 2).astype(np.float32).astype(element.dtype)


_EDGE_FLOATS = (
    *(0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, np.inf, -np.inf, np.nan),
    *(3.7, -3.7, 0.3, 88.0, 1e-3, -1e-3, 1000.0, -1000.0, 65000.0, 0.99, 7.25),
)


def edges(element: ElementType) -> Array:
    """Values where operations are apt to go wrong."""
    if element is PRED:
        return np.array([False, True])
    if element.is_integer:
        low, high = integer_limits(element)
        values = {low, low + 1, -3, -2, -1, 0, 1, 2, 3, 5, element.bits - 1, element.bits, high // 3, high - 1, high}
        return (
            np.array([v for v in sorted(values) if low <= v <= high], np.object_)
            .astype(np.int64 if element.is_signed else np.uint64)
            .astype(element.dtype)
        )
    if element.is_complex:
        return np.array([0, 1, -1, 1j, -1j, 1 + 2j, -3 + 0.5j, 0.25 - 0.75j, 2 - 3j]).astype(element.dtype)
    info_max = {F16: 65504.0, BF16: 3.38e38, F32: 3.4e38, F64: 1.7e308}.get(element, 240.0)
    return np.array([*_EDGE_FLOATS, info_max, -info_max]).astype(np.float64).astype(element.dtype)


def elements_of(kinds: frozenset[Kind]) -> list[ElementType]:
    """The types with arithmetic, of these kinds."""
    known = (PRED, *NARROW, *INTEGERS, *FLOATS, *COMPLEX)
    return [e for e in known if e.kind in kinds]


def order_of(key: Instruction, direction: str, *others: Instruction) -> Computation:
    """The comparator of a sort by its first operand."""
    b = Builder(f"order_{direction}")
    pairs = [
        (b.parameter(TensorType(o.tensor_type.element)), b.parameter(TensorType(o.tensor_type.element)))
        for o in (key, *others)
    ]
    return b.build(b.compare(*pairs[0], direction))
