"""Softmax, LogSoftmax, and the normalisations without parameters: Lp, mean-variance, local response."""

from collections.abc import Sequence

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.axes import normal_axes, normal_axis
from onnxla.frontends.onnx.rules.normalization import centred, spread_over
from onnxla.frontends.onnx.rules.pooling import root, to_power
from onnxla.frontends.onnx.rules.precision import widen
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.window import Window, WindowDimension

FIRST_OPSET_OF_ONE_AXIS = 13


@onnx_op("Softmax")
def softmax(node: NodeView, b: Builder) -> Instruction:
    x = node.input(0)
    return b.convert(softmax_over(b, widen(b, x), _softmax_dimensions(node, x)), x.tensor_type.element)


@onnx_op("LogSoftmax")
def log_softmax(node: NodeView, b: Builder) -> Instruction:
    """x - max - log(sum(exp(x - max)))"""
    given = node.input(0)
    result = log_softmax_over(b, widen(b, given), _softmax_dimensions(node, given))
    return b.convert(result, given.tensor_type.element)


def log_softmax_over(b: Builder, x: Instruction, dimensions: Sequence[int]) -> Instruction:
    """The logarithm of `softmax_over`, without its quotient."""
    shifted = _minus_largest(b, x, dimensions)
    total = b.reduce_by("add", b.exponential(shifted), dimensions)
    return b.subtract(shifted, spread_over(b, b.unary("log", total), x, dimensions))


def softmax_over(b: Builder, x: Instruction, dimensions: Sequence[int]) -> Instruction:
    """exp(x - max) / sum(exp(x - max)) over `dimensions`: one division for each sum, which is 1 or more."""
    exponentials = b.exponential(_minus_largest(b, x, dimensions))
    total = b.reduce_by("add", exponentials, dimensions)
    return b.multiply(exponentials, spread_over(b, b.divide(b.full_like(total, 1), total), x, dimensions))


def _minus_largest(b: Builder, x: Instruction, dimensions: Sequence[int]) -> Instruction:
    return b.subtract(x, spread_over(b, b.reduce_by("maximum", x, dimensions), x, dimensions))


def _softmax_dimensions(node: NodeView, x: Instruction) -> tuple[int, ...]:
    """One axis since opset 13; before that all dimensions from `axis` on, as if flattened to a matrix."""
    rank = len(x.shape)
    if node.opset >= FIRST_OPSET_OF_ONE_AXIS:
        return (normal_axis(node, node.int("axis", -1), rank),)
    return tuple(range(normal_axis(node, node.int("axis", 1), rank), rank))


@onnx_op("LpNormalization")
def lp_normalization(node: NodeView, b: Builder) -> Instruction:
    """x divided by its 1- or 2-norm along `axis`; a norm of 0 gives 0."""
    given, p = node.input(0), node.int("p", 2)
    x, dimensions = widen(b, given), [normal_axis(node, node.int("axis", -1), len(given.shape))]
    norm = spread_over(b, root(b, b.reduce_by("add", to_power(b, x, p), dimensions), p), x, dimensions)
    zero = b.full_like(x, 0)
    result = b.select(b.compare(norm, zero, "EQ"), zero, b.divide(x, norm))
    return b.convert(result, given.tensor_type.element)


@onnx_op("MeanVarianceNormalization", since=9)
def mean_variance_normalization(node: NodeView, b: Builder) -> Instruction:
    """(x - mean) / (deviation + 1e-9)"""
    given = node.input(0)
    dimensions = normal_axes(node, node.ints("axes", (0, 2, 3)), len(given.shape))
    x = widen(b, given)
    _, variance, difference = centred(b, x, dimensions)
    deviation = b.unary("sqrt", variance)
    divisor = spread_over(b, b.add(deviation, b.full_like(deviation, 1e-9)), x, dimensions)
    return b.convert(b.divide(difference, divisor), given.tensor_type.element)


@onnx_op("LRN")
def local_response_normalization(node: NodeView, b: Builder) -> Instruction:
    """x / (bias + alpha / size * sum of squares over `size` neighbouring channels) ** beta"""
    given, size = node.input(0), node.int("size")
    x = widen(b, given)
    before = (size - 1) // 2
    channels = WindowDimension(size=size, pad_low=before, pad_high=size - 1 - before)
    window = Window(tuple(channels if d == 1 else WindowDimension() for d in range(len(x.shape))))
    element = x.tensor_type.element
    squares = b.reduce_window([b.multiply(x, x)], [b.constant(0, element)], window, b.combiner("add", element))
    scaled = b.multiply(squares, b.full_like(x, node.float("alpha", 1e-4) / size))
    base = b.add(b.full_like(x, node.float("bias", 1.0)), scaled)
    result = b.divide(x, b.power(base, b.full_like(x, node.float("beta", 0.75))))
    return b.convert(result, given.tensor_type.element)
