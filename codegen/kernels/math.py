"""Mathematical functions over f32 and f64 registers, with stated errors.

Each is an expression over the builder: range reduction, then a polynomial, then the exceptional
values by selection, so a vector costs what its lanes cost and both targets print the same code.
"""

import math
from collections.abc import Callable, Sequence

from onnxla.codegen.kernels.builder import KernelBuilder
from onnxla.codegen.kernels.ir import Value
from onnxla.errors import InternalError
from onnxla.hlo.types import F32, F64, S32, S64, U32


def polynomial(b: KernelBuilder, x: Value, coefficients: Sequence[float]) -> Value:
    """Horner's scheme with one rounding a step; the highest power comes first."""
    total = b.const(coefficients[0], x.element, x.lanes)
    for c in coefficients[1:]:
        total = b.fma(total, x, b.const(c, x.element))
    return total


def scale_by_power_of_two(b: KernelBuilder, x: Value, n: Value) -> Value:
    """x * 2**n for an integer n, in two steps so that subnormal results round once."""
    integer, mantissa, bias = (S32, 23, 127) if x.element is F32 else (S64, 52, 1023)
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
    integer, magic = (S32, 1.5 * 2**23) if x.element is F32 else (S64, 1.5 * 2**52)
    shifter = b.const(magic, x.element)
    shifted = b.fma(x, b.const(factor, x.element), shifter)
    return b.sub(shifted, shifter), b.sub(b.bitcast(shifted, integer), b.bitcast(shifter, integer))


def exponential(b: KernelBuilder, x: Value) -> Value:
    """e**x within 1 ulp, subnormal results included (f32: Cephes' polynomial; f64: Taylor's, 13 terms)."""
    low, high = (-104.0, 89.0) if x.element is F32 else (-746.0, 710.0)
    x = b.min(b.const(high, x.element), b.max(b.const(low, x.element), x))
    mantissa, n = _exponential(b, x)
    return scale_by_power_of_two(b, mantissa, n)


def exponential_of_negative(b: KernelBuilder, x: Value) -> Value:
    """e**x for x <= 0 within 1 ulp down to the smallest normal number, which all below it gives."""
    low = -87.3 if x.element is F32 else -708.3
    mantissa, n = _exponential(b, b.max(b.const(low, x.element), x))
    integer, bits = (S32, 23) if x.element is F32 else (S64, 52)
    return b.bitcast(b.add(b.bitcast(mantissa, integer), b.binary("shl", n, b.const(bits, integer))), x.element)


def _exponential(b: KernelBuilder, x: Value) -> tuple[Value, Value]:
    """m and n with e**x = m * 2**n and m near 1."""
    single = x.element is F32
    whole, n = nearest_integer(b, x, 1.4426950408889634)
    first, second = (
        (0.693359375, -2.12194440e-4) if single else (6.93147180369123816490e-01, 1.90821492927058770002e-10)
    )
    r = b.fma(whole, b.const(-first, x.element), x)
    r = b.fma(whole, b.const(-second, x.element), r)
    if single:
        c = [1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1]
    else:
        c = [1.0 / math.factorial(k) for k in range(13, 1, -1)]
    tail = b.fma(polynomial(b, r, c), b.mul(r, r), r)
    return b.add(tail, b.const(1.0, x.element)), n


def logarithm(b: KernelBuilder, x: Value) -> Value:
    """The natural logarithm within 1 ulp (f32: Cephes' polynomial; f64: fdlibm's e_log)."""
    single = x.element is F32
    kind = x.element
    integer, mantissa, bias = (S32, 23, 127) if single else (S64, 52, 1023)
    tiny = b.compare("LT", x, b.const(2.0 ** (1 - bias), kind))
    lift = 2.0**mantissa
    scaled = b.select(tiny, b.mul(x, b.const(lift, kind)), x)
    bits = b.bitcast(scaled, integer)
    # the exponent of x / sqrt(1/2), so that the mantissa left over lies in [sqrt(1/2), sqrt(2))
    root = 0x3F3504F3 if single else 0x3FE6A09E667F3BCD
    offset = b.sub(bits, b.const(root, integer))
    exponent = b.binary("shr", offset, b.const(mantissa, integer))
    shifted = b.binary("shl", exponent, b.const(mantissa, integer))
    f = b.sub(b.bitcast(b.sub(bits, shifted), kind), b.const(1.0, kind))
    e = b.convert(exponent, kind)
    e = b.sub(e, b.select(tiny, b.const(float(mantissa), kind), b.const(0.0, kind)))
    if single:
        c = [7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1]
        c += [-1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1]
        square = b.mul(f, f)
        y = b.mul(b.mul(polynomial(b, f, c), f), square)
        y = b.fma(e, b.const(-2.12194440e-4, kind), y)
        y = b.fma(square, b.const(-0.5, kind), y)
        y = b.fma(e, b.const(0.693359375, kind), b.add(f, y))
    else:
        c = [1.479819860511658591e-01, 1.531383769920937332e-01, 1.818357216161805012e-01, 2.222219843214978396e-01]
        c += [2.857142874366239149e-01, 3.999999999940941908e-01, 6.666666666666735130e-01]
        s = b.div(f, b.add(f, b.const(2.0, kind)))
        square = b.mul(s, s)
        r = b.mul(polynomial(b, square, c), square)
        half = b.mul(b.mul(f, f), b.const(0.5, kind))
        inner = b.fma(s, b.add(half, r), b.mul(e, b.const(1.90821492927058770002e-10, kind)))
        y = b.fma(e, b.const(6.93147180369123816490e-01, kind), b.sub(f, b.sub(half, inner)))
    y = b.select(b.compare("EQ", x, b.const(math.inf, kind)), x, y)
    y = b.select(b.compare("EQ", x, b.const(0.0, kind)), b.const(-math.inf, kind), y)
    return b.select(b.compare("GE", x, b.const(0.0, kind)), y, b.const(math.nan, kind))


def logistic(b: KernelBuilder, x: Value) -> Value:
    """1 / (1 + e**-x) within 3 ulp, without overflow on either side."""
    small = exponential(b, b.unary("neg", b.unary("abs", x)))
    one = b.const(1.0, x.element)
    top = b.select(b.compare("LT", x, b.const(0.0, x.element)), small, one)
    return b.div(top, b.add(small, one))


def tanh(b: KernelBuilder, x: Value) -> Value:
    """The hyperbolic tangent within 2 ulp (f32: Cephes' polynomial below 0.625)."""
    kind = x.element
    size = b.unary("abs", x)
    e = exponential_of_negative(b, b.mul(size, b.const(-2.0, kind)))
    one = b.const(1.0, kind)
    large = b.div(b.sub(one, e), b.add(one, e))
    square = b.mul(x, x)
    c = [-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1]
    small = b.fma(b.mul(polynomial(b, square, c), square), x, x)
    return b.select(b.compare("LT", size, b.const(0.625, kind)), small, copy_sign(b, large, x))


def copy_sign(b: KernelBuilder, size: Value, sign: Value) -> Value:
    """The magnitude of one number with the sign bit of another."""
    integer, top = (U32, 1 << 31) if size.element is F32 else (S64, -(1 << 63))
    negative = b.and_(b.bitcast(sign, integer), b.const(top, integer))
    return b.bitcast(b.or_(b.bitcast(b.unary("abs", size), integer), negative), size.element)


def erf(b: KernelBuilder, x: Value) -> Value:
    kind = x.element
    bound = b.const(3.832506856900711, kind)
    x = b.min(bound, b.max(b.unary("neg", bound), x))
    square = b.mul(x, x)
    top = [0.00022905065861350646, 0.0034082910107109506, 0.050955695062380861, 0.18520832239976145, 1.128379143519084]
    bottom = [-1.1791602954361697e-7, 0.000023547966471313185, 0.0010179625278914885, 0.014070470171167667]
    bottom += [0.11098505178285362, 0.49746925110067538, 1.0]
    return b.div(b.mul(x, polynomial(b, square, top)), polynomial(b, square, bottom))


def rsqrt(b: KernelBuilder, x: Value) -> Value:
    """1 / sqrt(x), two correctly rounded steps."""
    return b.div(b.const(1.0, x.element), b.unary("sqrt", x))


def remainder(b: KernelBuilder, x: Value, y: Value) -> Value:
    """C's fmod, exact."""
    return b.binary("rem", x, y)


def power(b: KernelBuilder, x: Value, y: Value) -> Value:
    raise InternalError("power")


def atan2(b: KernelBuilder, y: Value, x: Value) -> Value:
    raise InternalError("atan2")


UNARY: dict[str, Callable[[KernelBuilder, Value], Value]] = {
    "exponential": exponential,
    "log": logarithm,
    "logistic": logistic,
    "tanh": tanh,
    "erf": erf,
    "rsqrt": rsqrt,
}
__all__ = ["F64", "UNARY"]
