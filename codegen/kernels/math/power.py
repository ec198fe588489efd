"""Powers and roots."""

import math

from onnxla.codegen.kernels.builder import KernelBuilder
from onnxla.codegen.kernels.ir import Value
from onnxla.codegen.kernels.math.exponential import LOG2_E, logarithm, split_exponent
from onnxla.codegen.kernels.math.parts import (
    Pair,
    copy_sign,
    fast_two_sum,
    flip_sign,
    in_f64,
    is_negative,
    nearest_integer,
    number,
    pair_product,
    plus,
    polynomial,
    scale_by_power_of_two,
    sign_bit,
    two_product,
    two_sum,
)
from onnxla.hlo.types import F32, F64, S64

_CBRT = (
    -1.1824374463098317e-05, 0.000383717666560233, -0.00515463512854962, 0.03747290165968864, -0.16567286530702457,
    0.560358238192041, 0.5733512975185816,
)  # fmt: skip
"""The cube root on [1, 8] within 2**-10."""
_LN2_HIGH, _LN2_LOW = 0.6931471805598903, 5.497923018708371e-14
"""log(2) in two parts; the high one has 42 bits, so that its product with an exponent is exact."""


def rsqrt(b: KernelBuilder, x: Value) -> Value:
    """1 / sqrt(x), two correctly rounded steps: within 1.5 ulp."""
    return b.div(number(b, 1.0, x), b.unary("sqrt", x))


@in_f64
def cbrt(b: KernelBuilder, x: Value) -> Value:
    """The cube root within 1 ulp: a polynomial on [1, 8), a step of Halley's method and one of Newton's."""
    size = b.unary("abs", x)
    tiny = b.compare("LT", size, b.const(2.0**-1022, F64))
    bits = b.bitcast(b.select(tiny, b.mul(size, b.const(2.0**54, F64)), size), S64)
    # the exponent plus 1500 is positive and its third is a product and a shift
    exponent = b.add(b.binary("shr", bits, b.const(52, S64)), b.const(1500 - 1023, S64))
    third = b.binary("shr", b.mul(exponent, b.const(43691, S64)), b.const(17, S64))
    rest = b.sub(exponent, b.mul(third, b.const(3, S64)))
    fraction = b.and_(bits, b.const((1 << 52) - 1, S64))
    m = b.bitcast(b.or_(fraction, b.binary("shl", b.add(rest, b.const(1023, S64)), b.const(52, S64))), F64)
    t = polynomial(b, m, _CBRT)
    cube = b.mul(b.mul(t, t), t)
    two = b.const(2.0, F64)
    t = b.div(b.mul(t, b.fma(two, m, cube)), b.fma(two, cube, m))
    square, error = two_product(b, t, t)
    lost = b.fma(b.unary("neg", error), t, b.fma(b.unary("neg", square), t, m))
    t = b.add(t, b.div(lost, b.mul(square, b.const(3.0, F64))))
    power = b.sub(third, b.select(tiny, b.const(500 + 18, S64), b.const(500, S64)))
    y = copy_sign(b, scale_by_power_of_two(b, t, power), x)
    ordinary = b.and_(b.compare("GT", size, b.const(0.0, F64)), b.compare("LT", size, b.const(math.inf, F64)))
    return b.select(ordinary, y, x)


def power(b: KernelBuilder, x: Value, y: Value) -> Value:
    """x to the y within 1 ulp (f32: through f64; f64: with the logarithm as a pair), IEEE 754's special cases.

    1 for y = 0 and for x = 1 whatever the other, NaN included; NaN for a negative finite x and a y that is no integer.
    """
    zero, one = number(b, 0.0, x), number(b, 1.0, x)
    infinite = number(b, math.inf, x)
    size = b.unary("abs", x)
    if x.element is F32:
        r = b.convert(_power_f32(b, b.convert(size, F64), b.convert(y, F64)), F32)
    else:
        r = _power_f64(b, size, y)
    rising = b.compare("GT", y, zero)
    r = b.select(b.compare("EQ", size, zero), b.select(rising, zero, infinite), r)
    r = b.select(b.compare("EQ", size, infinite), b.select(rising, infinite, zero), r)
    r = b.select(b.compare("EQ", size, one), one, r)
    half = b.mul(y, number(b, 0.5, x))
    whole = b.compare("EQ", b.unary("rint", y), y)
    odd = b.and_(whole, b.compare("NE", b.unary("rint", half), half))
    sign = sign_bit(b, x)
    r = flip_sign(b, r, b.select(odd, sign, b.const(0, sign.element)))
    negative = b.and_(is_negative(b, x), b.and_(b.compare("GT", size, zero), b.compare("LT", size, infinite)))
    undefined = b.and_(negative, b.not_(whole))
    undefined = b.or_(undefined, b.or_(b.compare("NE", x, x), b.compare("NE", y, y)))
    r = b.select(undefined, number(b, math.nan, x), r)
    return b.select(b.or_(b.compare("EQ", y, zero), b.compare("EQ", x, one)), one, r)


def _power_f32(b: KernelBuilder, x: Value, y: Value) -> Value:
    """x**y in f64 for operands that are f32, x >= 0, to 2**-40; nothing over- or underflows."""
    product = b.mul(y, logarithm(b, x))
    product = b.min(b.const(200.0, F64), b.max(b.const(-200.0, F64), product))
    whole, n = nearest_integer(b, product, LOG2_E)
    r = b.fma(whole, b.const(-_LN2_LOW, F64), b.fma(whole, b.const(-_LN2_HIGH, F64), product))
    c = [1.0 / math.factorial(k) for k in range(11, -1, -1)]
    power = b.binary("shl", b.add(n, b.const(1023, S64)), b.const(52, S64))
    return b.mul(polynomial(b, r, c), b.bitcast(power, F64))


def _power_f64(b: KernelBuilder, x: Value, y: Value) -> Value:
    """x**y for x > 0 and finite; for others some number."""
    high, low = _logarithm_pair(b, x)
    product, error = two_product(b, y, high)
    error = b.fma(y, low, error)
    bound = b.const(800.0, F64)
    error = b.select(b.compare("LT", b.unary("abs", product), bound), error, b.const(0.0, F64))
    product = b.min(bound, b.max(b.unary("neg", bound), product))
    whole, n = nearest_integer(b, product, LOG2_E)
    near = b.fma(whole, b.const(-_LN2_HIGH, F64), product)
    r = b.fma(whole, b.const(-_LN2_LOW, F64), near)
    lost = b.fma(whole, b.const(-_LN2_LOW, F64), b.sub(near, r))
    c = [1.0 / math.factorial(k) for k in range(13, 1, -1)]
    one = b.const(1.0, F64)
    curve = b.mul(polynomial(b, r, c), b.mul(r, r))
    grown = b.add(one, b.add(r, curve))
    tail = b.fma(b.add(lost, error), grown, curve)
    return scale_by_power_of_two(b, b.add(one, b.add(r, tail)), n)


def _logarithm_pair(b: KernelBuilder, x: Value) -> Pair:
    """log(x) to 2**-66: 2 atanh(s) with s = (m - 1) / (m + 1), its first two terms as pairs."""
    m, e = split_exponent(b, x)
    one = b.const(1.0, F64)
    f = b.sub(m, one)
    bottom = plus(b, m, one)
    bottom_low = b.sub(m, b.sub(bottom, one))
    inverse = b.div(one, bottom)
    s = b.mul(f, inverse)
    back = b.unary("neg", s)
    s_low = b.mul(b.fma(back, bottom_low, b.fma(back, bottom, f)), inverse)
    s, s_low = fast_two_sum(b, s, s_low)
    square = pair_product(b, (s, s_low), (s, s_low))
    c = [1.0 / k for k in range(25, 3, -2)]
    third = (b.const(1 / 3, F64), b.const(1.850371707708594e-17, F64))
    first, first_low = pair_product(b, square, third)
    rest = b.mul(b.mul(square[0], square[0]), polynomial(b, square[0], c))
    series, series_low = fast_two_sum(b, first, rest)
    curve = pair_product(b, (s, s_low), (series, plus(b, series_low, first_low)))
    high, low = fast_two_sum(b, s, curve[0])
    low = plus(b, low, plus(b, s_low, curve[1]))
    two = b.const(2.0, F64)
    total, error = two_sum(b, b.mul(e, b.const(_LN2_HIGH, F64)), b.mul(high, two))
    return fast_two_sum(b, total, plus(b, error, b.fma(e, b.const(_LN2_LOW, F64), b.mul(low, two))))
