"""Circular and hyperbolic functions and their inverses."""

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction


def _register(op_type: str, opcode: str) -> None:
    @onnx_op(op_type)
    def rule(node: NodeView, b: Builder) -> Instruction:
        return b.unary(opcode, node.input(0))


for _op_type, _opcode in {
    "Sin": "sine",
    "Cos": "cosine",
    "Tan": "tan",
    "Asin": "asin",
    "Acos": "acos",
    "Sinh": "sinh",
    "Cosh": "cosh",
    "Asinh": "asinh",
    "Acosh": "acosh",
    "Atanh": "atanh",
    "Tanh": "tanh",
}.items():
    _register(_op_type, _opcode)


@onnx_op("Atan", since=7)
def atan(node: NodeView, b: Builder) -> Instruction:
    """HLO has only the arctangent of a quotient."""
    x = node.input(0)
    return b.binary("atan2", x, b.full_like(x, 1))
