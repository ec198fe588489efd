"""Angles from their sine, cosine or tangent."""

import math

from onnxla.codegen.kernels.builder import KernelBuilder
from onnxla.codegen.kernels.ir import Value
from onnxla.codegen.kernels.math.parts import (
    copy_sign,
    fast_two_sum,
    in_f64,
    is_negative,
    number,
    polynomial,
)

_HALF_PI, _HALF_PI_LOW = 1.5707963267948966, 6.123233995736766e-17
_ARCSINE = (
    0.028757851367421566, -0.014851887071247204, 0.01740087944269402, 0.005457506718640358, 0.01032281435018578,
    0.011479177415184906, 0.013971212973552933, 0.017352392720869973, 0.02237217294214989, 0.030381944138531247,
    0.04464285714635543, 0.07499999999998433, 0.16666666666666669,
)  # fmt: skip
"""(asin(x) / x - 1) / x**2 in x**2, for |x| <= 1/2 (2**-55)."""
_ARCTANGENT = (
    0.014759380407779157, -0.033114228762660534, 0.044916556747777434, -0.05216532007308444, 0.05876924062763387,
    -0.06666239748865294, 0.07692285419714515, -0.09090908350382436, 0.111111110965279, -0.14285714285565465,
    0.19999999999999404, -0.3333333333333333,
)  # fmt: skip
"""(atan(x) / x - 1) / x**2 in x**2, for |x| <= 7/16 (2**-57)."""
_ARCTANGENT_OF_HALF = (0.4636476090008061, 2.2698777452961687e-17)
_QUARTER_PI = (0.7853981633974483, 3.061616997868383e-17)


def _arcsine_parts(b: KernelBuilder, x: Value) -> tuple[Value, Value, Value]:
    """`large`, s and t: asin(|x|) = s + t, or pi/2 - 2 (s + t) where |x| is `large` (above 1/2)."""
    size = b.unary("abs", x)
    half = number(b, 0.5, x)
    large = b.compare("GT", size, half)
    square = b.select(large, b.mul(b.sub(number(b, 1.0, x), size), half), b.mul(size, size))
    root = b.unary("sqrt", square)
    s = b.select(large, root, size)
    # what the rounding of the root lost
    lost = b.div(b.fma(b.unary("neg", root), root, square), b.max(number(b, 1e-300, x), b.add(root, root)))
    t = b.mul(b.mul(s, square), polynomial(b, square, _ARCSINE))
    return large, s, b.select(large, b.add(t, lost), t)


@in_f64
def asin(b: KernelBuilder, x: Value) -> Value:
    """The angle in [-pi/2, pi/2] whose sine is x, within 2 ulp; NaN outside [-1, 1]."""
    large, s, t = _arcsine_parts(b, x)
    low = b.fma(number(b, 2.0, x), t, number(b, -_HALF_PI_LOW, x))
    far = b.sub(b.sub(number(b, _HALF_PI, x), b.add(s, s)), low)
    return copy_sign(b, b.select(large, far, b.add(s, t)), x)


@in_f64
def acos(b: KernelBuilder, x: Value) -> Value:
    """The angle in [0, pi] whose cosine is x, within 2 ulp; NaN outside [-1, 1]."""
    large, s, t = _arcsine_parts(b, x)
    high, low = number(b, _HALF_PI, x), number(b, _HALF_PI_LOW, x)
    negative = is_negative(b, x)
    signed_s, signed_t = (b.select(negative, b.unary("neg", v), v) for v in (s, t))
    near = b.sub(high, b.sub(signed_s, b.sub(low, signed_t)))
    to_one = b.add(s, t)
    to_minus_one = b.sub(high, b.add(s, b.sub(t, low)))
    far = b.select(negative, to_minus_one, to_one)
    return b.select(large, b.add(far, far), near)


@in_f64
def atan2(b: KernelBuilder, y: Value, x: Value) -> Value:
    """The angle of the point (x, y) in [-pi, pi], within 2 ulp; zeros keep their signs, infinities are 45 degrees."""
    width, height = b.unary("abs", x), b.unary("abs", y)
    one, infinite = number(b, 1.0, x), number(b, math.inf, x)
    steep = b.compare("GT", height, width)
    large, small = b.select(steep, height, width), b.select(steep, width, height)
    endless = b.compare("EQ", large, infinite)
    small = b.select(endless, b.select(b.compare("EQ", small, infinite), one, number(b, 0.0, x)), small)
    large = b.select(b.or_(endless, b.compare("EQ", large, number(b, 0.0, x))), one, large)
    shrink = b.select(b.compare("GT", large, number(b, 2.0**1000, x)), number(b, 2.0**-4, x), one)
    large, small = b.mul(large, shrink), b.mul(small, shrink)
    # tan(a - c) = (tan a - tan c) / (1 + tan a tan c), for c = 0, atan(1/2) and pi/4
    above_first = b.compare("GT", small, b.mul(large, number(b, 7 / 16, x)))
    above_second = b.compare("GT", small, b.mul(large, number(b, 11 / 16, x)))
    top = b.select(above_second, b.sub(small, large), b.sub(b.add(small, small), large))
    bottom = b.select(above_second, b.add(small, large), b.add(b.add(large, large), small))
    t = b.div(b.select(above_first, top, small), b.select(above_first, bottom, large))
    square = b.mul(t, t)
    curve = b.mul(b.mul(t, square), polynomial(b, square, _ARCTANGENT))
    base, base_low = (
        b.select(above_first, b.select(above_second, number(b, q, x), number(b, h, x)), number(b, 0.0, x))
        for q, h in zip(_QUARTER_PI, _ARCTANGENT_OF_HALF, strict=True)
    )
    # the angle is turn + base + t, or turn - (base + t)
    left = is_negative(b, x)
    turn = b.select(steep, number(b, 1.0, x), b.select(left, number(b, 2.0, x), number(b, 0.0, x)))
    backwards = b.compare("NE", b.select(steep, one, number(b, 0.0, x)), b.select(left, one, number(b, 0.0, x)))

    def directed(value: Value) -> Value:
        return b.select(backwards, b.unary("neg", value), value)

    high, error = fast_two_sum(b, b.mul(turn, number(b, _HALF_PI, x)), directed(base))
    low = b.add(b.fma(turn, number(b, _HALF_PI_LOW, x), directed(base_low)), error)
    angle = b.add(high, b.add(directed(t), b.add(directed(curve), low)))
    undefined = b.or_(b.compare("NE", x, x), b.compare("NE", y, y))
    return copy_sign(b, b.select(undefined, number(b, math.nan, x), angle), y)
