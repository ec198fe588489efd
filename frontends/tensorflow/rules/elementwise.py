"""Arithmetic, comparisons and bits, element by element; two operands broadcast as in numpy."""

from collections.abc import Callable
from dataclasses import replace
from functools import reduce

import numpy as np

from onnxla.frontends.onnx.broadcasting import broadcast_together
from onnxla.frontends.tensorflow.node_view import NodeView
from onnxla.frontends.tensorflow.registry import tf_op
from onnxla.frontends.tensorflow.values import ListValue, Value
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import PRED


def _register_unary(name: str, opcode: str) -> None:
    @tf_op(name)
    def rule(node: NodeView, b: Builder) -> Instruction:
        return b.unary(opcode, node.input(0))


def _register_binary(name: str, combine: Callable[[Builder, Instruction, Instruction], Instruction]) -> None:
    @tf_op(name)
    def rule(node: NodeView, b: Builder) -> Instruction:
        x, y = broadcast_together(b, node.input(0), node.input(1))
        return combine(b, x, y)


def _register_opcode(name: str, opcode: str) -> None:
    _register_binary(name, lambda b, x, y: b.binary(opcode, x, y))


def _register_comparison(name: str, direction: str) -> None:
    _register_binary(name, lambda b, x, y: b.compare(x, y, direction))


for _name, _opcode in {
    "Neg": "negate",
    "Exp": "exponential",
    "Expm1": "exponential-minus-one",
    "Log": "log",
    "Log1p": "log-plus-one",
    "Sqrt": "sqrt",
    "Rsqrt": "rsqrt",
    "Tanh": "tanh",
    "Sigmoid": "logistic",
    "Sin": "sine",
    "Cos": "cosine",
    "Tan": "tan",
    "Sinh": "sinh",
    "Cosh": "cosh",
    "Asin": "asin",
    "Acos": "acos",
    "Asinh": "asinh",
    "Acosh": "acosh",
    "Atanh": "atanh",
    "Erf": "erf",
    "Ceil": "ceil",
    "Floor": "floor",
    "Rint": "round-nearest-even",
    "IsFinite": "is-finite",
    "LogicalNot": "not",
    "Invert": "not",
    "PopulationCount": "popcnt",
    "Real": "real",
    "Imag": "imag",
    "ComplexAbs": "abs",
}.items():
    _register_unary(_name, _opcode)

for _name, _opcode in {
    "Add": "add",
    "AddV2": "add",
    "Sub": "subtract",
    "Mul": "multiply",
    "RealDiv": "divide",
    "Div": "divide",
    "TruncateDiv": "divide",
    "TruncateMod": "remainder",
    "Mod": "remainder",
    "Maximum": "maximum",
    "Minimum": "minimum",
    "Pow": "power",
    "Atan2": "atan2",
    "Complex": "complex",
    "LogicalAnd": "and",
    "LogicalOr": "or",
    "BitwiseAnd": "and",
    "BitwiseOr": "or",
    "BitwiseXor": "xor",
    "LeftShift": "shift-left",
}.items():
    _register_opcode(_name, _opcode)

for _name, _direction in {
    "Greater": "GT",
    "GreaterEqual": "GE",
    "Less": "LT",
    "LessEqual": "LE",
    "Equal": "EQ",
    "NotEqual": "NE",
}.items():
    _register_comparison(_name, _direction)


def zero_like(b: Builder, x: Instruction) -> Instruction:
    """Zeros of the type of `x`."""
    return b.full_like(x, 0)


def scaled(b: Builder, x: Instruction, factor: float) -> Instruction:
    """`x` times a number."""
    return x if factor == 1 else b.multiply(x, b.full_like(x, factor))


def _squared_difference(b: Builder, x: Instruction, y: Instruction) -> Instruction:
    difference = b.subtract(x, y)
    return b.multiply(difference, difference)


def _right_shift(b: Builder, x: Instruction, y: Instruction) -> Instruction:
    signed = x.tensor_type.element.is_signed
    return b.binary("shift-right-arithmetic" if signed else "shift-right-logical", x, y)


def floor_divide(b: Builder, x: Instruction, y: Instruction) -> Instruction:
    """x / y rounded down; HLO's division of integers rounds towards zero."""
    quotient = b.divide(x, y)
    element = x.tensor_type.element
    if element.is_float:
        return b.unary("floor", quotient)
    if not element.is_signed:
        return quotient
    inexact = b.compare(b.multiply(quotient, y), x, "NE")
    return b.select(b.and_(inexact, _signs_differ(b, x, y)), b.subtract(quotient, b.full_like(x, 1)), quotient)


def _floor_mod(b: Builder, x: Instruction, y: Instruction) -> Instruction:
    """What is left of x / y rounded down: it has the sign of y."""
    rest = b.remainder(x, y)
    element = x.tensor_type.element
    if not element.is_float and not element.is_signed:
        return rest
    wrong_side = b.and_(b.compare(rest, zero_like(b, rest), "NE"), _signs_differ(b, rest, y))
    return b.select(wrong_side, b.add(rest, y), rest)


def _signs_differ(b: Builder, x: Instruction, y: Instruction) -> Instruction:
    zero = zero_like(b, x)
    return b.compare(b.compare(x, zero, "LT"), b.compare(y, zero, "LT"), "NE")


def _zero_where_zero(
    tested: int, combine: Callable[[Builder, Instruction, Instruction], Instruction]
) -> Callable[[Builder, Instruction, Instruction], Instruction]:
    """`combine`, but 0 where operand `tested` is 0, whatever the other is."""

    def of(b: Builder, x: Instruction, y: Instruction) -> Instruction:
        zero = zero_like(b, x)
        return b.select(b.compare((x, y)[tested], zero, "EQ"), zero, combine(b, x, y))

    return of


_register_binary("SquaredDifference", _squared_difference)
_register_binary("RightShift", _right_shift)
_register_binary("FloorDiv", floor_divide)
_register_binary("FloorMod", _floor_mod)
_register_binary("DivNoNan", _zero_where_zero(1, Builder.divide))
_register_binary("MulNoNan", _zero_where_zero(1, Builder.multiply))
_register_binary("Xdivy", _zero_where_zero(0, Builder.divide))
_register_binary("Xlogy", _zero_where_zero(0, lambda b, x, y: b.multiply(x, b.unary("log", y))))
_register_binary("Xlog1py", _zero_where_zero(0, lambda b, x, y: b.multiply(x, b.unary("log-plus-one", y))))


@tf_op("Abs")
def abs_(node: NodeView, b: Builder) -> Instruction:
    x = node.input(0)
    element = x.tensor_type.element
    return b.unary("abs", x) if element.is_float or element.is_signed else x


@tf_op("Sign")
def sign(node: NodeView, b: Builder) -> Instruction:
    x = node.input(0)
    element = x.tensor_type.element
    if element.is_float or element.is_signed or element.is_complex:
        return b.unary("sign", x)
    return b.convert(b.compare(x, zero_like(b, x), "NE"), element)


@tf_op("Round")
def round_(node: NodeView, b: Builder) -> Instruction:
    """To the nearest integer, halves to the even one. Integers are what they are."""
    x = node.input(0)
    return b.unary("round-nearest-even", x) if x.tensor_type.element.is_float else x


@tf_op("Square")
def square(node: NodeView, b: Builder) -> Instruction:
    x = node.input(0)
    return b.multiply(x, x)


@tf_op("Reciprocal", "Inv")
def reciprocal(node: NodeView, b: Builder) -> Instruction:
    x = node.input(0)
    return b.divide(b.full_like(x, 1), x)


@tf_op("Atan")
def atan(node: NodeView, b: Builder) -> Instruction:
    x = node.input(0)
    return b.binary("atan2", x, b.full_like(x, 1))


@tf_op("IsNan")
def is_nan(node: NodeView, b: Builder) -> Instruction:
    return b.is_nan(node.input(0))


@tf_op("IsInf")
def is_inf(node: NodeView, b: Builder) -> Instruction:
    x = b.unary("abs", node.input(0))
    return b.compare(x, b.full_like(x, np.inf), "EQ")


@tf_op("Conj")
def conj(node: NodeView, b: Builder) -> Instruction:
    x = node.input(0)
    return b.binary("complex", b.unary("real", x), b.negate(b.unary("imag", x)))


@tf_op("AddN", "AccumulateNV2")
def add_n(node: NodeView, b: Builder) -> Value:
    """Lists add element by element; one that nothing was written to is zero."""
    lists = [v for v in node.values() if isinstance(v, ListValue)]
    if not lists:
        return reduce(b.add, node.inputs())
    if len(lists) != node.input_count:
        node.unsupported("the sum of a list and a tensor", "add tensors to tensors")
    stacks = [v.stack for v in lists if v.stack is not None]
    return replace(lists[0], stack=reduce(b.add, stacks) if stacks else None, uniform=None)


@tf_op("ClipByValue")
def clip_by_value(node: NodeView, b: Builder) -> Instruction:
    x, low, high = broadcast_together(b, *node.inputs())
    return b.minimum(b.maximum(x, low), high)


@tf_op("SelectV2")
def select_v2(node: NodeView, b: Builder) -> Instruction:
    return b.select(*broadcast_together(b, *node.inputs()))


@tf_op("Select")
def select(node: NodeView, b: Builder) -> Instruction:
    """The condition is a scalar, has the shape of the others, or is a vector that chooses among their rows."""
    condition, x, y = node.inputs()
    if len(condition.shape) == 1 and len(x.shape) > 1:
        condition = b.broadcast(condition, x.shape, [0])
    return b.select(condition, x, y)


@tf_op("ApproximateEqual")
def approximate_equal(node: NodeView, b: Builder) -> Instruction:
    x, y = node.inputs()
    distance = b.unary("abs", b.subtract(x, y))
    return b.compare(distance, b.full_like(distance, node.float("tolerance", 1e-5)), "LT")


@tf_op("Cast")
def cast(node: NodeView, b: Builder) -> Instruction:
    """Floats are cut to integers, which is what C++ does; numbers other than zero are true."""
    x, element = node.input(0), node.element("DstT")
    if element is PRED:
        return x if x.tensor_type.element is PRED else b.compare(x, zero_like(b, x), "NE")
    return b.convert(x, element)


@tf_op("Bitcast")
def bitcast(node: NodeView, b: Builder) -> Instruction:
    """To a narrower type the last dimension is added, to a wider one it goes."""
    x, element = node.input(0), node.element("type")
    wide, narrow = x.tensor_type.element.bytes, element.bytes
    shape = x.shape
    if wide > narrow:
        shape = (*shape, wide // narrow)
    elif wide < narrow:
        shape = shape[:-1]
    return b.bitcast_convert(x, x.tensor_type.with_element(element).with_shape(shape))
