"""Products that a library of the GPU's maker computes as one: a dot, and what it can do to the sums.

    d = dot(a, b)      d = dot(a, b) + bias      d = convert(dot(a, b))

Passes ask what belongs together, and codegen asks the same of what was put together.
"""

from dataclasses import dataclass

from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.contraction import Dot
from onnxla.hlo.ops.elementwise import Convert
from onnxla.hlo.ops.shape import Broadcast
from onnxla.hlo.types import BF16, F16, F32


@dataclass(frozen=True)
class LibraryProduct:
    """A dot of floats, summed in f32."""

    dot: Instruction
    result: Instruction
    """What comes out, in the order of the dot's dimensions."""
    bias: Instruction | None
    """A number for each column, of the type of the result."""
    spread: Instruction | None
    """The bias, broadcast to the shape of the dot; others may read it as well."""

    @property
    def members(self) -> tuple[Instruction, ...]:
        return (self.dot,) if self.dot is self.result else (self.dot, self.result)


def library_product_of(dot: Instruction) -> LibraryProduct | None:
    """The product that begins with this dot; None where it is none, or of other types.

    Maxima with zero stay outside: whether a library keeps NaN there is not documented. So do all epilogues that would
    round where the model does not.
    """
    if not isinstance(dot.op, Dot):
        return None
    held = {operand.tensor_type.element for operand in dot.operands}
    if len(held) != 1 or not held <= {F32, F16, BF16} or dot.op.element not in (F32, *held):
        return None
    if len(dot.users) == 1 and dot.op.element is F32:
        (user,) = dot.users
        if isinstance(user.op, Convert) and user.tensor_type.element in held:
            return LibraryProduct(dot, user, None, None)
        if user.op.opcode == "add" and user.operands[0] is not user.operands[1]:
            spread = user.operands[1 if user.operands[0] is dot else 0]
            if _is_for_columns(spread, dot):
                return LibraryProduct(dot, user, spread.operands[0], spread)
    return LibraryProduct(dot, dot, None, None)


def _is_for_columns(spread: Instruction, dot: Instruction) -> bool:
    """Whether it is one vector, along the only dimension that is the columns of `dot`."""
    assert isinstance(dot.op, Dot)
    free = dot.op.rhs_free(dot.operands[1].tensor_type.rank)
    return isinstance(spread.op, Broadcast) and len(free) == 1 and spread.op.dimensions == (dot.tensor_type.rank - 1,)
