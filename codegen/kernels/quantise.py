"""Quantisation to bytes, `saturate(round(x) + zero)`, in few operations, and what such a byte is as a number again.

Between the bounds of the byte, x plus 1.5 * 2^23 has a last place of 1: the sum is rounded to an integer, half to even,
and the low bits of its significand are that integer. Taking the constant off again gives it as a float. Bounds are
integers, so bounding before rounding is bounding after it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from onnxla.codegen.kernels.ir import Value
from onnxla.codegen.kernels.value import Index, Rule, ValueEmitter
from onnxla.hlo.module import Instruction
from onnxla.hlo.numerics import integer_limits
from onnxla.hlo.op import Op
from onnxla.hlo.ops.binary import Add, Subtract
from onnxla.hlo.ops.elementwise import Convert
from onnxla.hlo.ops.shape import Broadcast
from onnxla.hlo.ops.structural import Constant
from onnxla.hlo.ops.unary import RoundNearestEven
from onnxla.hlo.types import F32, S8, S32, U8, ElementType

ROUNDING = 1.5 * 2.0**23
"""Its bits in f32 end in a byte of zeros."""
LARGEST_ZERO = 1 << 16
"""Zero points up to here leave bounds that `ROUNDING` can be added to."""


@dataclass(frozen=True)
class _Quantised:
    """`element(round(x) + zero)`, saturating, 0 for NaN."""

    x: Instruction
    zero: int
    element: ElementType

    @staticmethod
    def of(e: ValueEmitter, byte: Instruction) -> "_Quantised | None":
        """How `byte` is spelled as this; None where it is not, or where that is not computed in this kernel."""
        if byte in e.leaves or not isinstance(byte.op, Convert) or byte.op.element not in (U8, S8):
            return None
        rounded, zero = _apart(e, byte.operands[0], Add)
        if rounded in e.leaves or not isinstance(rounded.op, RoundNearestEven):
            return None
        return _Quantised(rounded.operands[0], zero, byte.op.element) if rounded.tensor_type.element is F32 else None

    def placed(self, e: ValueEmitter, index: Index) -> Value:
        """The byte less `zero`, plus ROUNDING."""
        b = e.b
        x = e.value(self.x, index)
        low, high = (limit - self.zero for limit in integer_limits(self.element))
        if integer_limits(self.element)[0]:
            x = b.select(b.compare("EQ", x, x), x, b.const(-self.zero, F32))
        bounded = b.min(b.max(x, b.const(low, F32)), b.const(high, F32))  # of NaN and a bound, max takes the bound
        return b.add(bounded, b.const(ROUNDING, F32))


def _apart(e: ValueEmitter, instruction: Instruction, kind: type[Op]) -> tuple[Instruction, int]:
    """x and c where `instruction` is x + c (or x - c, by `kind`) for one integer c, else itself and 0."""
    if instruction not in e.leaves and isinstance(instruction.op, kind):
        x, shift = instruction.operands
        source = shift.operands[0] if isinstance(shift.op, Broadcast) else shift
        if isinstance(source.op, Constant) and source.op.literal.array.size == 1:
            number = source.op.literal.array.item()
            if abs(number) < LARGEST_ZERO and number == int(number):
                return x, int(number)
    return instruction, 0


def emit_convert(e: ValueEmitter, instruction: Instruction, index: Index) -> Value:
    b, op = e.b, instruction.op
    assert isinstance(op, Convert)
    quantised = _Quantised.of(e, instruction)
    if quantised is not None:
        bits = b.bitcast(quantised.placed(e, index), S32)
        return b.convert(b.add(bits, b.const(quantised.zero, S32)) if quantised.zero else bits, quantised.element)
    if op.element is F32:
        wide, zero = _apart(e, instruction.operands[0], Subtract)
        if wide not in e.leaves and isinstance(wide.op, Convert) and wide.op.element is S32:
            (wide,) = wide.operands
        elif zero:  # of a byte, which wraps
            return e.elementwise(instruction, index)
        quantised = _Quantised.of(e, wide)
        if quantised is not None:
            number = b.sub(quantised.placed(e, index), b.const(ROUNDING, F32))
            more = quantised.zero - zero
            return b.add(number, b.const(more, F32)) if more else number
    return e.elementwise(instruction, index)


RULES: Mapping[type[Op], Rule] = {Convert: emit_convert}
