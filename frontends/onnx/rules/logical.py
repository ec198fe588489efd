"""Comparison, boolean and bitwise operators, Where, IsNaN and IsInf."""

import numpy as np

from onnxla.frontends.onnx.broadcasting import broadcast_together
from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.elementwise import binary_operands
from onnxla.frontends.onnx.values import StringConstant
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction


def _register_comparison(op_type: str, direction: str) -> None:
    @onnx_op(op_type)
    def rule(node: NodeView, b: Builder) -> Instruction:
        if direction == "EQ" and isinstance(node.value(0), StringConstant):
            return b.constant(np.asarray(node.strings_constant(0) == node.strings_constant(1), bool))
        return b.compare(*binary_operands(node, b), direction)


for _op_type, _direction in {
    "Equal": "EQ",
    "Greater": "GT",
    "Less": "LT",
    "GreaterOrEqual": "GE",
    "LessOrEqual": "LE",
}.items():
    _register_comparison(_op_type, _direction)


def _register_bitwise(op_type: str, opcode: str) -> None:
    @onnx_op(op_type)
    def rule(node: NodeView, b: Builder) -> Instruction:
        return b.binary(opcode, *binary_operands(node, b))


for _op_type, _opcode in {
    "And": "and",
    "Or": "or",
    "Xor": "xor",
    "BitwiseAnd": "and",
    "BitwiseOr": "or",
    "BitwiseXor": "xor",
}.items():
    _register_bitwise(_op_type, _opcode)


@onnx_op("Not")
@onnx_op("BitwiseNot", since=18)
def not_(node: NodeView, b: Builder) -> Instruction:
    return b.not_(node.input(0))


@onnx_op("BitShift", since=11)
def bit_shift(node: NodeView, b: Builder) -> Instruction:
    """A shift by the width or more gives 0, or -1 for a negative number to the right: HLO's rule too."""
    direction = node.word("direction", ("LEFT", "RIGHT"))
    x, y = binary_operands(node, b)
    if direction == "LEFT":
        return b.binary("shift-left", x, y)
    return b.binary(f"shift-right-{'arithmetic' if x.tensor_type.element.is_signed else 'logical'}", x, y)


@onnx_op("Where", since=9)
def where(node: NodeView, b: Builder) -> Instruction:
    return b.select(*broadcast_together(b, node.input(0), node.input(1), node.input(2)))


@onnx_op("IsNaN", since=9)
def is_nan(node: NodeView, b: Builder) -> Instruction:
    return b.is_nan(node.input(0))


@onnx_op("IsInf", since=10)
def is_inf(node: NodeView, b: Builder) -> Instruction:
    """Either sign can be left out. Types without infinities answer false."""
    x = node.input(0)
    infinity = float(x.tensor_type.element.dtype.type("inf"))
    positive, negative = node.int("detect_positive", 1), node.int("detect_negative", 1)
    if infinity != float("inf") or not (positive or negative):
        return b.false(x.shape)
    if positive and negative:
        return b.compare(b.unary("abs", x), b.full_like(x, infinity), "EQ")
    return b.compare(x, b.full_like(x, infinity if positive else -infinity), "EQ")
