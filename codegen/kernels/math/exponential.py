"""e**x, its inverse, and their relatives near 0."""

import math

from onnxla.codegen.kernels.builder import KernelBuilder
from onnxla.codegen.kernels.ir import Value
from onnxla.codegen.kernels.math.eighths import split_power
from onnxla.codegen.kernels.math.parts import (
    assemble,
    integer_of,
    nearest_integer,
    number,
    polynomial,
    scale_by_power_of_two,
)
from onnxla.hlo.types import F32, S32

LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
"""log(2) in two parts; the high one has 33 bits, so that its product with an exponent is exact."""
LN2_HIGH_F32, LN2_LOW_F32 = 0.693359375, -2.12194440e-4
LOG2_E = 1.4426950408889634
_POWER_OF_TWO_F32 = (
    1.532308233e-04, 1.339743612e-03, 9.618558921e-03, 5.550337583e-02, 2.402264625e-01, 6.931471825e-01,
)  # fmt: skip
"""(2**x - 1) / x for |x| <= 1/2 (2**-29 of 2**x)."""


def exponential(b: KernelBuilder, x: Value) -> Value:
    """e**x within 1 ulp, subnormal results included (f32: a minimax polynomial; f64: Taylor's, 13 terms)."""
    low, high = (-104.0, 89.0) if x.element is F32 else (-746.0, 710.0)
    inside = b.min(number(b, high, x), b.max(number(b, low, x), x))
    mantissa, n = _exponential(b, inside)
    return b.select(b.compare("NE", x, x), x, assemble(b, mantissa, n))


def half_exponential(b: KernelBuilder, x: Value) -> Value:
    """e**x / 2 for x >= 0 within 1 ulp; it overflows only where twice it would, one power of two later."""
    x = b.min(number(b, 90.0 if x.element is F32 else 711.0, x), x)
    mantissa, n = _exponential(b, x)
    return scale_by_power_of_two(b, mantissa, b.sub(n, b.const(1, n.element)))


def exponential_of_negative(b: KernelBuilder, x: Value) -> Value:
    """e**x for x <= 0 within 1 ulp down to the smallest normal number, which all below it gives."""
    mantissa, n = _exponential(b, b.max(number(b, -87.3 if x.element is F32 else -708.3, x), x))
    integer, bits, _ = integer_of(x.element)
    return b.bitcast(b.add(b.bitcast(mantissa, integer), b.binary("shl", n, b.const(bits, integer))), x.element)


def exponential_up_to_one(b: KernelBuilder, x: Value) -> Value:
    """e**x for x <= 0 within 1 ulp; 0 where that is below 0.7 times the smallest normal number, and maybe where it is
    below 1.1 times that. NaN stays NaN."""
    inside = b.max(number(b, -87.9 if x.element is F32 else -709.2, x), x)  # there the power's exponent field is 0
    if b.looks_up and x.element is F32:
        bits, excess = split_power(b, inside, 1.0, 0)
        is_normal = b.compare("GE", bits, b.const(1 << 23, S32))
        p = b.bitcast(b.select(is_normal, bits, b.const(0, S32)), F32)
        return b.multiply_add(p, excess, p)
    r, power = remainder_and_power(b, inside, 1.0, 0)
    one = number(b, 1.0, x)
    return b.mul(b.multiply_add(b.multiply_add(polynomial(b, r, exponential_tail(x)), r, one), r, one), power)


def power_of_two_up_to_one(b: KernelBuilder, x: Value) -> Value:
    """2**x in f32 for -127.49 < x <= 0 within 1 ulp; 0 below -126.5. NaN stays NaN."""
    shifter = number(b, 1.5 * 2.0**23 + 127, x)
    shifted = b.add(x, shifter)  # its last bits are the exponent field of the power
    power = b.bitcast(b.binary("shl", b.bitcast(shifted, S32), b.const(23, S32)), F32)
    r = b.sub(x, b.sub(shifted, shifter))
    return b.mul(b.multiply_add(polynomial(b, r, _POWER_OF_TWO_F32), r, number(b, 1.0, x)), power)


def _reduced(b: KernelBuilder, x: Value) -> tuple[Value, Value, Value]:
    """r, (e**r - 1 - r) / r**2 and n with x = n * log(2) + r and |r| < 0.35."""
    whole, n = nearest_integer(b, x, LOG2_E)
    r = _remainder(b, x, whole, 1.0)
    return r, polynomial(b, r, exponential_tail(x)), n


def _remainder(b: KernelBuilder, x: Value, whole: Value, sign: float) -> Value:
    """x - sign * whole * log(2), with more bits than a product would keep."""
    first, second = (LN2_HIGH_F32, LN2_LOW_F32) if x.element is F32 else (LN2_HIGH, LN2_LOW)
    r = b.multiply_add(whole, number(b, -sign * first, x), x)
    return b.multiply_add(whole, number(b, -sign * second, x), r)


def exponential_tail(x: Value) -> list[float]:
    """(e**r - 1 - r) / r**2 for |r| < 0.35, the highest power first (f32: minimax, 2**-28; f64: Taylor's)."""
    if x.element is F32:
        return [1.3814173952e-3, 8.3689218006e-3, 4.1668407977e-2, 1.6666518939e-1, 4.9999993333e-1]
    return [1.0 / math.factorial(k) for k in range(13, 1, -1)]


def _exponential(b: KernelBuilder, x: Value) -> tuple[Value, Value]:
    """m and n with e**x = m * 2**n and m near 1."""
    r, tail, n = _reduced(b, x)
    one = number(b, 1.0, x)
    return b.multiply_add(b.multiply_add(tail, r, one), r, one), n


def exponential_minus_one(b: KernelBuilder, x: Value, halvings: int = 0) -> Value:
    """(e**x - 1) / 2**halvings within 2 ulp: 2**n * (e**r - 1 + (1 - 2**-n))."""
    integer, bits, bias = integer_of(x.element)
    low, high = (-18.0, 89.5) if x.element is F32 else (-40.0, 710.5)
    inside = b.min(number(b, high, x), b.max(number(b, low, x), x))
    r, tail, n = _reduced(b, inside)
    tail = b.mul(tail, b.mul(r, r))
    kept = b.min(n, b.const(64, integer))
    inverse = b.binary("shl", b.sub(b.const(bias, integer), kept), b.const(bits, integer))
    missing = b.sub(number(b, 1.0, x), b.bitcast(inverse, x.element))
    total = b.add(b.add(missing, r), tail)
    total = b.select(b.compare("EQ", n, b.const(0, integer)), b.add(r, tail), total)
    scaled = scale_by_power_of_two(b, total, b.sub(n, b.const(halvings, integer)))
    return b.select(b.compare("EQ", x, number(b, 0.0, x)), x, scaled)


def logarithm(b: KernelBuilder, x: Value) -> Value:
    """The natural logarithm within 1 ulp (f32: Cephes' polynomial; f64: fdlibm's e_log)."""
    y = _logarithm(b, x)
    y = b.select(b.compare("EQ", x, number(b, math.inf, x)), x, y)
    y = b.select(b.compare("EQ", x, number(b, 0.0, x)), number(b, -math.inf, x), y)
    return b.select(b.compare("GE", x, number(b, 0.0, x)), y, number(b, math.nan, x))


def split_exponent(b: KernelBuilder, x: Value) -> tuple[Value, Value]:
    """m in [sqrt(1/2), sqrt(2)) and a float e with x = m * 2**e, for positive finite x."""
    integer, mantissa, bias = integer_of(x.element)
    tiny = b.compare("LT", x, number(b, 2.0 ** (1 - bias), x))
    scaled = b.select(tiny, b.mul(x, number(b, 2.0**mantissa, x)), x)
    bits = b.bitcast(scaled, integer)
    root = 0x3F3504F3 if x.element is F32 else 0x3FE6A09E667F3BCD
    exponent = b.binary("shr", b.sub(bits, b.const(root, integer)), b.const(mantissa, integer))
    m = b.bitcast(b.sub(bits, b.binary("shl", exponent, b.const(mantissa, integer))), x.element)
    e = b.convert(exponent, x.element)
    return m, b.sub(e, b.select(tiny, number(b, float(mantissa), x), number(b, 0.0, x)))


def _logarithm(b: KernelBuilder, x: Value) -> Value:
    m, e = split_exponent(b, x)
    f = b.sub(m, number(b, 1.0, x))
    if x.element is F32:
        c = [7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1]
        c += [-1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1]
        square = b.mul(f, f)
        y = b.mul(b.mul(polynomial(b, f, c), f), square)
        y = b.multiply_add(e, number(b, LN2_LOW_F32, x), y)
        y = b.multiply_add(square, number(b, -0.5, x), y)
        return b.multiply_add(e, number(b, LN2_HIGH_F32, x), b.add(f, y))
    c = [1.479819860511658591e-01, 1.531383769920937332e-01, 1.818357216161805012e-01, 2.222219843214978396e-01]
    c += [2.857142874366239149e-01, 3.999999999940941908e-01, 6.666666666666735130e-01]
    s = b.div(f, b.add(f, number(b, 2.0, x)))
    square = b.mul(s, s)
    r = b.mul(polynomial(b, square, c), square)
    half = b.mul(b.mul(f, f), number(b, 0.5, x))
    inner = b.multiply_add(s, b.add(half, r), b.mul(e, number(b, LN2_LOW, x)))
    return b.multiply_add(e, number(b, LN2_HIGH, x), b.sub(f, b.sub(half, inner)))


def log_plus_one(b: KernelBuilder, x: Value) -> Value:
    """log(1 + x) within 2 ulp: the logarithm of the rounded sum, and what rounding lost divided by it."""
    one = number(b, 1.0, x)
    u = b.add(one, x)
    # the larger operand is taken from the sum first, so that the difference is exact
    lost = b.select(b.compare("GE", x, one), b.sub(one, b.sub(u, x)), b.sub(x, b.sub(u, one)))
    y = b.add(_logarithm(b, u), b.div(lost, u))
    y = b.select(b.compare("EQ", x, number(b, math.inf, x)), x, y)
    y = b.select(b.compare("EQ", u, number(b, 0.0, x)), number(b, -math.inf, x), y)
    y = b.select(b.compare("GE", u, number(b, 0.0, x)), y, number(b, math.nan, x))
    return b.select(b.compare("EQ", u, one), x, y)


def exponential_minus_one_of_positive(b: KernelBuilder, x: Value) -> Value:
    """e**x - 1 within 2 ulp for x >= 0 that does not overflow. NaN stays NaN."""
    r, power = remainder_and_power(b, x, 1.0, 0)
    partial = b.multiply_add(polynomial(b, r, exponential_tail(x)), b.mul(r, r), r)
    return b.multiply_add(partial, power, b.sub(power, number(b, 1.0, x)))


def remainder_and_power(b: KernelBuilder, x: Value, sign: float, offset: int) -> tuple[Value, Value]:
    """r = x - sign * n * log(2) with |r| < 0.35, and 2**(n + offset), which becomes infinity and 0 one step out.

    The last bits of the sum that rounds are the exponent field of the power. For NaN it is arbitrary.
    """
    integer, fraction, bias = integer_of(x.element)
    shifter = number(b, 1.5 * 2.0**fraction + (bias + offset), x)
    shifted = b.multiply_add(x, number(b, sign * LOG2_E, x), shifter)
    power = b.bitcast(b.binary("shl", b.bitcast(shifted, integer), b.const(fraction, integer)), x.element)
    return _remainder(b, x, b.sub(shifted, shifter), sign), power
