"""Arithmetic of complex numbers on pairs of real ones: (real part, imaginary part)."""

from collections.abc import Callable

import numpy as np

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction

Pair = tuple[Instruction, Instruction]


def add(b: Builder, x: Pair, y: Pair) -> Pair:
    return b.add(x[0], y[0]), b.add(x[1], y[1])


def subtract(b: Builder, x: Pair, y: Pair) -> Pair:
    return b.subtract(x[0], y[0]), b.subtract(x[1], y[1])


def multiply(b: Builder, x: Pair, y: Pair) -> Pair:
    re = b.subtract(b.multiply(x[0], y[0]), b.multiply(x[1], y[1]))
    return re, b.add(b.multiply(x[0], y[1]), b.multiply(x[1], y[0]))


def divide(b: Builder, x: Pair, y: Pair) -> Pair:
    """By the larger part of the divisor first, so that squares do not overflow (Smith 1962)."""
    wide = b.compare(b.unary("abs", y[0]), b.unary("abs", y[1]), "GE")
    large, small = b.select(wide, y[0], y[1]), b.select(wide, y[1], y[0])
    ratio = b.divide(small, large)
    # zero by zero is no ratio; the division by the divisor below still gives infinity or NaN
    ratio = b.select(b.compare(large, b.full_like(large, 0), "EQ"), b.full_like(ratio, 0), ratio)
    bottom = b.add(large, b.multiply(small, ratio))
    first = b.select(wide, b.add(x[0], b.multiply(x[1], ratio)), b.add(b.multiply(x[0], ratio), x[1]))
    second = b.select(wide, b.subtract(x[1], b.multiply(x[0], ratio)), b.subtract(b.multiply(x[1], ratio), x[0]))
    return b.divide(first, bottom), b.divide(second, bottom)


def negate(b: Builder, x: Pair) -> Pair:
    return b.negate(x[0]), b.negate(x[1])


def absolute(b: Builder, x: Pair) -> Instruction:
    """The root of the sum of squares, of numbers scaled by the larger part."""
    re, im = b.unary("abs", x[0]), b.unary("abs", x[1])
    large, small = b.maximum(re, im), b.minimum(re, im)
    one, zero = b.full_like(large, 1), b.full_like(large, 0)
    usual = b.and_(b.compare(large, zero, "GT"), b.unary("is-finite", large))
    ratio = b.divide(small, b.select(usual, large, one))
    length = b.multiply(large, b.unary("sqrt", b.add(one, b.multiply(ratio, ratio))))
    infinite = b.full_like(large, np.inf)
    endless = b.or_(b.compare(re, infinite, "EQ"), b.compare(im, infinite, "EQ"))
    return b.select(endless, infinite, b.select(usual, length, large))


def sign(b: Builder, x: Pair) -> Pair:
    length = absolute(b, x)
    zero = b.compare(length, b.full_like(length, 0), "EQ")
    safe = b.select(zero, b.full_like(length, 1), length)
    return b.divide(x[0], safe), b.divide(x[1], safe)


def _polar(b: Builder, length: Instruction, angle: Instruction) -> Pair:
    return b.multiply(length, b.unary("cosine", angle)), b.multiply(length, b.unary("sine", angle))


def exponential(b: Builder, x: Pair) -> Pair:
    """A real number stays one."""
    re, im = _polar(b, b.exponential(x[0]), x[1])
    zero = b.full_like(im, 0)
    return re, b.select(b.compare(x[1], zero, "EQ"), x[1], im)


def exponential_minus_one(b: Builder, x: Pair) -> Pair:
    """expm1(a) cos(b) - 2 sin(b/2)**2, which cancels nothing near 0."""
    half = b.unary("sine", b.multiply(x[1], b.full_like(x[1], 0.5)))
    lost = b.multiply(b.full_like(half, 2), b.multiply(half, half))
    re = b.subtract(b.multiply(b.unary("exponential-minus-one", x[0]), b.unary("cosine", x[1])), lost)
    return re, b.multiply(b.exponential(x[0]), b.unary("sine", x[1]))


def log(b: Builder, x: Pair) -> Pair:
    return b.unary("log", absolute(b, x)), b.binary("atan2", x[1], x[0])


def log_plus_one(b: Builder, x: Pair) -> Pair:
    """log1p(a (a + 2) + b**2) / 2."""
    two = b.full_like(x[0], 2)
    excess = b.add(b.multiply(x[0], b.add(x[0], two)), b.multiply(x[1], x[1]))
    half = b.full_like(excess, 0.5)
    re = b.multiply(half, b.unary("log-plus-one", excess))
    return re, b.binary("atan2", x[1], b.add(x[0], b.full_like(x[0], 1)))


def logistic(b: Builder, x: Pair) -> Pair:
    one, zero = b.full_like(x[0], 1), b.full_like(x[0], 0)
    return divide(b, (one, zero), add(b, (one, zero), exponential(b, negate(b, x))))


def sqrt(b: Builder, x: Pair) -> Pair:
    """t + i b / (2 t) with t = sqrt((|a| + |x|) / 2), parts exchanged where a is negative."""
    half, zero = b.full_like(x[0], 0.5), b.full_like(x[0], 0)
    size = b.multiply(half, b.add(b.unary("abs", x[0]), absolute(b, x)))
    t = b.unary("sqrt", size)
    nothing = b.compare(t, zero, "EQ")
    other = b.divide(b.multiply(half, x[1]), b.select(nothing, b.full_like(t, 1), t))
    left = b.compare(x[0], zero, "LT")
    below = b.compare(x[1], zero, "LT")
    re = b.select(left, b.unary("abs", other), t)
    im = b.select(left, b.select(below, b.negate(t), t), other)
    return re, b.select(nothing, x[1], im)


def rsqrt(b: Builder, x: Pair) -> Pair:
    one, zero = b.full_like(x[0], 1), b.full_like(x[0], 0)
    return divide(b, (one, zero), sqrt(b, x))


def sine(b: Builder, x: Pair) -> Pair:
    re = b.multiply(b.unary("sine", x[0]), b.unary("cosh", x[1]))
    return re, b.multiply(b.unary("cosine", x[0]), b.unary("sinh", x[1]))


def cosine(b: Builder, x: Pair) -> Pair:
    re = b.multiply(b.unary("cosine", x[0]), b.unary("cosh", x[1]))
    return re, b.negate(b.multiply(b.unary("sine", x[0]), b.unary("sinh", x[1])))


def sinh(b: Builder, x: Pair) -> Pair:
    re = b.multiply(b.unary("sinh", x[0]), b.unary("cosine", x[1]))
    return re, b.multiply(b.unary("cosh", x[0]), b.unary("sine", x[1]))


def cosh(b: Builder, x: Pair) -> Pair:
    re = b.multiply(b.unary("cosh", x[0]), b.unary("cosine", x[1]))
    return re, b.multiply(b.unary("sinh", x[0]), b.unary("sine", x[1]))


def tan(b: Builder, x: Pair) -> Pair:
    return divide(b, sine(b, x), cosine(b, x))


def tanh(b: Builder, x: Pair) -> Pair:
    return divide(b, sinh(b, x), cosh(b, x))


def power(b: Builder, x: Pair, y: Pair) -> Pair:
    """e**(y log x); 1 for y = 0, else 0 for x = 0."""
    re, im = exponential(b, multiply(b, y, log(b, x)))
    zero, one = b.full_like(re, 0), b.full_like(re, 1)
    nothing = b.and_(b.compare(x[0], zero, "EQ"), b.compare(x[1], zero, "EQ"))
    trivial = b.and_(b.compare(y[0], zero, "EQ"), b.compare(y[1], zero, "EQ"))
    re, im = b.select(nothing, zero, re), b.select(nothing, zero, im)
    return b.select(trivial, one, re), b.select(trivial, zero, im)


def equal(b: Builder, x: Pair, y: Pair, direction: str) -> Instruction:
    """`direction` is EQ or NE."""
    parts = (b.compare(x[0], y[0], direction), b.compare(x[1], y[1], direction))
    return b.and_(*parts) if direction == "EQ" else b.or_(*parts)


UNARY: dict[str, Callable[[Builder, Pair], Pair]] = {
    "cosh": cosh,
    "cosine": cosine,
    "exponential": exponential,
    "exponential-minus-one": exponential_minus_one,
    "log": log,
    "log-plus-one": log_plus_one,
    "logistic": logistic,
    "negate": negate,
    "rsqrt": rsqrt,
    "sign": sign,
    "sine": sine,
    "sinh": sinh,
    "sqrt": sqrt,
    "tan": tan,
    "tanh": tanh,
}
BINARY: dict[str, Callable[[Builder, Pair, Pair], Pair]] = {
    "add": add,
    "divide": divide,
    "multiply": multiply,
    "power": power,
    "subtract": subtract,
}
