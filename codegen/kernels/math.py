"""Mathematical functions over f32 and f64 registers, with stated errors."""

from collections.abc import Callable

from onnxla.codegen.kernels.builder import KernelBuilder
from onnxla.codegen.kernels.ir import Value
from onnxla.errors import InternalError


def rsqrt(b: KernelBuilder, x: Value) -> Value:
    return b.div(b.const(1.0, x.element), b.unary("sqrt", x))


def remainder(b: KernelBuilder, x: Value, y: Value) -> Value:
    return b.binary("rem", x, y)


def power(b: KernelBuilder, x: Value, y: Value) -> Value:
    raise InternalError("power")


def atan2(b: KernelBuilder, y: Value, x: Value) -> Value:
    raise InternalError("atan2")


UNARY: dict[str, Callable[[KernelBuilder, Value], Value]] = {"rsqrt": rsqrt}
