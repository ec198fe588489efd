"""Elementwise operations of two operands of one type."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from onnxla.hlo.numerics import integer_divide, integer_power, integer_remainder, narrow, unsigned_bits
from onnxla.hlo.op import require
from onnxla.hlo.ops.elementwise import ANY, BITS, FLOATS, INTEGERS, NUMBERS, ORDERED, Binary
from onnxla.hlo.types import C64, C128, F32, F64, Array, Kind, TensorType, element_of

# Arithmetic


@dataclass(frozen=True)
class Add(Binary, name="add"):
    """a + b; integers wrap, pred is `or`."""

    kinds: ClassVar[frozenset[Kind]] = ANY
    commutative: ClassVar[bool] = True
    associative: ClassVar[bool] = True

    def compute(self, a: Array, b: Array) -> Array:
        return np.add(a, b)


@dataclass(frozen=True)
class Subtract(Binary, name="subtract"):
    """a - b; integers wrap."""

    kinds: ClassVar[frozenset[Kind]] = NUMBERS

    def compute(self, a: Array, b: Array) -> Array:
        return np.subtract(a, b)


@dataclass(frozen=True)
class Multiply(Binary, name="multiply"):
    """a * b; integers wrap, pred is `and`."""

    kinds: ClassVar[frozenset[Kind]] = ANY
    commutative: ClassVar[bool] = True
    associative: ClassVar[bool] = True

    def compute(self, a: Array, b: Array) -> Array:
        return np.multiply(a, b)


@dataclass(frozen=True)
class Divide(Binary, name="divide"):
    """a / b. Integers round towards zero, x / 0 has all bits set, the least integer / -1 is itself."""

    kinds: ClassVar[frozenset[Kind]] = NUMBERS

    def compute(self, a: Array, b: Array) -> Array:
        return integer_divide(a, b) if a.dtype.kind in "iu" else np.divide(a, b)


@dataclass(frozen=True)
class Remainder(Binary, name="remainder"):
    """The sign follows the dividend, as C's fmod and %; an integer x % 0 is x."""

    kinds: ClassVar[frozenset[Kind]] = INTEGERS | FLOATS

    def compute(self, a: Array, b: Array) -> Array:
        return integer_remainder(a, b) if a.dtype.kind in "iu" else np.fmod(a, b)


@dataclass(frozen=True)
class Power(Binary, name="power"):
    """a to the b. Integers wrap; for a negative b the result is 1 / a ** -b rounded towards zero."""

    kinds: ClassVar[frozenset[Kind]] = NUMBERS

    def compute(self, a: Array, b: Array) -> Array:
        return integer_power(a, b) if a.dtype.kind in "iu" else np.power(a, b)


@dataclass(frozen=True)
class Maximum(Binary, name="maximum"):
    """The greater; NaN when one is NaN."""

    kinds: ClassVar[frozenset[Kind]] = ORDERED
    commutative: ClassVar[bool] = True
    associative: ClassVar[bool] = True
    idempotent: ClassVar[bool] = True

    def compute(self, a: Array, b: Array) -> Array:
        return np.maximum(a, b)


@dataclass(frozen=True)
class Minimum(Binary, name="minimum"):
    """The lesser; NaN when one is NaN."""

    kinds: ClassVar[frozenset[Kind]] = ORDERED
    commutative: ClassVar[bool] = True
    associative: ClassVar[bool] = True
    idempotent: ClassVar[bool] = True

    def compute(self, a: Array, b: Array) -> Array:
        return np.minimum(a, b)


@dataclass(frozen=True)
class Atan2(Binary, name="atan2"):
    """The angle of the point (b, a), in [-pi, pi]."""

    kinds: ClassVar[frozenset[Kind]] = FLOATS

    def compute(self, a: Array, b: Array) -> Array:
        return np.arctan2(a, b)


@dataclass(frozen=True)
class Complex(Binary, name="complex"):
    """The complex number a + ib."""

    kinds: ClassVar[frozenset[Kind]] = FLOATS

    def infer(self, lhs: TensorType, rhs: TensorType) -> TensorType:
        require(lhs == rhs and lhs.element in (F32, F64), f"complex needs two f32 or f64 operands, got {lhs}, {rhs}")
        return lhs.with_element(C64 if lhs.element is F32 else C128)

    def compute(self, a: Array, b: Array) -> Array:
        result = np.empty(a.shape, np.complex64 if a.dtype == np.float32 else np.complex128)
        result.real, result.imag = a, b
        return result


# Bits


@dataclass(frozen=True)
class And(Binary, name="and"):
    """Bitwise; logical for pred."""

    kinds: ClassVar[frozenset[Kind]] = BITS
    commutative: ClassVar[bool] = True
    associative: ClassVar[bool] = True
    idempotent: ClassVar[bool] = True

    def compute(self, a: Array, b: Array) -> Array:
        return np.bitwise_and(a, b)


@dataclass(frozen=True)
class Or(Binary, name="or"):
    """Bitwise; logical for pred."""

    kinds: ClassVar[frozenset[Kind]] = BITS
    commutative: ClassVar[bool] = True
    associative: ClassVar[bool] = True
    idempotent: ClassVar[bool] = True

    def compute(self, a: Array, b: Array) -> Array:
        return np.bitwise_or(a, b)


@dataclass(frozen=True)
class Xor(Binary, name="xor"):
    """Bitwise; logical for pred."""

    kinds: ClassVar[frozenset[Kind]] = BITS
    commutative: ClassVar[bool] = True
    associative: ClassVar[bool] = True

    def compute(self, a: Array, b: Array) -> Array:
        return np.bitwise_xor(a, b)


@dataclass(frozen=True)
class Shift(Binary):
    """The base of shifts. The distance counts as unsigned; at or beyond the width every bit is shifted out."""

    kinds: ClassVar[frozenset[Kind]] = INTEGERS

    def distance(self, b: Array) -> tuple[Array, Array]:
        """The distance, 0 where it is too far, and whether it is."""
        bits = unsigned_bits(b)
        far = bits >= element_of(b.dtype).bits
        return np.where(far, bits.dtype.type(0), bits), far


@dataclass(frozen=True)
class ShiftLeft(Shift, name="shift-left"):
    """a * 2**b, wrapping; 0 when b is beyond the width."""

    def evaluate(self, lhs: Array, rhs: Array) -> Array:
        bits, (steps, far) = unsigned_bits(lhs), self.distance(rhs)
        return narrow(np.where(far, bits.dtype.type(0), bits << steps), element_of(lhs.dtype))


@dataclass(frozen=True)
class ShiftRightLogical(Shift, name="shift-right-logical"):
    """Zeros move in from above; 0 when b is beyond the width."""

    def evaluate(self, lhs: Array, rhs: Array) -> Array:
        bits, (steps, far) = unsigned_bits(lhs), self.distance(rhs)
        return narrow(np.where(far, bits.dtype.type(0), bits >> steps), element_of(lhs.dtype))


@dataclass(frozen=True)
class ShiftRightArithmetic(Shift, name="shift-right-arithmetic"):
    """Copies of the sign bit move in from above; nothing else is left when b is beyond the width."""

    def evaluate(self, lhs: Array, rhs: Array) -> Array:
        element, (steps, far) = element_of(lhs.dtype), self.distance(rhs)
        wide = lhs.astype(np.int64) if element.bits < 64 else lhs.view(np.int64)
        if not element.is_signed and element.bits < 64:
            # the top bit counts as a sign here too
            wide = wide - ((wide >> (element.bits - 1)) << element.bits)
        shifted = wide >> np.where(far, element.bits - 1, steps).astype(np.int64)
        return narrow(shifted, element)
