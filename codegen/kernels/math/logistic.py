"""1 / (1 + e**-x), the gate of swish: by a polynomial, or by a shorter one and a table where CPUs have such lookups.

Both compute 1/2 / (1/2 + e**-x / 2), whose second term reaches from next to nothing to infinity: that needs neither
signs nor selections, and NaN takes its way through the products.
"""

import numpy as np

from onnxla.codegen.kernels.builder import KernelBuilder
from onnxla.codegen.kernels.ir import Value
from onnxla.codegen.kernels.math.exponential import (
    LN2_HIGH_F32,
    LN2_LOW_F32,
    LOG2_E,
    exponential_tail,
    remainder_and_power,
)
from onnxla.codegen.kernels.math.parts import number, polynomial
from onnxla.hlo.types import F32, S32

_SHIFT = 0.04711786
"""Where the tables are nearest to f32: within 2**-27.1."""
_EIGHTHS = tuple(int(np.float32(2.0 ** (k / 8 - 1) * np.exp(-_SHIFT)).view(np.int32)) - (k << 20) for k in range(8))
"""2**(k/8) / 2 * e**-_SHIFT as bits, without what the eighths among the exponent's bits add."""
_BEYOND_F32 = (-1.7466849e-01, 5.2419579e-01, -1.0482457e00, 4.8245542e-02)
"""e**(_SHIFT - r) - 1 for |r| < 0.0434 (2**-25.3); not negative, and at 0 such that logistic(0) is 1/2."""
_INFINITY_F32 = 0x7F800000


def logistic(b: KernelBuilder, x: Value) -> Value:
    """1 / (1 + e**-x) within 3 ulp; 0 where that is below half the smallest normal number."""
    low, high = (-89.5, 80.0) if x.element is F32 else (-710.5, 700.0)
    inside = b.min(number(b, high, x), b.max(number(b, low, x), x))
    half = number(b, 0.5, x)
    return b.div(half, (_by_table if x.element is F32 and b.looks_up else _by_polynomial)(b, inside, half))


def _by_polynomial(b: KernelBuilder, x: Value, half: Value) -> Value:
    """1/2 + e**-x / 2."""
    r, power = remainder_and_power(b, x, -1.0, -1)
    tail = polynomial(b, r, [c if k % 2 == 0 else -c for k, c in enumerate(reversed(exponential_tail(x)))][::-1])
    mantissa = b.multiply_add(b.multiply_add(tail, r, number(b, -1.0, x)), r, number(b, 1.0, x))
    return b.multiply_add(mantissa, power, half)


def _by_table(b: KernelBuilder, x: Value, half: Value) -> Value:
    """1/2 + e**-x / 2 with eight multiplications where a polynomial alone takes eleven.

    With n eighths of log(2) in -x and the rest r, e**-x / 2 is p + p * (e**(_SHIFT - r) - 1), where p is a power of two
    times an entry of the table: its bits are the entry's and n's, added up. The difference in brackets is small, so
    that its error vanishes beside p, and not negative, so that no infinity is taken from another.
    """
    shifter = number(b, 1.5 * 2.0**23, x)  # leaves n in the last bits of the sum
    shifted = b.multiply_add(x, number(b, -8 * LOG2_E, x), shifter)
    bits = b.bitcast(shifted, S32)
    p = b.add(b.lookup(_EIGHTHS, bits), b.binary("shl", bits, b.const(20, S32)))
    p = b.bitcast(b.min(p, b.const(_INFINITY_F32, S32)), F32)
    n = b.sub(shifted, shifter)
    r = b.multiply_add(n, number(b, LN2_HIGH_F32 / 8, x), x)
    r = b.multiply_add(n, number(b, LN2_LOW_F32 / 8, x), r)
    return b.add(b.multiply_add(p, polynomial(b, r, _BEYOND_F32), p), half)
