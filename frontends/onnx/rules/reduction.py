"""ReduceSum, ReduceMean, ReduceMax and the other reductions over any set of axes.

Half precision accumulates in f32. Reducing nothing gives the operation's identity.
"""

import math
from collections.abc import Callable

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.axes import dropped_shape, kept_shape, normal_axes
from onnxla.frontends.onnx.rules.precision import widen
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import F64, PRED, Shape

Reduction = Callable[[Builder, Instruction, Shape], Instruction]
"""Reduces a widened tensor over dimensions, which go."""


def reduce_max(b: Builder, x: Instruction, dimensions: Shape) -> Instruction:
    return b.reduce_by("or" if x.tensor_type.element is PRED else "maximum", x, dimensions)


def reduce_min(b: Builder, x: Instruction, dimensions: Shape) -> Instruction:
    return b.reduce_by("and" if x.tensor_type.element is PRED else "minimum", x, dimensions)


def reduce_sum(b: Builder, x: Instruction, dimensions: Shape) -> Instruction:
    return b.reduce_by("add", x, dimensions)


def reduce_prod(b: Builder, x: Instruction, dimensions: Shape) -> Instruction:
    return b.reduce_by("multiply", x, dimensions)


def reduce_mean(b: Builder, x: Instruction, dimensions: Shape) -> Instruction:
    """The sum over the count; integers round towards zero, and the mean of nothing is 0."""
    total = reduce_sum(b, x, dimensions)
    return b.divide(total, b.full_like(total, max(math.prod(x.shape[d] for d in dimensions), 1)))


def reduce_l1(b: Builder, x: Instruction, dimensions: Shape) -> Instruction:
    signed = x.tensor_type.element.is_float or x.tensor_type.element.is_signed
    return reduce_sum(b, b.unary("abs", x) if signed else x, dimensions)


def reduce_sum_square(b: Builder, x: Instruction, dimensions: Shape) -> Instruction:
    return reduce_sum(b, b.multiply(x, x), dimensions)


def reduce_l2(b: Builder, x: Instruction, dimensions: Shape) -> Instruction:
    return _by_float(b, "sqrt", reduce_sum_square(b, x, dimensions))


def reduce_log_sum(b: Builder, x: Instruction, dimensions: Shape) -> Instruction:
    return _by_float(b, "log", reduce_sum(b, x, dimensions))


def _by_float(b: Builder, opcode: str, x: Instruction) -> Instruction:
    """A function of floats applied to `x`, by way of f64 for integers, which round towards zero."""
    element = x.tensor_type.element
    return b.unary(opcode, x) if element.is_float else b.convert(b.unary(opcode, b.convert(x, F64)), element)


def reduce_log_sum_exp(b: Builder, x: Instruction, dimensions: Shape) -> Instruction:
    """max + log(sum(exp(x - max))), which does not overflow; an infinite max counts as 0 in it."""
    element = x.tensor_type.element
    x = x if element.is_float else b.convert(x, F64)
    largest = b.reduce_by("maximum", x, dimensions)
    shift = b.select(b.unary("is-finite", largest), largest, b.full_like(largest, 0))
    kept = [d for d in range(len(x.shape)) if d not in dimensions]
    shifted = b.subtract(x, b.broadcast(shift, x.shape, kept))
    logarithm = b.unary("log", reduce_sum(b, b.exponential(shifted), dimensions))
    return b.convert(b.add(logarithm, shift), element)


REDUCTIONS: dict[str, tuple[Reduction, int]] = {
    "ReduceSum": (reduce_sum, 13),
    "ReduceMean": (reduce_mean, 18),
    "ReduceMax": (reduce_max, 18),
    "ReduceMin": (reduce_min, 18),
    "ReduceProd": (reduce_prod, 18),
    "ReduceL1": (reduce_l1, 18),
    "ReduceL2": (reduce_l2, 18),
    "ReduceLogSum": (reduce_log_sum, 18),
    "ReduceLogSumExp": (reduce_log_sum_exp, 18),
    "ReduceSumSquare": (reduce_sum_square, 18),
}
"""Each operator's function, and the first opset in which its axes are an input."""


def _register(op_type: str, reduction: Reduction, axes_are_input_since: int) -> None:
    @onnx_op(op_type, until=axes_are_input_since - 1)
    def by_attribute(node: NodeView, b: Builder) -> Instruction:
        return _reduce(node, b, reduction, node.ints("axes", ()))

    @onnx_op(op_type, since=axes_are_input_since)
    def by_input(node: NodeView, b: Builder) -> Instruction:
        return _reduce(node, b, reduction, node.optional_constant_ints(1) or ())


for _op_type, (_reduction, _since) in REDUCTIONS.items():
    _register(_op_type, _reduction, _since)


def _reduce(node: NodeView, b: Builder, reduction: Reduction, axes: Shape) -> Instruction:
    """No axes means all, or with noop_with_empty_axes none: then only the elementwise part is done."""
    given = node.input(0)
    rank = len(given.shape)
    if not axes and not node.int("noop_with_empty_axes", 0):
        axes = tuple(range(rank))
    dimensions = tuple(sorted(normal_axes(node, axes, rank)))
    reduced = b.convert(reduction(b, widen(b, given), dimensions), given.tensor_type.element)
    shape = kept_shape if node.int("keepdims", 1) else dropped_shape
    return b.reshape(reduced, shape(given.shape, dimensions))
