"""Arithmetic that knows more of its operand than the type: e**x where x is never positive.

Softmax is full of it, `x - max(x)`: nothing overflows, and what is below the smallest normal number is nothing
beside the largest, which is 1.
"""

from collections.abc import Mapping

from onnxla.codegen.kernels import storage
from onnxla.codegen.kernels.ir import Value
from onnxla.codegen.kernels.math.exponential import exponential, exponential_up_to_one
from onnxla.codegen.kernels.value import Index, Rule, ValueEmitter
from onnxla.hlo.module import Instruction
from onnxla.hlo.op import Op
from onnxla.hlo.ops.binary import Maximum, Subtract
from onnxla.hlo.ops.reduction import Reduce, simple_combiner
from onnxla.hlo.ops.shape import Broadcast
from onnxla.hlo.ops.unary import Exponential


def emit_exponential(e: ValueEmitter, instruction: Instruction, index: Index) -> Value:
    (operand,) = instruction.operands
    function = exponential_up_to_one if _is_less_its_maximum(operand) else exponential
    return storage.round_to(e.b, function(e.b, e.value(operand, index)), instruction.tensor_type.element)


def _is_less_its_maximum(instruction: Instruction) -> bool:
    """Whether it is `x - m` with m the largest of x along some dimensions, or of those and other values."""
    if not isinstance(instruction.op, Subtract):
        return False
    x, spread = instruction.operands
    if not isinstance(spread.op, Broadcast):
        return False
    (bound,) = spread.operands
    candidates = bound.operands if isinstance(bound.op, Maximum) else (bound,)
    return any(_is_maximum_of(x, c, spread.op) for c in candidates)


def _is_maximum_of(x: Instruction, reduced: Instruction, spread: Broadcast) -> bool:
    """Whether `reduced` has the largest values of x, and `spread` brings each back to where it comes from."""
    op = reduced.op
    if not isinstance(op, Reduce) or reduced.operands[0] is not x or simple_combiner(op.to_apply) != "maximum":
        return False
    return spread.dimensions == tuple(d for d in range(len(x.shape)) if d not in op.dimensions)


RULES: Mapping[type[Op], Rule] = {Exponential: emit_exponential}
