"""Which instructions may share one lowering: those that differ in their data alone.

A network repeats its blocks, so most of its instructions have a twin elsewhere with the same operation, types and
fused body. Kernels read the values of constant operands at run time, except for single numbers, which they contain.
"""

from collections.abc import Hashable

from onnxla.hlo.fingerprint import fingerprint
from onnxla.hlo.module import Instruction, Module
from onnxla.hlo.op_text import format_attributes
from onnxla.hlo.ops.structural import Constant


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
    return literal.digest if literal.array.size == 1 else "constant"
