"""The exact remainder of floats."""

import math

from onnxla.codegen.kernels.builder import KernelBuilder
from onnxla.codegen.kernels.ir import INDEX, Value
from onnxla.codegen.kernels.math.parts import copy_sign, in_f64
from onnxla.hlo.types import F64, S64

_STEP = 25
"""Bits of the quotient that one round takes away."""


@in_f64
def remainder(b: KernelBuilder, x: Value, y: Value) -> Value:
    """C's fmod, exact: x - y * trunc(x / y) with the sign of x; NaN for x infinite or y = 0.

    Each round takes from x the product of y and the leading bits of the quotient, which is exact; the
    number of rounds is what the widest gap between exponents in the vector needs, mostly one.
    """
    zero, infinite = b.const(0.0, F64), b.const(math.inf, F64)
    rest, step = b.unary("abs", x), b.unary("abs", y)
    lanes = max(rest.lanes, step.lanes)
    tiny = b.compare("LT", step, b.const(2.0**-1022, F64))
    normal = b.sub(_exponent(b, b.mul(step, b.const(2.0**54, F64))), b.const(54, S64))
    divisor_exponent = b.select(tiny, normal, _exponent(b, step))
    gap = b.horizontal("max", b.splat(b.sub(_exponent(b, rest), divisor_exponent), lanes))
    rounds = b.convert(b.max(gap, b.const(0, S64)), INDEX)
    rounds = b.add(b.div(rounds, b.const(_STEP)), b.const(1))
    lift = b.const(2.0**1000, F64)
    lifted = b.mul(step, lift)
    lifted_twice = b.mul(lifted, lift)
    with b.loop(b.const(0), rounds, carry=[b.splat(rest, lanes)]) as loop:
        (r,) = loop.carried
        # a divisor so small that the quotient would overflow is lifted first
        unit = b.select(b.compare("GE", r, lifted), lifted, step)
        unit = b.select(b.compare("GE", r, lifted_twice), lifted_twice, unit)
        # the quotient a little too large, cut to 26 bits above the point or to an integer
        quotient = b.mul(b.div(r, unit), b.const(1.0 + 2.0**-51, F64))
        short = b.bitcast(b.and_(b.bitcast(quotient, S64), b.const(-(1 << 27), S64)), F64)
        whole = b.select(b.compare("LT", quotient, b.const(2.0**26, F64)), b.unary("trunc", quotient), short)
        left = b.fma(b.unary("neg", whole), unit, r)
        # one unit of the quotient's last bit too much: give it back
        last = b.binary(
            "shl", b.max(b.sub(_exponent(b, whole), b.const(25, S64)), b.const(1023, S64)), b.const(52, S64)
        )
        mended = b.fma(b.bitcast(last, F64), unit, left)
        loop.yield_(b.select(b.compare("LT", left, zero), mended, left))
    (r,) = loop.results
    r = b.select(b.compare("EQ", step, infinite), rest, r)
    defined = b.and_(b.compare("LT", rest, infinite), b.compare("GT", step, zero))
    defined = b.and_(defined, b.compare("EQ", x, x))
    return copy_sign(b, b.select(defined, r, b.const(math.nan, F64)), x)


def _exponent(b: KernelBuilder, x: Value) -> Value:
    """The exponent field of a positive number."""
    return b.binary("shr", b.bitcast(x, S64), b.const(52, S64))
