"""The Gauss error function, and its sum with 1."""

from onnxla.codegen.kernels.builder import KernelBuilder
from onnxla.codegen.kernels.ir import Value
from onnxla.codegen.kernels.math.exponential import exponential_of_negative, power_of_two_up_to_one
from onnxla.codegen.kernels.math.parts import copy_sign, number, polynomial
from onnxla.hlo.types import F32

_SMALL_F32 = (-5.9110386e-04, 4.9774526e-03, -2.6755871e-02, 1.1281520e-01, -3.7612465e-01, 1.2837915e-01)
"""erf(x) / x - 1 in x**2, for |x| < 0.94 (2**-25.6)."""
_TAIL_F32 = (2.1395886e-04, -3.2147455e-03, 2.2889305e-02, -1.0526083e-01, -6.3571906e-01, -1.1285142)
"""log(1 - erf(x)) / x, for 0.92 <= x < 3.95 (2**-28 of erf)."""
_LOG2_ERFC_F32 = (
    -3.661778101e-05, 3.798548423e-04, -1.297493814e-03, -1.053749933e-03, 2.846732922e-02, -1.485651731e-01,
    -9.184016585e-01, -1.627909422e+00, 0.0,
)  # fmt: skip
_FURTHEST_F32 = 7.25
"""log2(1 - erf(x)) for 0 <= x <= 7.25, to 3e-8 of 1, and to 1e-4 of 1 - erf(x) up to 3; it falls to -127 at the end."""
_SMALL_F64 = (
    5.957176147748911e-11, -1.1372848856791674e-09, 1.4659775274047436e-08, -1.6350312701054695e-07,
    1.6461000484121368e-06, -1.4925595266831182e-05, 0.0001205533111164271, -0.000854832698083379,
    0.0052239776248180145, -0.026866170645076792, 0.11283791670954879, -0.3761263890318375, 0.1283791670955126,
)  # fmt: skip
"""erf(x) / x - 1 in x**2, for |x| <= 1 (2**-62)."""
_TAIL_F64 = (
    -8.155610628391433e-07, -1.97746452965598e-06, 2.1718625164861167e-06, 1.2447317290017671e-05,
    -6.398525756125787e-07, -6.606013750587351e-05, -2.7148608774189267e-05, 0.00038049999867488526,
    0.00013174271009443514, -0.002628996855714098, 0.001787129391420239, 0.018377297216157953,
    -0.07144479755709214, 0.14133148570103787, -0.17536886639552546, 0.12468998543328447, 0.527015910152859,
)  # fmt: skip
"""x * e**(x**2) * (1 - erf(x)) in (x - 5/2) / (x + 5/2), for 1 <= x <= 6 (2**-58)."""


def erf(b: KernelBuilder, x: Value) -> Value:
    """The Gauss error function within 2 ulp: a polynomial near 0, beyond it 1 - e**q(x) or 1 - e**(-x**2) q(x) / x."""
    size = b.unary("abs", x)
    square = b.mul(size, size)
    single = x.element is F32
    small = b.multiply_add(polynomial(b, square, _SMALL_F32 if single else _SMALL_F64), size, size)
    one = number(b, 1.0, x)
    if single:
        inside = b.min(number(b, 3.95, x), size)
        rest = exponential_of_negative(b, b.mul(polynomial(b, inside, _TAIL_F32), inside))
    else:
        inside = b.min(number(b, 6.0, x), b.max(one, size))
        center = number(b, 2.5, x)
        t = b.div(b.sub(inside, center), b.add(inside, center))
        gauss = exponential_of_negative(b, b.unary("neg", b.mul(inside, inside)))
        rest = b.div(b.mul(gauss, polynomial(b, t, _TAIL_F64)), inside)
    # NaN takes the small side, where it stays NaN
    far = b.compare("GE", size, number(b, 0.93 if single else 1.0, x))
    return copy_sign(b, b.select(far, b.sub(one, rest), small), x)


def one_plus_erf(b: KernelBuilder, x: Value) -> Value:
    """1 + erf(x) in f32 within 1.6e-7, and within 1e-4 of itself down to x = -3, where the sum would keep three digits.

    With t = 2**q(|x|) = 1 - erf(|x|) it is 2 - t or, for negative x, t itself: 1 at 0, 0 at minus infinity.
    """
    size = b.min(number(b, _FURTHEST_F32, x), b.unary("abs", x))
    t = power_of_two_up_to_one(b, polynomial(b, size, _LOG2_ERFC_F32))
    # NaN takes the far side, where it stays NaN
    return b.select(b.compare("LT", x, number(b, 0.0, x)), t, b.sub(number(b, 2.0, x), t))
