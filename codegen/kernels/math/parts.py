"""What the functions are made of: polynomials, powers of two, signs, and arithmetic in pairs of numbers.

A pair (high, low) stands for the sum of its halves, with `low` below half a last place of `high`:
twice the precision (Dekker 1971). Products and sums of the kernel IR may be contracted into one
rounding, which would spoil the errors computed here, so pairs add with `fma(x, 1, y)`.
"""

import math
from collections.abc import Callable, Sequence

from onnxla.codegen.kernels.builder import KernelBuilder
from onnxla.codegen.kernels.ir import Value
from onnxla.hlo.types import F32, F64, S32, S64, U32, U64, ElementType

Pair = tuple[Value, Value]


def integer_of(element: ElementType) -> tuple[ElementType, int, int]:
    """The signed integer type of a float's width, its mantissa bits and its exponent bias."""
    return (S32, 23, 127) if element is F32 else (S64, 52, 1023)


def number(b: KernelBuilder, value: float, like: Value) -> Value:
    """A constant of the type of another value."""
    return b.const(value, like.element)


def polynomial(b: KernelBuilder, x: Value, coefficients: Sequence[float]) -> Value:
    """A polynomial whose highest power comes first, one rounding a step where the machine can.

    Even and odd powers go by Horner's scheme side by side, so that the steps which wait for each other are half as
    many: in an epilogue a function is bound by its latency.
    """
    if len(coefficients) < 5:
        return _horner(b, x, coefficients)
    square = b.mul(x, x)
    even, odd = (_horner(b, square, coefficients[::-1][k::2][::-1]) for k in (0, 1))
    return b.multiply_add(odd, x, even)


def _horner(b: KernelBuilder, x: Value, coefficients: Sequence[float]) -> Value:
    total = b.const(coefficients[0], x.element, x.lanes)
    for c in coefficients[1:]:
        total = b.multiply_add(total, x, b.const(c, x.element))
    return total


def assemble(b: KernelBuilder, m: Value, n: Value, overflows: bool = True) -> Value:
    """m * 2**n for m in [1/2, 2) and an integer n, rounded once, with infinity above (unless it never overflows) and
    subnormals below.

    Done on the bits: a product that underflows would cost a hundred times as much, and the exponential of
    a masked score always does.
    """
    integer, fraction, bias = integer_of(m.element)
    bits = fraction + bias - 1  # the smallest subnormal number is 2**-bits
    moved = b.add(b.bitcast(m, integer), b.binary("shl", n, b.const(fraction, integer)))
    normal = b.min(moved, b.bitcast(number(b, math.inf, m), integer)) if overflows else moved
    # below the normal range the result is m * 2**(n + bits) rounded to an integer, which adding 2**fraction does
    units = b.bitcast(b.add(moved, b.const(bits << fraction, integer)), m.element)
    shifter = number(b, 2.0**fraction, m)
    subnormal = b.sub(b.bitcast(b.add(units, shifter), integer), b.bitcast(shifter, integer))
    return b.bitcast(b.select(b.compare("LT", moved, b.const(1 << fraction, integer)), subnormal, normal), m.element)


def scale_by_power_of_two(b: KernelBuilder, x: Value, n: Value) -> Value:
    """x * 2**n for an integer n, in two steps so that subnormal results round once."""
    integer, mantissa, bias = integer_of(x.element)
    half = b.binary("shr", n, b.const(1, integer))
    for part in (half, b.sub(n, half)):
        power = b.binary("shl", b.add(part, b.const(bias, integer)), b.const(mantissa, integer))
        x = b.mul(x, b.bitcast(power, x.element))
    return x


def nearest_integer(b: KernelBuilder, x: Value, factor: float) -> tuple[Value, Value]:
    """`x * factor` rounded to the nearest integer, as a float and as an integer; below 2**22 (2**51) in size.

    Adding 1.5 * 2**23 leaves the integer in the last bits of the sum, which costs no conversion and
    no rounding instruction. NaN stays NaN; its integer is arbitrary.
    """
    integer, mantissa, _ = integer_of(x.element)
    shifter = number(b, 1.5 * 2.0**mantissa, x)
    shifted = b.multiply_add(x, number(b, factor, x), shifter)
    return b.sub(shifted, shifter), b.sub(b.bitcast(shifted, integer), b.bitcast(shifter, integer))


def copy_sign(b: KernelBuilder, size: Value, sign: Value) -> Value:
    """The magnitude of one number with the sign bit of another."""
    return flip_sign(b, b.unary("abs", size), sign_bit(b, sign))


def sign_bit(b: KernelBuilder, x: Value) -> Value:
    """The sign bit alone, in an unsigned integer of x's width."""
    unsigned = U32 if x.element is F32 else U64
    return b.and_(b.bitcast(x, unsigned), b.const(1 << (unsigned.bits - 1), unsigned))


def flip_sign(b: KernelBuilder, x: Value, bit: Value) -> Value:
    """x with its sign bit inverted where `bit` (an unsigned integer) has that bit."""
    return b.bitcast(b.binary("xor", b.bitcast(x, bit.element), bit), x.element)


def is_negative(b: KernelBuilder, x: Value) -> Value:
    """Whether the sign bit is set, also for -0 and NaN."""
    integer, _, _ = integer_of(x.element)
    return b.compare("LT", b.bitcast(x, integer), b.const(0, integer))


def in_f64(function: Callable[..., Value]) -> Callable[..., Value]:
    """The function computed in f64 also for f32, where one rounding at the end is nearly all the error."""

    def computed(b: KernelBuilder, *operands: Value) -> Value:
        element = operands[0].element
        return b.convert(function(b, *(b.convert(x, F64) for x in operands)), element)

    computed.__doc__ = function.__doc__
    return computed


# Pairs


def plus(b: KernelBuilder, x: Value, y: Value) -> Value:
    """x + y, rounded by itself whatever stands around it."""
    return b.fma(x, number(b, 1.0, x), y)


def minus(b: KernelBuilder, x: Value, y: Value) -> Value:
    """x - y, rounded by itself."""
    return b.fma(y, number(b, -1.0, x), x)


def two_sum(b: KernelBuilder, x: Value, y: Value) -> Pair:
    """The rounded sum and its error, exactly (Knuth)."""
    high = plus(b, x, y)
    back = minus(b, high, x)
    return high, plus(b, minus(b, x, minus(b, high, back)), minus(b, y, back))


def fast_two_sum(b: KernelBuilder, x: Value, y: Value) -> Pair:
    """The same for |x| >= |y| or x = 0 (Dekker)."""
    high = plus(b, x, y)
    return high, minus(b, y, minus(b, high, x))


def two_product(b: KernelBuilder, x: Value, y: Value) -> Pair:
    """The rounded product and its error, exactly, unless it underflows."""
    high = b.mul(x, y)
    return high, b.fma(x, y, b.unary("neg", high))


def pair_product(b: KernelBuilder, x: Pair, y: Pair) -> Pair:
    """The product of two pairs, to about 2**-100 of its size in f64."""
    high, low = two_product(b, x[0], y[0])
    return high, b.fma(x[0], y[1], b.fma(x[1], y[0], low))
