"""The hyperbolic functions and their inverses."""

import math

from onnxla.codegen.kernels.builder import KernelBuilder
from onnxla.codegen.kernels.ir import Value
from onnxla.codegen.kernels.math.exponential import (
    exponential_minus_one,
    exponential_minus_one_of_positive,
    half_exponential,
    log_plus_one,
    logarithm,
)
from onnxla.codegen.kernels.math.parts import copy_sign, in_f64, number
from onnxla.hlo.types import F32

_LN2 = 0.6931471805599453


def tanh(b: KernelBuilder, x: Value) -> Value:
    """The hyperbolic tangent within 2 ulp: t / (t + 2) with t = e**(2 |x|) - 1."""
    two = number(b, 2.0, x)
    inside = b.min(number(b, 10.0 if x.element is F32 else 22.0, x), b.unary("abs", x))
    t = exponential_minus_one_of_positive(b, b.mul(inside, two))
    return copy_sign(b, b.div(t, b.add(t, two)), x)


def sinh(b: KernelBuilder, x: Value) -> Value:
    """The hyperbolic sine within 3 ulp: t + t / (2 t + 1) with t = (e**|x| - 1) / 2."""
    t = exponential_minus_one(b, b.unary("abs", x), halvings=1)
    kept = b.min(number(b, 2.0**100, x), t)
    rest = b.div(kept, b.multiply_add(kept, number(b, 2.0, x), number(b, 1.0, x)))
    return copy_sign(b, b.add(t, rest), x)


def cosh(b: KernelBuilder, x: Value) -> Value:
    """The hyperbolic cosine within 2 ulp: h + 1 / (4 h) with h = e**|x| / 2."""
    h = half_exponential(b, b.unary("abs", x))
    return b.add(h, b.div(number(b, 0.25, x), h))


@in_f64
def asinh(b: KernelBuilder, x: Value) -> Value:
    """The inverse of sinh within 3 ulp."""
    size = b.unary("abs", x)
    one, limit = number(b, 1.0, x), number(b, 2.0**28, x)
    small = b.min(limit, size)
    square = b.mul(small, small)
    root = b.unary("sqrt", b.add(square, one))
    y = log_plus_one(b, b.add(small, b.div(square, b.add(root, one))))
    large = b.add(logarithm(b, size), number(b, _LN2, x))
    return copy_sign(b, b.select(b.compare("GE", size, limit), large, y), x)


@in_f64
def acosh(b: KernelBuilder, x: Value) -> Value:
    """The inverse of cosh within 3 ulp; NaN below 1."""
    limit = number(b, 2.0**28, x)
    t = b.sub(b.min(limit, x), number(b, 1.0, x))
    y = log_plus_one(b, b.add(t, b.unary("sqrt", b.multiply_add(t, t, b.add(t, t)))))
    large = b.add(logarithm(b, x), number(b, _LN2, x))
    y = b.select(b.compare("GE", x, limit), large, y)
    return b.select(b.compare("GE", x, number(b, 1.0, x)), y, number(b, math.nan, x))


@in_f64
def atanh(b: KernelBuilder, x: Value) -> Value:
    """The inverse of tanh within 3 ulp; infinite at 1, NaN beyond."""
    size = b.unary("abs", x)
    t = b.div(b.add(size, size), b.sub(number(b, 1.0, x), size))
    return copy_sign(b, b.mul(log_plus_one(b, t), number(b, 0.5, x)), x)
