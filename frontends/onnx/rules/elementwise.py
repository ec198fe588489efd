"""Arithmetic, element by element: Add ... Xor of numbers, Max, Min, Sum, Mean, Clip, Mod, Pow.

Half precision computes in its own type, one rounding per operation.
"""

from collections.abc import Callable

import ml_dtypes
import numpy as np

from onnxla.frontends.onnx.broadcasting import broadcast_from_axis, broadcast_together
from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import F64, S64, U64, ElementType

FIRST_OPSET_OF_NUMPY_BROADCASTING = 7


def binary_operands(node: NodeView, b: Builder) -> tuple[Instruction, Instruction]:
    """Both inputs at their common shape, by the broadcasting rule of the node's opset."""
    x, y = node.input(0), node.input(1)
    if node.opset >= FIRST_OPSET_OF_NUMPY_BROADCASTING:
        x, y = broadcast_together(b, x, y)
        return x, y
    if node.int("broadcast", 0):
        return x, broadcast_from_axis(b, y, x.shape, node.int("axis", None))
    if x.shape != y.shape:
        node.shape_error("the shapes differ and the attribute broadcast is 0")
    return x, y


def _register_binary(op_type: str, opcode: str) -> None:
    @onnx_op(op_type)
    def rule(node: NodeView, b: Builder) -> Instruction:
        return b.binary(opcode, *binary_operands(node, b))


def _register_unary(op_type: str, opcode: str) -> None:
    @onnx_op(op_type)
    def rule(node: NodeView, b: Builder) -> Instruction:
        return b.unary(opcode, node.input(0))


for _op_type, _opcode in {"Add": "add", "Sub": "subtract", "Mul": "multiply", "Div": "divide"}.items():
    _register_binary(_op_type, _opcode)

for _op_type, _opcode in {
    "Neg": "negate",
    "Ceil": "ceil",
    "Floor": "floor",
    "Round": "round-nearest-even",
    "Exp": "exponential",
    "Log": "log",
    "Sqrt": "sqrt",
}.items():
    _register_unary(_op_type, _opcode)


@onnx_op("Abs")
def abs_(node: NodeView, b: Builder) -> Instruction:
    x = node.input(0)
    element = x.tensor_type.element
    return b.unary("abs", x) if element.is_float or element.is_signed else x


@onnx_op("Sign", since=9)
def sign(node: NodeView, b: Builder) -> Instruction:
    """-1, 0 or 1; NaN stays NaN, and -0.0 gives 0.0, where HLO's sign keeps it."""
    x = node.input(0)
    element = x.tensor_type.element
    if element.is_float:
        return b.add(b.unary("sign", x), b.full_like(x, 0.0))
    if element.is_signed:
        return b.unary("sign", x)
    return b.convert(b.compare(x, b.full_like(x, 0), "NE"), element)


@onnx_op("Reciprocal")
def reciprocal(node: NodeView, b: Builder) -> Instruction:
    x = node.input(0)
    return b.divide(b.full_like(x, 1), x)


@onnx_op("Erf", since=9)
def erf(node: NodeView, b: Builder) -> Instruction:
    """Opset 9 allows integers, whose result is rounded towards zero."""
    x = node.input(0)
    element = x.tensor_type.element
    if element.is_float:
        return b.unary("erf", x)
    return b.convert(b.unary("erf", b.convert(x, F64)), element)


def _fold(node: NodeView, b: Builder, combine: Callable[[Instruction, Instruction], Instruction]) -> Instruction:
    first, *others = broadcast_together(b, *node.inputs())
    for other in others:
        first = combine(first, other)
    return first


@onnx_op("Max")
def max_(node: NodeView, b: Builder) -> Instruction:
    """NaN where any input is NaN."""
    return _fold(node, b, b.maximum)


@onnx_op("Min")
def min_(node: NodeView, b: Builder) -> Instruction:
    """NaN where any input is NaN."""
    return _fold(node, b, b.minimum)


@onnx_op("Sum")
def sum_(node: NodeView, b: Builder) -> Instruction:
    return _fold(node, b, b.add)


@onnx_op("Mean")
def mean(node: NodeView, b: Builder) -> Instruction:
    total = _fold(node, b, b.add)
    return b.divide(total, b.full_like(total, node.input_count))


@onnx_op("Clip", until=10)
def clip_by_attributes(node: NodeView, b: Builder) -> Instruction:
    x = node.input(0)
    low, high = node.float("min", None), node.float("max", None)
    element = x.tensor_type.element
    return _clip(
        b,
        x,
        None if low is None else b.constant(low, element),
        None if high is None else b.constant(high, element),
    )


@onnx_op("Clip", since=11)
def clip(node: NodeView, b: Builder) -> Instruction:
    bounds = [node.optional_input(1), node.optional_input(2)]
    for bound in bounds:
        if bound is not None and bound.tensor_type.size != 1:
            node.shape_error("min and max must be scalars")
    low, high = (
        _bound(node, b, i, infinity) if node.has_input(i) else None for i, infinity in ((1, -np.inf), (2, np.inf))
    )
    return _clip(b, node.input(0), low, high)


def _bound(node: NodeView, b: Builder, i: int, infinity: float) -> Instruction:
    """Input `i` as a scalar; NaN bounds nothing, as in onnxruntime, where HLO's clamp would give NaN."""
    bound, known = b.reshape(node.input(i), ()), node.known(i)
    if not bound.tensor_type.element.is_float or (known is not None and not np.isnan(known).any()):
        return bound
    return b.select(b.is_nan(bound), b.full_like(bound, infinity), bound)


def _clip(b: Builder, x: Instruction, low: Instruction | None, high: Instruction | None) -> Instruction:
    """min(max(x, low), high): where low > high everything is high. NaN stays NaN.

    A bound left out is the least or the greatest finite number of the type, so infinities are clipped.
    """
    element = x.tensor_type.element
    if element.is_float:
        greatest = ml_dtypes.finfo(element.dtype).max  # type: ignore[no-untyped-call]
        low = b.constant(-greatest) if low is None else low
        high = b.constant(greatest) if high is None else high
    if low is not None and high is not None:
        return b.clamp(low, x, high)
    if low is not None:
        return b.maximum(x, b.broadcast_scalar(low, x.shape))
    return x if high is None else b.minimum(x, b.broadcast_scalar(high, x.shape))


@onnx_op("Mod", since=10)
def mod(node: NodeView, b: Builder) -> Instruction:
    """fmod=1: the sign of the dividend, as C. fmod=0: the sign of the divisor, as Python."""
    x, y = binary_operands(node, b)
    element = x.tensor_type.element
    remainder = b.remainder(x, y)
    if node.int("fmod", 0) or not (element.is_float or element.is_signed):
        return remainder
    zero = b.full_like(x, 0)
    y_negative = b.compare(y, zero, "LT")
    signs_differ = b.xor(b.compare(remainder, zero, "LT"), y_negative)
    nonzero = b.compare(remainder, zero, "NE")
    result = b.select(b.and_(nonzero, signs_differ), b.add(remainder, y), remainder)
    if not element.is_float:
        return result
    signed_zero = b.select(y_negative, b.full_like(x, -0.0), zero)
    return b.select(b.compare(remainder, zero, "EQ"), signed_zero, result)


@onnx_op("Pow")
def pow_(node: NodeView, b: Builder) -> Instruction:
    """The result has the type of the base. Squares and cubes are products, as in onnxruntime.

    Integers to the power of integers are exact and wrap. A mixed pair computes in the base's type where that holds
    every exponent, and otherwise in f64.
    """
    exponent = node.known(1)
    base = node.input(0)
    if exponent is not None and exponent.size == 1 and exponent.item() in (2, 3):
        lead = len(exponent.shape) - len(base.shape)
        base = b.reshape(base, ((1,) * lead + base.shape) if lead > 0 else base.shape)
        square = b.multiply(base, base)
        return square if exponent.item() == 2 else b.multiply(square, base)
    x, y = binary_operands(node, b)
    element = x.tensor_type.element
    computed_in = _power_element(element, y.tensor_type.element, exponent)
    return b.convert(b.power(b.convert(x, computed_in), b.convert(y, computed_in)), element)


def _power_element(base: ElementType, exponent: ElementType, value: np.ndarray | None) -> ElementType:
    if base is exponent and base.is_float:
        return base
    if base.is_integer and exponent.is_integer:
        return S64 if exponent.is_signed else U64  # what wraps in 64 bits wraps in fewer
    if base.is_float and value is not None and np.array_equal(value.astype(base.dtype).astype(value.dtype), value):
        return base
    if base.is_float and np.can_cast(exponent.dtype, base.dtype):
        return base
    return F64
