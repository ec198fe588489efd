"""Every operation that has a value at an index, besides the elementwise ones."""

from collections.abc import Mapping

from onnxla.codegen.kernels import bounded, elementwise, movement, quantise, sums
from onnxla.codegen.kernels.value import Rule
from onnxla.hlo.module import Instruction
from onnxla.hlo.op import Op

RULES: Mapping[type[Op], Rule] = {**movement.RULES, **sums.RULES, **bounded.RULES, **quantise.RULES}


def can_emit(instruction: Instruction) -> bool:
    """Whether the instruction has a value at an index (its operands aside)."""
    return type(instruction.op) in RULES or elementwise.is_elementwise(instruction.op.opcode)
