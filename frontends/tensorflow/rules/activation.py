"""Activations, their gradients, and the error function's complement."""

from collections.abc import Callable, Sequence

from onnxla.frontends.onnx.rules.activation import softplus_of
from onnxla.frontends.onnx.rules.precision import widen
from onnxla.frontends.onnx.rules.softmax import softmax_over
from onnxla.frontends.tensorflow.node_view import NodeView
from onnxla.frontends.tensorflow.registry import tf_op
from onnxla.frontends.tensorflow.rules.elementwise import scaled, zero_like
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import F32, F64

SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805

# erfc(x) = exp(-x * x) / x * P(1 / x^2) for 1 < x < 2, and with R for 2 <= x: coefficients of Cephes' erfcf.
_ERFC_P = (
    2.326819970068386e-2,
    -1.387039388740657e-1,
    3.687424674597105e-1,
    -5.824733027278666e-1,
    6.210004621745983e-1,
    -4.944515323274145e-1,
    3.404879937665872e-1,
    -2.741127028184656e-1,
    5.638259427386472e-1,
)
_ERFC_R = (
    -1.047766399936249e1,
    1.297719955372516e1,
    -7.495518717768503e0,
    2.921019019210786e0,
    -1.015265279202700e0,
    4.218463358204948e-1,
    -2.820767439740514e-1,
    5.641895067754075e-1,
)


def _one_minus(b: Builder, x: Instruction) -> Instruction:
    return b.subtract(b.full_like(x, 1), x)


def _positive(b: Builder, x: Instruction) -> Instruction:
    return b.compare(x, zero_like(b, x), "GT")


@tf_op("Relu")
def relu(node: NodeView, b: Builder) -> Instruction:
    x = node.input(0)
    return b.maximum(x, zero_like(b, x))


@tf_op("Relu6")
def relu6(node: NodeView, b: Builder) -> Instruction:
    x = node.input(0)
    return b.minimum(b.maximum(x, zero_like(b, x)), b.full_like(x, 6))


@tf_op("LeakyRelu")
def leaky_relu(node: NodeView, b: Builder) -> Instruction:
    return leaky(b, node.input(0), node.float("alpha", 0.2))


def leaky(b: Builder, x: Instruction, alpha: float) -> Instruction:
    """`x` where it is positive, else `alpha` times it."""
    return b.select(_positive(b, x), x, scaled(b, x, alpha))


@tf_op("Elu")
def elu(node: NodeView, b: Builder) -> Instruction:
    x = node.input(0)
    return b.select(_positive(b, x), x, b.unary("exponential-minus-one", x))


@tf_op("Selu")
def selu(node: NodeView, b: Builder) -> Instruction:
    x = node.input(0)
    below = scaled(b, b.unary("exponential-minus-one", x), SELU_ALPHA)
    return scaled(b, b.select(_positive(b, x), x, below), SELU_SCALE)


@tf_op("Softplus")
def softplus(node: NodeView, b: Builder) -> Instruction:
    return softplus_of(b, node.input(0))


@tf_op("Softsign")
def softsign(node: NodeView, b: Builder) -> Instruction:
    x = node.input(0)
    return b.divide(x, b.add(b.unary("abs", x), b.full_like(x, 1)))


@tf_op("Erfc")
def erfc(node: NodeView, b: Builder) -> Instruction:
    """1 - erf(x), where that does not cancel; beyond 1 the tail itself."""
    x = node.input(0)
    if x.tensor_type.element is F64:
        return _one_minus(b, b.unary("erf", x))
    return b.convert(_erfc_of_single(b, b.convert(x, F32)), x.tensor_type.element)


def _erfc_of_single(b: Builder, x: Instruction) -> Instruction:
    size = b.unary("abs", x)
    inverse = b.divide(b.full_like(x, 1), b.maximum(size, b.full_like(x, 1)))
    y = b.multiply(inverse, inverse)
    series = b.select(b.compare(size, b.full_like(x, 2), "LT"), _polynomial(b, y, _ERFC_P), _polynomial(b, y, _ERFC_R))
    tail = b.multiply(b.multiply(b.exponential(b.negate(b.multiply(x, x))), inverse), series)
    far = b.select(b.compare(x, zero_like(b, x), "LT"), b.subtract(b.full_like(x, 2), tail), tail)
    near = _one_minus(b, b.unary("erf", x))
    return b.select(b.compare(size, b.full_like(x, 1), "GT"), far, near)


def _polynomial(b: Builder, x: Instruction, coefficients: Sequence[float]) -> Instruction:
    """By Horner's rule, the highest power first."""
    total = b.full_like(x, coefficients[0])
    for c in coefficients[1:]:
        total = b.add(b.multiply(total, x), b.full_like(x, c))
    return total


@tf_op("Softmax")
def softmax(node: NodeView, b: Builder) -> Instruction:
    x = node.input(0)
    return b.convert(softmax_over(b, widen(b, x), [len(x.shape) - 1]), x.tensor_type.element)


@tf_op("LogSoftmax")
def log_softmax(node: NodeView, b: Builder) -> Instruction:
    x = node.input(0)
    return b.convert(log_softmax_of(b, widen(b, x)), x.tensor_type.element)


def log_softmax_of(b: Builder, x: Instruction) -> Instruction:
    """x - max - log(sum(exp(x - max))) over the last dimension."""
    last = len(x.shape) - 1
    kept = list(range(last))
    shifted = b.subtract(x, b.broadcast(b.reduce_by("maximum", x, [last]), x.shape, kept))
    total = b.unary("log", b.reduce_by("add", b.exponential(shifted), [last]))
    return b.subtract(shifted, b.broadcast(total, x.shape, kept))


Gradient = Callable[[Builder, Instruction, Instruction], Instruction]
"""From the gradient by the result, and the operation's input or result, to that by its input."""


def _register_gradient(name: str, of: Gradient, gradient_first: bool) -> None:
    @tf_op(name)
    def rule(node: NodeView, b: Builder) -> Instruction:
        first, second = node.input(0), node.input(1)
        return of(b, first, second) if gradient_first else of(b, second, first)


def _elu_gradient(b: Builder, g: Instruction, y: Instruction) -> Instruction:
    return b.select(b.compare(y, zero_like(b, y), "LT"), b.multiply(g, b.add(y, b.full_like(y, 1))), g)


def _selu_gradient(b: Builder, g: Instruction, y: Instruction) -> Instruction:
    below = b.multiply(g, b.add(y, b.full_like(y, SELU_ALPHA * SELU_SCALE)))
    return b.select(b.compare(y, zero_like(b, y), "LT"), below, scaled(b, g, SELU_SCALE))


def _softsign_gradient(b: Builder, g: Instruction, x: Instruction) -> Instruction:
    divisor = b.add(b.unary("abs", x), b.full_like(x, 1))
    return b.divide(g, b.multiply(divisor, divisor))


def _relu6_gradient(b: Builder, g: Instruction, x: Instruction) -> Instruction:
    inside = b.and_(_positive(b, x), b.compare(x, b.full_like(x, 6), "LT"))
    return b.select(inside, g, zero_like(b, g))


# The operation's own value is the second operand of these, and the first of those below.
for _name, _of in {
    "ReluGrad": lambda b, g, x: b.select(_positive(b, x), g, zero_like(b, g)),
    "Relu6Grad": _relu6_gradient,
    "EluGrad": _elu_gradient,
    "SeluGrad": _selu_gradient,
    "SoftplusGrad": lambda b, g, x: b.multiply(g, b.unary("logistic", x)),
    "SoftsignGrad": _softsign_gradient,
}.items():
    _register_gradient(_name, _of, gradient_first=True)

for _name, _of in {
    "SigmoidGrad": lambda b, g, y: b.multiply(g, b.multiply(y, _one_minus(b, y))),
    "TanhGrad": lambda b, g, y: b.multiply(g, _one_minus(b, b.multiply(y, y))),
    "SqrtGrad": lambda b, g, y: b.divide(scaled(b, g, 0.5), y),
    "RsqrtGrad": lambda b, g, y: scaled(b, b.multiply(g, b.multiply(y, b.multiply(y, y))), -0.5),
    "ReciprocalGrad": lambda b, g, y: b.negate(b.multiply(g, b.multiply(y, y))),
    "InvGrad": lambda b, g, y: b.negate(b.multiply(g, b.multiply(y, y))),
}.items():
    _register_gradient(_name, _of, gradient_first=False)


@tf_op("LeakyReluGrad")
def leaky_relu_grad(node: NodeView, b: Builder) -> Instruction:
    g, x = node.input(0), node.input(1)
    return b.select(_positive(b, x), g, scaled(b, g, node.float("alpha", 0.2)))


@tf_op("L2Loss")
def l2_loss(node: NodeView, b: Builder) -> Instruction:
    """sum(x ** 2) / 2"""
    x = widen(b, node.input(0))
    total = scaled(b, b.reduce_by("add", b.multiply(x, x), range(len(x.shape))), 0.5)
    return b.convert(total, node.input(0).tensor_type.element)
