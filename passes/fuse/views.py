"""Views: slices, reshapes and transposes that leave rows in one piece, so that a product reads or writes through them.

Heads of attention are such: a part of each row of one wide product, or rows in another order. A GPU's products reach
memory by index, parcel by parcel, so that a view costs them nothing, where storing it would cost a kernel.
"""

from onnxla.hlo.module import Computation, Instruction
from onnxla.hlo.ops.elementwise import Convert
from onnxla.hlo.ops.shape import Reshape, Slice, Transpose
from onnxla.passes.fuse.traits import keeps_rows

SHORTEST_ROW = 8
"""Elements that lie together, from which on reaching for them separately costs no more than moving them would."""


def is_view(instruction: Instruction) -> bool:
    """Whether it says where rows are, and leaves each in one piece."""
    if isinstance(instruction.op, Reshape):
        return True
    if not isinstance(instruction.op, Slice | Transpose) or not keeps_rows(instruction):
        return False
    return instruction.shape[-1:] >= (SHORTEST_ROW,)


def views_before(value: Instruction) -> list[Instruction]:
    """The views through which a value is read from what is stored, the last one first; none where only names differ."""
    chain = []
    while is_view(value):
        chain.append(value)
        (value,) = value.operands
    while chain and isinstance(chain[-1].op, Reshape):
        chain.pop()  # a name of what is stored
    return chain


def views_after(value: Instruction, computation: Computation) -> list[Instruction]:
    """What follows from `value` alone, one after the other, and moves its rows or converts them, up to the last that
    does so."""
    chain: list[Instruction] = []
    while value is not computation.root and len(value.users) == 1:
        (value,) = value.users
        moves = isinstance(value.op, Transpose) and is_view(value)
        if not (moves or isinstance(value.op, Reshape | Convert)):
            break
        chain.append(value)
    while chain and isinstance(chain[-1].op, Reshape):
        chain.pop()
    return chain
