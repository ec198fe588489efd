"""Sine, cosine and tangent of any argument.

x = n * pi/2 + r. Up to 2**20 the product is taken away in parts of pi/2 short enough for exact steps
(Cody, Waite 1980). Beyond, the bits of 2/pi that matter for this exponent are multiplied with the
mantissa as integers (Payne, Hanek 1983); a vector without such an argument skips that.
f32 is reduced in f64.
"""

from fractions import Fraction
from functools import cache

from onnxla.codegen.kernels.builder import KernelBuilder
from onnxla.codegen.kernels.ir import INDEX, Value
from onnxla.codegen.kernels.math.parts import (
    Pair,
    fast_two_sum,
    flip_sign,
    in_f64,
    nearest_integer,
    number,
    plus,
    polynomial,
    two_sum,
)
from onnxla.hlo.types import F32, F64, S64, U32, U64

LARGE = 2.0**20
_SINE_F32 = (-0.0001958537320669302, 0.00833273655917713, -0.16666664601754114)
_COSINE_F32 = (2.4545419078335295e-05, -0.0013888291300556933, 0.04166666459882798)
_SINE_F64 = (
    1.5916726193889336e-10, -2.5051112272573243e-08, 2.755731600817155e-06, -0.0001984126983657571,
    0.008333333333330827, -0.16666666666666666,
)  # fmt: skip
"""(sin(r) / r - 1) / r**2 in r**2, for |r| <= pi/4 (2**-55)."""
_COSINE_F64 = (
    -1.1381754653662937e-11, 2.0876134024090145e-09, -2.755731721268659e-07, 2.4801587298651292e-05,
    -0.0013888888888887322, 0.041666666666666664,
)  # fmt: skip
"""(cos(r) - 1 + r**2 / 2) / r**4 in r**2."""


def sine(b: KernelBuilder, x: Value) -> Value:
    """sin x within 2 ulp; NaN for infinities."""
    sin, cos, quadrant = _sine_and_cosine(b, x)
    return _finished(b, x, _turned(b, sin, cos, quadrant), x)


def cosine(b: KernelBuilder, x: Value) -> Value:
    """cos x within 2 ulp; NaN for infinities."""
    sin, cos, quadrant = _sine_and_cosine(b, x)
    return _finished(b, x, _turned(b, sin, cos, b.add(quadrant, b.const(1, U64))), number(b, 1.0, x))


@in_f64
def tan(b: KernelBuilder, x: Value) -> Value:
    """tan x within 3 ulp; NaN for infinities."""
    sin, cos, quadrant = _sine_and_cosine(b, x)
    odd = b.compare("NE", b.and_(quadrant, b.const(1, U64)), b.const(0, U64))
    y = b.div(b.select(odd, b.unary("neg", cos), sin), b.select(odd, sin, cos))
    return _finished(b, x, y, x)


def _finished(b: KernelBuilder, x: Value, y: Value, at_zero: Value) -> Value:
    y = b.select(b.compare("EQ", x, number(b, 0.0, x)), at_zero, y)
    finite = b.compare("LT", b.unary("abs", x), number(b, float("inf"), x))
    return b.select(finite, y, number(b, float("nan"), x))


def _turned(b: KernelBuilder, sin: Value, cos: Value, quadrant: Value) -> Value:
    """The sine of an angle in the given quadrant, from the sine and cosine of what is left."""
    odd = b.compare("NE", b.and_(quadrant, b.const(1, U64)), b.const(0, U64))
    unsigned = U32 if sin.element is F32 else U64
    half_turn = b.convert(b.and_(quadrant, b.const(2, U64)), unsigned)
    bit = b.binary("shl", half_turn, b.const(unsigned.bits - 2, unsigned))
    return flip_sign(b, b.select(odd, cos, sin), bit)


def _sine_and_cosine(b: KernelBuilder, x: Value) -> tuple[Value, Value, Value]:
    """Of what is left in [-pi/4, pi/4], and the quadrant as U64 modulo 4."""
    single = x.element is F32
    wide = b.convert(x, F64)
    size = b.unary("abs", wide)
    far = b.any(b.compare("GE", size, b.const(LARGE, F64)))
    with b.if_(far) as branch:
        with branch.then():
            high, low, quadrant = _reduced_exactly(b, wide)
            near = b.compare("LT", size, b.const(LARGE, F64))
            quick = _reduced_f32(b, wide) if single else _reduced_f64(b, wide)
            branch.yield_(*(b.select(near, q, e) for q, e in zip(quick, (high, low, quadrant), strict=True)))
        with branch.otherwise():
            branch.yield_(*(_reduced_f32(b, wide) if single else _reduced_f64(b, wide)))
    high, low, quadrant = branch.results
    if single:
        r = b.convert(high, F32)
        square = b.mul(r, r)
        sin = b.multiply_add(b.mul(polynomial(b, square, _SINE_F32), square), r, r)
        half = b.multiply_add(square, b.const(-0.5, F32), b.const(1.0, F32))
        cos = b.multiply_add(polynomial(b, square, _COSINE_F32), b.mul(square, square), half)
        return sin, cos, quadrant
    square = b.mul(high, high)
    half = b.mul(square, b.const(0.5, F64))
    one = b.const(1.0, F64)
    cubic = b.mul(b.mul(square, high), polynomial(b, square, _SINE_F64))
    sin = b.add(high, b.fma(low, b.sub(one, half), cubic))
    most = plus(b, one, b.unary("neg", half))
    lost = b.sub(b.sub(one, most), half)
    fourth = b.mul(b.mul(square, square), polynomial(b, square, _COSINE_F64))
    cos = b.add(most, b.add(lost, b.fma(b.unary("neg", high), low, fourth)))
    return sin, cos, quadrant


# Reduction

_HALF_PI = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487111665e-21, 8.4784276603689e-32)
"""pi/2 in four parts; the first three have 33 bits."""
_HALF_PI_PAIR = (1.5707963267948966, 6.123233995736766e-17)
_TWO_OVER_PI = 0.6366197723675814


def _reduced_f32(b: KernelBuilder, x: Value) -> tuple[Value, Value, Value]:
    """For |x| < 2**20 with 24 bits: two steps lose less than 2**-53 of x, and no such x is within 2**-29 of a zero."""
    n, quadrant = nearest_integer(b, x, _TWO_OVER_PI)
    back = b.unary("neg", n)
    r = b.fma(back, b.const(_HALF_PI_PAIR[1], F64), b.fma(back, b.const(_HALF_PI_PAIR[0], F64), x))
    return r, b.splat(b.const(0.0, F64), r.lanes), b.bitcast(quadrant, U64)


def _reduced_f64(b: KernelBuilder, x: Value) -> tuple[Value, Value, Value]:
    """For |x| < 2**20, as a pair; n * part is exact for the parts of 33 bits."""
    n, quadrant = nearest_integer(b, x, _TWO_OVER_PI)
    back = b.unary("neg", n)
    rest = b.fma(back, b.const(_HALF_PI[0], F64), x)
    error = b.const(0.0, F64)
    for part in _HALF_PI[1:3]:
        rest, lost = two_sum(b, rest, b.mul(back, b.const(part, F64)))
        error = plus(b, error, lost)
    high, low = fast_two_sum(b, rest, b.fma(back, b.const(_HALF_PI[3], F64), error))
    return high, low, b.bitcast(quadrant, U64)


_TABLE_BITS = 40 * 32
_LEADING_ZEROS = 64


@cache
def _bits_of_two_over_pi() -> tuple[int, ...]:
    """2/pi in words of 32 bits after 64 zero bits: bit 64 counts halves."""
    scale = 1 << (_TABLE_BITS + 64)

    def arctangent(inverse: int) -> int:
        total, power, k = 0, scale // inverse, 0
        while power:
            total += (-1) ** k * power // (2 * k + 1)
            power //= inverse * inverse
            k += 1
        return total

    pi = Fraction(4 * (4 * arctangent(5) - arctangent(239)), scale)  # Machin
    bits = int(2 / pi * (1 << (_TABLE_BITS - _LEADING_ZEROS)))
    return tuple((bits >> (_TABLE_BITS - 32 * (k + 1))) & 0xFFFFFFFF for k in range(_TABLE_BITS // 32))


def _reduced_exactly(b: KernelBuilder, x: Value) -> tuple[Value, Value, Value]:
    """For 2**20 <= |x| < infinity, as a pair.

    With |x| = m * 2**e, the 192 bits of 2/pi from the one that counts 2**(1 - e) on, times m, are |x| * 2/pi modulo 4
    to 2**-137; no f64 is nearer than 2**-62 to a multiple of pi/2.
    """

    def word(value: int) -> Value:
        return b.const(value, U64)

    def right(value: Value, amount: int) -> Value:
        return b.binary("shr", value, word(amount))

    table = b.scratch("two_over_pi", U32, _TABLE_BITS // 32)
    for k, bits in enumerate(_bits_of_two_over_pi()):
        b.store(table, b.const(k), b.const(bits, U32))
    raw = b.bitcast(b.unary("abs", x), U64)
    exponent = b.min(b.max(right(raw, 52), word(1043)), word(2046))
    m = b.or_(b.and_(raw, word((1 << 52) - 1)), word(1 << 52))
    first = b.sub(exponent, word(1075 + 2 - _LEADING_ZEROS))
    start = b.bitcast(right(first, 5), S64)
    words = [b.convert(b.load(table, b.add(b.convert(start, INDEX), b.const(k))), U64) for k in range(7)]
    words.append(b.splat(word(0), words[0].lanes))
    pairs = [b.or_(b.binary("shl", words[k], word(32)), words[k + 1]) for k in range(0, 8, 2)]
    shift = b.and_(first, word(31))
    back = b.sub(word(63), shift)
    two, one, zero = (
        b.or_(b.binary("shl", pairs[k], shift), b.binary("shr", right(pairs[k + 1], 1), back)) for k in range(3)
    )
    # m * (two, one, zero) modulo 2**192, without its last 64 bits
    low = b.add(b.mul(m, one), _high_product(b, m, zero))
    carry = b.convert(b.compare("LT", low, b.mul(m, one)), U64)
    high = b.add(b.add(b.mul(m, two), _high_product(b, m, one)), carry)
    quadrant = right(b.add(high, word(1 << 61)), 62)
    high = b.sub(high, b.binary("shl", quadrant, word(62)))
    below = b.compare("GE", high, word(1 << 63))
    negated_high = b.add(b.unary("not", high), b.convert(b.compare("EQ", low, word(0)), U64))
    high, low = b.select(below, negated_high, high), b.select(below, b.sub(word(0), low), low)
    pieces = (right(high, 32), b.and_(high, word(0xFFFFFFFF)), right(low, 32), b.and_(low, word(0xFFFFFFFF)))
    parts = [b.mul(b.convert(piece, F64), b.const(2.0 ** (-30 - 32 * k), F64)) for k, piece in enumerate(pieces)]
    top, error = two_sum(b, parts[0], parts[1])
    top, error = two_sum(b, top, plus(b, error, plus(b, parts[2], parts[3])))
    result = _times_half_pi(b, (top, error))
    negative = b.compare("LT", x, b.const(0.0, F64))
    flipped = b.compare("NE", b.convert(below, U32), b.convert(negative, U32))
    high, low = (b.select(flipped, b.unary("neg", part), part) for part in result)
    return high, low, b.select(negative, b.sub(word(0), quadrant), quadrant)


def _high_product(b: KernelBuilder, x: Value, y: Value) -> Value:
    """The upper 64 bits of the product of two U64."""
    mask, half = b.const(0xFFFFFFFF, U64), b.const(32, U64)
    x_low, x_high = b.and_(x, mask), b.binary("shr", x, half)
    y_low, y_high = b.and_(y, mask), b.binary("shr", y, half)
    middle = b.add(b.mul(x_low, y_high), b.binary("shr", b.mul(x_low, y_low), half))
    other = b.add(b.mul(x_high, y_low), b.and_(middle, mask))
    top = b.add(b.mul(x_high, y_high), b.binary("shr", middle, half))
    return b.add(top, b.binary("shr", other, half))


def _times_half_pi(b: KernelBuilder, x: Pair) -> Pair:
    high, low = (b.const(part, F64) for part in _HALF_PI_PAIR)
    product = b.mul(x[0], high)
    error = b.fma(x[0], high, b.unary("neg", product))
    return fast_two_sum(b, product, b.fma(x[0], low, b.fma(x[1], high, error)))
