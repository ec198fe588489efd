"""Arithmetic that knows more of its operand than the type.

`e**x` where x is never positive: softmax is full of it, `x - max(x)`. Nothing overflows, and what is below the
smallest normal number is nothing beside the largest, which is 1.

`1 + erf(x)` and `1 + tanh(x)`, the two gates of GELU: a sum that would cancel for negative x, computed in one piece
by fewer operations than the function alone.
"""

from collections.abc import Callable, Mapping

from onnxla.codegen.kernels import storage
from onnxla.codegen.kernels.builder import KernelBuilder
from onnxla.codegen.kernels.ir import Value
from onnxla.codegen.kernels.math.error_function import one_plus_erf
from onnxla.codegen.kernels.math.exponential import exponential, exponential_up_to_one
from onnxla.codegen.kernels.math.logistic import logistic
from onnxla.codegen.kernels.value import Index, Rule, ValueEmitter
from onnxla.hlo.module import Instruction
from onnxla.hlo.op import Op
from onnxla.hlo.ops.binary import Add, Maximum, Subtract
from onnxla.hlo.ops.reduction import Reduce, simple_combiner
from onnxla.hlo.ops.shape import Broadcast
from onnxla.hlo.ops.structural import Constant
from onnxla.hlo.ops.unary import Erf, Exponential, Tanh
from onnxla.hlo.types import F32


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


def emit_add(e: ValueEmitter, instruction: Instruction, index: Index) -> Value:
    function, one = instruction.operands
    gate = _GATES.get(type(function.op))
    if gate is None or instruction.tensor_type.element is not F32 or not _is_one(one):
        return e.elementwise(instruction, index)
    return gate(e.b, e.value(function.operands[0], index))


def _is_one(instruction: Instruction) -> bool:
    source = instruction.operands[0] if isinstance(instruction.op, Broadcast) else instruction
    return isinstance(source.op, Constant) and source.op.literal.array.size == 1 and source.op.literal.array.item() == 1


def _one_plus_tanh(b: KernelBuilder, x: Value) -> Value:
    """1 + tanh(x) == 2 logistic(2 x), which errs by 3 ulp."""
    two = b.const(2.0, x.element)
    return b.mul(two, logistic(b, b.mul(two, x)))


_GATES: Mapping[type[Op], Callable[[KernelBuilder, Value], Value]] = {Erf: one_plus_erf, Tanh: _one_plus_tanh}
RULES: Mapping[type[Op], Rule] = {Exponential: emit_exponential, Add: emit_add}
