"""e**x by eighths of a power of two, for CPUs that look up a table in a register (`KernelBuilder.lookup`), in f32.

With n the nearest number of eighths of log(2) in x and r the rest, e**x is p + p * (e**(_SHIFT + r) - 1), where p is a
power of two times one of eight numbers: its bits are that number's and n's, added up. The difference in brackets is
small, so its error vanishes beside p, and it is not negative, so an infinite p gives infinity. That takes seven
multiplications where a polynomial alone takes eleven.
"""

import numpy as np

from onnxla.codegen.kernels.builder import KernelBuilder
from onnxla.codegen.kernels.ir import Value
from onnxla.codegen.kernels.math.parts import number, polynomial
from onnxla.hlo.types import S32

_SHIFT = 0.047117858
"""Where all eight numbers are near f32's: within 2**-27.1."""
_EIGHTHS = tuple(int(np.float32(2.0 ** (k / 8) * np.exp(-_SHIFT)).view(np.int32)) - (k << 20) for k in range(8))
"""2**(k/8) * e**-_SHIFT as bits, without what k adds to them among the bits of n."""
_EXCESS = (1.74691185e-01, 5.2420485e-01, 1.04824555e00, 4.82455269e-02)
"""e**(_SHIFT + r) - 1 for |r| < 0.0434, between 0.003 and 0.095 (2**-25.5 of its sum with 1); e**0 is 1 with it."""
_LOG2_E = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4


def split_power(b: KernelBuilder, x: Value, sign: float, halvings: int) -> tuple[Value, Value]:
    """p, as bits (S32), and q >= 0 with e**(sign * x) = 2**halvings * (p + p * q), for sizes of x below 180.

    Beyond what f32 holds the bits go on, up into infinity's and down into subnormal numbers' and below 0. For NaN they
    are arbitrary, and q is NaN.
    """
    shifter = number(b, 1.5 * 2.0**23, x)  # leaves n in the last bits of the sum
    shifted = b.multiply_add(x, number(b, sign * 8 * _LOG2_E, x), shifter)
    bits = b.bitcast(shifted, S32)
    table = tuple(entry - (halvings << 23) for entry in _EIGHTHS)
    p = b.add(b.lookup(table, bits), b.binary("shl", bits, b.const(20, S32)))
    n = b.sub(shifted, shifter)
    r = b.multiply_add(n, number(b, -sign * _LN2_HIGH / 8, x), x)
    r = b.multiply_add(n, number(b, -sign * _LN2_LOW / 8, x), r)
    return p, polynomial(b, r, [c * sign ** (3 - k) for k, c in enumerate(_EXCESS)])
