"""What fusion wants to know of an instruction: is it arithmetic, what does it cost, how does it read its operands."""

from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.contraction import Convolution, Dot
from onnxla.hlo.ops.elementwise import BitcastConvert, Elementwise
from onnxla.hlo.ops.indexing import DynamicSlice, DynamicUpdateSlice, Gather
from onnxla.hlo.ops.reduction import Reduce, ReduceWindow
from onnxla.hlo.ops.shape import Broadcast, Concatenate, Pad, Reshape, Reverse, Slice, Transpose
from onnxla.hlo.ops.structural import Constant, GetTupleElement, Iota, Parameter, Tuple
from onnxla.hlo.types import TensorType

EXPENSIVE = frozenset(
    "acos acosh asin asinh atan2 atanh cbrt cosh cosine divide erf exponential exponential-minus-one log log-plus-one "
    "logistic power remainder rsqrt sine sinh sqrt tan tanh gather dynamic-slice reduce reduce-window".split()
)
"""Opcodes that cost more than reading their result from cache."""

MOVEMENT = Broadcast | Slice | Pad | Concatenate | Reverse | Transpose | Iota | DynamicSlice | Gather
"""Operations that say where an element comes from, not what it is."""


def is_elementwise(instruction: Instruction) -> bool:
    """Whether it computes an element from operand elements at the same index (or from scalars)."""
    return isinstance(instruction.op, Elementwise)


def is_lookup(instruction: Instruction) -> bool:
    """Whether it reads each element from a table, at the place that an element of the same index gives."""
    op = instruction.op
    if not isinstance(op, Gather) or not isinstance(instruction.operands[0].op, Constant):
        return False
    table, indices = instruction.operands
    return table.tensor_type.rank == 1 and indices.shape == instruction.shape and not op.offset_dims


def is_free(instruction: Instruction) -> bool:
    """Whether it needs no kernel: a name for memory that exists."""
    return isinstance(instruction.op, Parameter | Constant | Tuple | GetTupleElement | Reshape) or regroups(instruction)


def regroups(instruction: Instruction) -> bool:
    """Whether it sees the bytes of its operand as elements of another width."""
    return isinstance(instruction.op, BitcastConvert) and instruction.shape != instruction.operands[0].shape


def is_contraction(instruction: Instruction) -> bool:
    return isinstance(instruction.op, Dot | Convolution)


def is_scalar_constant(instruction: Instruction) -> bool:
    """A constant that stands inside a kernel as a number."""
    return isinstance(instruction.op, Constant) and instruction.tensor_type.size == 1


def is_loop(instruction: Instruction) -> bool:
    """Whether a loop kernel can compute it at an index."""
    op = instruction.op
    if regroups(instruction):
        return False
    return isinstance(op, Elementwise | MOVEMENT | DynamicUpdateSlice | ReduceWindow | BitcastConvert) and isinstance(
        instruction.type, TensorType
    )


def is_expensive(instruction: Instruction) -> bool:
    return (
        instruction.op.opcode in EXPENSIVE
        and instruction.tensor_type.element.is_float
        or isinstance(instruction.op, Gather | DynamicSlice | Reduce | ReduceWindow)
    )


def keeps_rows(instruction: Instruction) -> bool:
    """Whether neighbours along the last dimension of the result are neighbours where they come from."""
    op = instruction.op
    rank = len(instruction.shape)
    match op:
        case Transpose():
            return op.permutation[-1] == rank - 1 if rank else True
        case Slice():
            return op.strides[-1] == 1 if rank else True
        case Gather():
            whole = op.slice_sizes[-1:] == instruction.operands[0].shape[-1:]
            return whole and rank - 1 in op.offset_dims
        case DynamicSlice():
            return op.sizes[-1:] == instruction.operands[0].shape[-1:]
        case Concatenate():
            return op.dimension != rank - 1
        case Pad():
            return not any(op.interior)
        case Reverse():
            return rank - 1 not in op.dimensions
    return True


def repeats(user: Instruction, operand: Instruction) -> bool:
    """Whether `user` may read one element of `operand` many times."""
    op = user.op
    match op:
        case Broadcast():
            return user.tensor_type.size > operand.tensor_type.size
        case Gather():
            return user.operands[1] is operand or user.tensor_type.size > operand.tensor_type.size
        case ReduceWindow():
            return True
        case DynamicSlice() | DynamicUpdateSlice():
            return operand in user.operands[1:] and operand.shape == ()
        case Pad():
            return user.operands[1] is operand
    return is_elementwise(user) and operand.shape != user.shape
