"""Activation functions: Relu and its relatives, sigmoids, Gelu, Softplus, Mish, Swish.

What takes several operations computes in f32 for half precision and rounds once.
"""

import math
from collections.abc import Callable

from onnxla.frontends.onnx.broadcasting import broadcast_from_axis
from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.elementwise import FIRST_OPSET_OF_NUMPY_BROADCASTING
from onnxla.frontends.onnx.rules.precision import widen
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import F64

SELU_ALPHA_UNTIL_5, SELU_GAMMA_UNTIL_5 = 1.6732, 1.0507
SELU_ALPHA, SELU_GAMMA = 1.67326319217681884765625, 1.05070102214813232421875


def _is_negative(b: Builder, x: Instruction) -> Instruction:
    return b.compare(x, b.full_like(x, 0), "LT")


def _rounded_once(node: NodeView, b: Builder, function: Callable[[Instruction], Instruction]) -> Instruction:
    """`function` of input 0 in the type that half precision computes in, as a number of the input's type."""
    given = node.input(0)
    return b.convert(function(widen(b, given)), given.tensor_type.element)


def _scaled(b: Builder, x: Instruction, factor: float) -> Instruction:
    return x if factor == 1 else b.multiply(x, b.full_like(x, factor))


@onnx_op("Relu")
def relu(node: NodeView, b: Builder) -> Instruction:
    x = node.input(0)
    return b.maximum(x, b.full_like(x, 0))


@onnx_op("LeakyRelu")
def leaky_relu(node: NodeView, b: Builder) -> Instruction:
    alpha = node.float("alpha", 0.01)
    return _rounded_once(node, b, lambda x: b.select(_is_negative(b, x), _scaled(b, x, alpha), x))


@onnx_op("PRelu")
def prelu(node: NodeView, b: Builder) -> Instruction:
    """Before opset 7 the slope is one number, or one for each channel (dimension 1)."""
    x, slope = node.input(0), node.input(1)
    if node.opset < FIRST_OPSET_OF_NUMPY_BROADCASTING and slope.tensor_type.size != 1:
        slope = broadcast_from_axis(b, slope, x.shape, 1)
    slope = b.numpy_broadcast(_without_leading_ones(b, slope, len(x.shape)), x.shape)
    return b.select(_is_negative(b, x), b.multiply(slope, x), x)


def _without_leading_ones(b: Builder, value: Instruction, rank: int) -> Instruction:
    extra = max(len(value.shape) - rank, 0)
    return b.reshape(value, value.shape[extra:]) if set(value.shape[:extra]) <= {1} else value


@onnx_op("ThresholdedRelu", since=10)
def thresholded_relu(node: NodeView, b: Builder) -> Instruction:
    alpha = node.float("alpha", 1.0)

    def of(x: Instruction) -> Instruction:
        return b.select(b.compare(x, b.full_like(x, alpha), "GT"), x, b.full_like(x, 0))

    return _rounded_once(node, b, of)


@onnx_op("Elu")
def elu(node: NodeView, b: Builder) -> Instruction:
    return _rounded_once(node, b, lambda x: _elu_of(b, x, node.float("alpha", 1.0)))


def _elu_of(b: Builder, x: Instruction, alpha: float) -> Instruction:
    """x, or alpha * (exp(x) - 1) below 0."""
    return b.select(_is_negative(b, x), _scaled(b, _exp_minus_one(b, x), alpha), x)


@onnx_op("Selu", until=5)
def selu_with_short_constants(node: NodeView, b: Builder) -> Instruction:
    return _selu(node, b, SELU_ALPHA_UNTIL_5, SELU_GAMMA_UNTIL_5)


@onnx_op("Selu", since=6)
def selu(node: NodeView, b: Builder) -> Instruction:
    return _selu(node, b, SELU_ALPHA, SELU_GAMMA)


def _selu(node: NodeView, b: Builder, alpha: float, gamma: float) -> Instruction:
    alpha, gamma = node.float("alpha", alpha), node.float("gamma", gamma)
    return _rounded_once(node, b, lambda x: _scaled(b, _elu_of(b, x, alpha), gamma))


@onnx_op("Celu", since=12)
def celu(node: NodeView, b: Builder) -> Instruction:
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1))"""
    alpha = node.float("alpha", 1.0)

    def of(x: Instruction) -> Instruction:
        zero = b.full_like(x, 0)
        scaled = x if alpha == 1 else b.divide(x, b.full_like(x, alpha))
        return b.add(b.maximum(x, zero), b.minimum(_scaled(b, _exp_minus_one(b, scaled), alpha), zero))

    return _rounded_once(node, b, of)


def _exp_minus_one(b: Builder, x: Instruction) -> Instruction:
    return b.unary("exponential-minus-one", x)


@onnx_op("Sigmoid")
def sigmoid(node: NodeView, b: Builder) -> Instruction:
    return b.unary("logistic", node.input(0))


@onnx_op("HardSigmoid")
def hard_sigmoid(node: NodeView, b: Builder) -> Instruction:
    alpha, beta = node.float("alpha", 0.2), node.float("beta", 0.5)
    return _rounded_once(node, b, lambda x: _hard_sigmoid(b, x, alpha, beta))


@onnx_op("HardSwish", since=14)
def hard_swish(node: NodeView, b: Builder) -> Instruction:
    return _rounded_once(node, b, lambda x: b.multiply(x, _hard_sigmoid(b, x, 1 / 6, 0.5)))


def _hard_sigmoid(b: Builder, x: Instruction, alpha: float, beta: float) -> Instruction:
    """clamp(alpha * x + beta, 0, 1)"""
    element = x.tensor_type.element
    line = b.add(_scaled(b, x, alpha), b.full_like(x, beta))
    return b.clamp(b.constant(0, element), line, b.constant(1, element))


@onnx_op("Softplus")
def softplus(node: NodeView, b: Builder) -> Instruction:
    return _rounded_once(node, b, lambda x: softplus_of(b, x))


def softplus_of(b: Builder, x: Instruction) -> Instruction:
    """log(1 + exp(x)) as max(x, 0) + log1p(exp(-|x|)), which does not overflow."""
    decay = b.exponential(b.negate(b.unary("abs", x)))
    return b.add(b.maximum(x, b.full_like(x, 0)), b.unary("log-plus-one", decay))


@onnx_op("Softsign")
def softsign(node: NodeView, b: Builder) -> Instruction:
    """x / (1 + |x|)"""
    return _rounded_once(node, b, lambda x: b.divide(x, b.add(b.unary("abs", x), b.full_like(x, 1))))


@onnx_op("Mish", since=18)
def mish(node: NodeView, b: Builder) -> Instruction:
    """x * tanh(softplus(x))"""
    return _rounded_once(node, b, lambda x: b.multiply(x, b.unary("tanh", softplus_of(b, x))))


@onnx_op("Swish", since=24)
def swish(node: NodeView, b: Builder) -> Instruction:
    """x * sigmoid(alpha * x)"""
    alpha = node.float("alpha", 1.0)
    return _rounded_once(node, b, lambda x: b.multiply(x, b.unary("logistic", _scaled(b, x, alpha))))


@onnx_op("Gelu", since=20)
def gelu(node: NodeView, b: Builder) -> Instruction:
    form = tanh_gelu_of if node.word("approximate", ("none", "tanh"), "none") == "tanh" else gelu_of
    return _rounded_once(node, b, lambda x: form(b, x))


def gelu_of(b: Builder, x: Instruction) -> Instruction:
    """0.5 * x * (1 + erf(x / sqrt(2)))"""
    erf = b.unary("erf", _scaled(b, x, math.sqrt(0.5)))
    return b.multiply(_scaled(b, x, 0.5), b.add(erf, b.full_like(x, 1)))


def tanh_gelu_of(b: Builder, x: Instruction) -> Instruction:
    """0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))"""
    cube = b.multiply(b.multiply(x, x), x)
    inner = _scaled(b, b.add(x, _scaled(b, cube, 0.044715)), math.sqrt(2 / math.pi))
    return b.multiply(_scaled(b, x, 0.5), b.add(b.unary("tanh", inner), b.full_like(x, 1)))


@onnx_op("Shrink", since=9)
def shrink(node: NodeView, b: Builder) -> Instruction:
    """x + bias below -lambd, x - bias above lambd, otherwise 0. Integers compute in f64."""
    element = node.input(0).tensor_type.element
    x = widen(b, node.input(0)) if element.is_float else b.convert(node.input(0), F64)
    threshold, bias = node.float("lambd", 0.5), b.full_like(x, node.float("bias", 0.0))
    below = b.compare(x, b.full_like(x, -threshold), "LT")
    above = b.compare(x, b.full_like(x, threshold), "GT")
    inner = b.select(above, b.subtract(x, bias), b.full_like(x, 0))
    return b.convert(b.select(below, b.add(x, bias), inner), element)
