"""Which instructions may share one lowering: those that differ in their data alone.

A network repeats its blocks, so most of its instructions have a twin elsewhere with the same operation, types and
fused body. Kernels read the values of constant operands at run time, except for single numbers, which they contain.
How long the sums of a convolution of bytes can be is part of what is compared: it decides whether Winograd's algorithm
is exact.
"""

from collections.abc import Hashable

from onnxla.codegen.kernels.winograd_algorithm import sum_bits
from onnxla.hlo.fingerprint import fingerprint
from onnxla.hlo.module import Instruction, Module
from onnxla.hlo.op_text import format_attributes
from onnxla.hlo.ops.structural import Constant
from onnxla.hlo.types import S8, U8


def lowering_key(instruction: Instruction) -> Hashable:
    """Equal for two instructions exactly when they may share a `Lowering`."""
    types = [o.type for o in instruction.operands]
    attributes = format_attributes(instruction.op, types, lambda computation: fingerprint(Module("", computation)))
    operands = tuple(instruction.operands.index(o) for o in instruction.operands)
    constants = tuple(_constant_key(o) for o in instruction.operands)
    return (instruction.op.opcode, instruction.type, tuple(types), tuple(attributes), operands, constants)


def _constant_key(operand: Instruction) -> str:
    if not isinstance(operand.op, Constant):
        return "computed"
    literal = operand.op.literal
    if literal.array.size == 1:
        return literal.digest
    if operand.tensor_type.element in (S8, U8) and operand.shape[:2] == (3, 3) and len(operand.shape) == 4:
        return f"constant with sums of {sum_bits(literal.array)} bits"  # which decides what is exact
    return "constant"
