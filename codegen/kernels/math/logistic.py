"""1 / (1 + e**-x), the gate of swish: by a polynomial, or by a shorter one and a table where CPUs have such lookups.

Both compute 1/2 / (1/2 + e**-x / 2), whose second term reaches from next to nothing to infinity: that needs neither
signs nor selections, and NaN takes its way through the products.
"""

from onnxla.codegen.kernels.builder import KernelBuilder
from onnxla.codegen.kernels.ir import Value
from onnxla.codegen.kernels.math.eighths import split_power
from onnxla.codegen.kernels.math.exponential import exponential_tail, remainder_and_power
from onnxla.codegen.kernels.math.parts import number, polynomial
from onnxla.hlo.types import F32, S32

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
    """1/2 + e**-x / 2."""
    bits, excess = split_power(b, x, -1.0, 1)
    p = b.bitcast(b.min(bits, b.const(_INFINITY_F32, S32)), F32)
    return b.add(b.multiply_add(p, excess, p), half)
