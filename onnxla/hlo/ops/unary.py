"""Elementwise operations of one operand. Results have the operand's type, unless `infer` says otherwise."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from onnxla.hlo.numerics import narrow, unsigned_bits
from onnxla.hlo.ops.elementwise import BITS, FLOATS, FRACTIONAL, INTEGERS, NUMBERS, SIGNED_NUMBERS, Unary
from onnxla.hlo.types import C64, F32, F64, PRED, Array, ElementType, Kind, TensorType, element_of


def real_part(element: ElementType) -> ElementType:
    """The type of the parts of a complex number; other types are their own."""
    return (F32 if element is C64 else F64) if element.is_complex else element


# Sign and parts


@dataclass(frozen=True)
class Abs(Unary, name="abs"):
    """|x|, real for complex numbers; the least integer stays as it is."""

    kinds: ClassVar[frozenset[Kind]] = SIGNED_NUMBERS
    idempotent: ClassVar[bool] = True

    def infer(self, operand: TensorType) -> TensorType:
        self.require_kind(operand)
        return operand.with_element(real_part(operand.element))

    def compute(self, x: Array) -> Array:
        return np.abs(x)


@dataclass(frozen=True)
class Negate(Unary, name="negate"):
    """-x; integers wrap."""

    kinds: ClassVar[frozenset[Kind]] = NUMBERS

    def compute(self, x: Array) -> Array:
        return np.negative(x)


@dataclass(frozen=True)
class Sign(Unary, name="sign"):
    """-1, 0 or 1; zeros and NaN stay as they are; x / |x| for complex numbers."""

    kinds: ClassVar[frozenset[Kind]] = SIGNED_NUMBERS
    idempotent: ClassVar[bool] = True

    def compute(self, x: Array) -> Array:
        return np.where(x == 0, x, np.sign(x))


@dataclass(frozen=True)
class Real(Unary, name="real"):
    """The real part; a real number is its own."""

    kinds: ClassVar[frozenset[Kind]] = FRACTIONAL

    def infer(self, operand: TensorType) -> TensorType:
        self.require_kind(operand)
        return operand.with_element(real_part(operand.element))

    def compute(self, x: Array) -> Array:
        return np.array(x.real)


@dataclass(frozen=True)
class Imag(Unary, name="imag"):
    """The imaginary part; 0 for a real number."""

    kinds: ClassVar[frozenset[Kind]] = FRACTIONAL

    def infer(self, operand: TensorType) -> TensorType:
        self.require_kind(operand)
        return operand.with_element(real_part(operand.element))

    def compute(self, x: Array) -> Array:
        return np.array(x.imag)


# Rounding


@dataclass(frozen=True)
class Floor(Unary, name="floor"):
    """The greatest whole number not above x."""

    kinds: ClassVar[frozenset[Kind]] = FLOATS
    idempotent: ClassVar[bool] = True

    def compute(self, x: Array) -> Array:
        return np.floor(x)


@dataclass(frozen=True)
class Ceil(Unary, name="ceil"):
    """The least whole number not below x."""

    kinds: ClassVar[frozenset[Kind]] = FLOATS
    idempotent: ClassVar[bool] = True

    def compute(self, x: Array) -> Array:
        return np.ceil(x)


@dataclass(frozen=True)
class RoundNearestEven(Unary, name="round-nearest-even"):
    """The nearest whole number; halves go to the even one."""

    kinds: ClassVar[frozenset[Kind]] = FLOATS
    idempotent: ClassVar[bool] = True

    def compute(self, x: Array) -> Array:
        return np.rint(x)


@dataclass(frozen=True)
class RoundNearestAwayFromZero(Unary, name="round-nearest-afz"):
    """The nearest whole number; halves go away from zero."""

    kinds: ClassVar[frozenset[Kind]] = FLOATS
    idempotent: ClassVar[bool] = True

    def compute(self, x: Array) -> Array:
        size = np.abs(x)
        whole = np.floor(size)
        return np.asarray(np.copysign(whole + (size - whole >= 0.5), x))


# Powers, exponentials and logarithms


@dataclass(frozen=True)
class Sqrt(Unary, name="sqrt"):
    """The square root; NaN below 0, -0 of -0."""

    kinds: ClassVar[frozenset[Kind]] = FRACTIONAL

    def compute(self, x: Array) -> Array:
        return np.sqrt(x)


@dataclass(frozen=True)
class Rsqrt(Unary, name="rsqrt"):
    """1 / sqrt(x)."""

    kinds: ClassVar[frozenset[Kind]] = FRACTIONAL

    def compute(self, x: Array) -> Array:
        return np.asarray(1 / np.sqrt(x))


@dataclass(frozen=True)
class Cbrt(Unary, name="cbrt"):
    """The cube root, of negative numbers too."""

    kinds: ClassVar[frozenset[Kind]] = FLOATS

    def compute(self, x: Array) -> Array:
        return np.cbrt(x)


@dataclass(frozen=True)
class Exponential(Unary, name="exponential"):
    """e to the x."""

    kinds: ClassVar[frozenset[Kind]] = FRACTIONAL

    def compute(self, x: Array) -> Array:
        return np.exp(x)


@dataclass(frozen=True)
class ExponentialMinusOne(Unary, name="exponential-minus-one"):
    """e to the x, minus 1, accurate near 0."""

    kinds: ClassVar[frozenset[Kind]] = FRACTIONAL

    def compute(self, x: Array) -> Array:
        return np.expm1(x)


@dataclass(frozen=True)
class Log(Unary, name="log"):
    """The natural logarithm; -infinity at 0, NaN below."""

    kinds: ClassVar[frozenset[Kind]] = FRACTIONAL

    def compute(self, x: Array) -> Array:
        return np.log(x)


@dataclass(frozen=True)
class LogPlusOne(Unary, name="log-plus-one"):
    """log(1 + x), accurate near 0."""

    kinds: ClassVar[frozenset[Kind]] = FRACTIONAL

    def compute(self, x: Array) -> Array:
        return np.log1p(x)


@dataclass(frozen=True)
class Logistic(Unary, name="logistic"):
    """1 / (1 + exp(-x))."""

    kinds: ClassVar[frozenset[Kind]] = FRACTIONAL

    def compute(self, x: Array) -> Array:
        if np.iscomplexobj(x):
            return 1 / (1 + np.exp(-x))
        small = np.exp(-np.abs(x))
        return np.asarray(np.where(x < 0, small, x.dtype.type(1)) / (1 + small))


_erf = np.frompyfunc(math.erf, 1, 1)


@dataclass(frozen=True)
class Erf(Unary, name="erf"):
    """The Gauss error function."""

    kinds: ClassVar[frozenset[Kind]] = FLOATS

    def compute(self, x: Array) -> Array:
        return np.asarray(_erf(x.astype(np.float64))).astype(x.dtype)


# Trigonometric and hyperbolic functions


@dataclass(frozen=True)
class Sine(Unary, name="sine"):
    """sin x, x in radians."""

    kinds: ClassVar[frozenset[Kind]] = FRACTIONAL

    def compute(self, x: Array) -> Array:
        return np.sin(x)


@dataclass(frozen=True)
class Cosine(Unary, name="cosine"):
    """cos x, x in radians."""

    kinds: ClassVar[frozenset[Kind]] = FRACTIONAL

    def compute(self, x: Array) -> Array:
        return np.cos(x)


@dataclass(frozen=True)
class Tan(Unary, name="tan"):
    """tan x, x in radians."""

    kinds: ClassVar[frozenset[Kind]] = FRACTIONAL

    def compute(self, x: Array) -> Array:
        return np.tan(x)


@dataclass(frozen=True)
class Asin(Unary, name="asin"):
    """The angle in [-pi/2, pi/2] whose sine is x; NaN outside [-1, 1]."""

    kinds: ClassVar[frozenset[Kind]] = FRACTIONAL

    def compute(self, x: Array) -> Array:
        return np.arcsin(x)


@dataclass(frozen=True)
class Acos(Unary, name="acos"):
    """The angle in [0, pi] whose cosine is x; NaN outside [-1, 1]."""

    kinds: ClassVar[frozenset[Kind]] = FRACTIONAL

    def compute(self, x: Array) -> Array:
        return np.arccos(x)


@dataclass(frozen=True)
class Sinh(Unary, name="sinh"):
    """The hyperbolic sine."""

    kinds: ClassVar[frozenset[Kind]] = FRACTIONAL

    def compute(self, x: Array) -> Array:
        return np.sinh(x)


@dataclass(frozen=True)
class Cosh(Unary, name="cosh"):
    """The hyperbolic cosine."""

    kinds: ClassVar[frozenset[Kind]] = FRACTIONAL

    def compute(self, x: Array) -> Array:
        return np.cosh(x)


@dataclass(frozen=True)
class Tanh(Unary, name="tanh"):
    """The hyperbolic tangent."""

    kinds: ClassVar[frozenset[Kind]] = FRACTIONAL

    def compute(self, x: Array) -> Array:
        return np.tanh(x)


@dataclass(frozen=True)
class Asinh(Unary, name="asinh"):
    """The inverse of sinh."""

    kinds: ClassVar[frozenset[Kind]] = FRACTIONAL

    def compute(self, x: Array) -> Array:
        return np.arcsinh(x)


@dataclass(frozen=True)
class Acosh(Unary, name="acosh"):
    """The inverse of cosh; NaN below 1."""

    kinds: ClassVar[frozenset[Kind]] = FRACTIONAL

    def compute(self, x: Array) -> Array:
        return np.arccosh(x)


@dataclass(frozen=True)
class Atanh(Unary, name="atanh"):
    """The inverse of tanh; NaN outside [-1, 1]."""

    kinds: ClassVar[frozenset[Kind]] = FRACTIONAL

    def compute(self, x: Array) -> Array:
        return np.arctanh(x)


# Bits and tests


@dataclass(frozen=True)
class IsFinite(Unary, name="is-finite"):
    """Neither infinite nor NaN; the result is pred."""

    kinds: ClassVar[frozenset[Kind]] = FLOATS

    def infer(self, operand: TensorType) -> TensorType:
        self.require_kind(operand)
        return operand.with_element(PRED)

    def compute(self, x: Array) -> Array:
        return np.isfinite(x)


@dataclass(frozen=True)
class Not(Unary, name="not"):
    """Every bit inverted; logical for pred."""

    kinds: ClassVar[frozenset[Kind]] = BITS

    def compute(self, x: Array) -> Array:
        return np.invert(x)


@dataclass(frozen=True)
class PopulationCount(Unary, name="popcnt"):
    """The number of bits that are set."""

    kinds: ClassVar[frozenset[Kind]] = INTEGERS

    def evaluate(self, operand: Array) -> Array:
        return narrow(np.bitwise_count(unsigned_bits(operand)), element_of(operand.dtype))


@dataclass(frozen=True)
class CountLeadingZeros(Unary, name="count-leading-zeros"):
    """The number of zero bits above the highest bit that is set."""

    kinds: ClassVar[frozenset[Kind]] = INTEGERS

    def evaluate(self, operand: Array) -> Array:
        element, bits = element_of(operand.dtype), unsigned_bits(operand)
        used = np.zeros(operand.shape, np.uint8)
        for place in range(element.bits):
            used += bits >> bits.dtype.type(place) != 0
        return narrow(np.uint8(element.bits) - used, element)
