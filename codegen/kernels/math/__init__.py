"""Mathematical functions over f32 and f64 registers, with stated errors.

Each is an expression over the builder: range reduction, then a polynomial, then the exceptional
values by selection, so a vector costs what its lanes cost and both targets print the same code.
Only two things branch: sine, cosine and tan of arguments beyond 2**20, and the rounds of a float
remainder. Polynomials without a source are Chebyshev fits made for these intervals.

Errors are in units in the last place of the result's type, over all arguments; `tests/codegen/test_math.py`
holds every function to what its docstring says.
"""

from collections.abc import Callable

from onnxla.codegen.kernels.builder import KernelBuilder
from onnxla.codegen.kernels.ir import Value
from onnxla.codegen.kernels.math.error_function import erf
from onnxla.codegen.kernels.math.exponential import (
    exponential,
    exponential_minus_one,
    log_plus_one,
    logarithm,
)
from onnxla.codegen.kernels.math.hyperbolic import acosh, asinh, atanh, cosh, sinh, tanh
from onnxla.codegen.kernels.math.inverse_trigonometric import acos, asin, atan2
from onnxla.codegen.kernels.math.logistic import logistic
from onnxla.codegen.kernels.math.power import cbrt, power, rsqrt
from onnxla.codegen.kernels.math.remainder import remainder
from onnxla.codegen.kernels.math.trigonometric import cosine, sine, tan

UNARY: dict[str, Callable[[KernelBuilder, Value], Value]] = {
    "acos": acos,
    "acosh": acosh,
    "asin": asin,
    "asinh": asinh,
    "atanh": atanh,
    "cbrt": cbrt,
    "cosh": cosh,
    "cosine": cosine,
    "erf": erf,
    "exponential": exponential,
    "exponential-minus-one": exponential_minus_one,
    "log": logarithm,
    "log-plus-one": log_plus_one,
    "logistic": logistic,
    "rsqrt": rsqrt,
    "sine": sine,
    "sinh": sinh,
    "tan": tan,
    "tanh": tanh,
}
BINARY: dict[str, Callable[[KernelBuilder, Value, Value], Value]] = {
    "atan2": atan2,
    "power": power,
    "remainder": remainder,
}
__all__ = ["BINARY", "UNARY"]
