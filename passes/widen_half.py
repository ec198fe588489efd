"""Half precision is stored, not computed in: values between a CPU's operations are f32.

An operation on f16 or bf16 that takes the result of another one takes it before it is rounded, as onnxruntime does on
CPUs. So a value is rounded to half precision where it leaves the module, where an operation has no wide form, and where
the model casts to half precision and back; what a model computes then does not depend on which of its operations share
a kernel. A Cast to half precision whose result is computed with says how the value is stored, as any f16 type does.
"""

from dataclasses import replace

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Computation, Instruction
from onnxla.hlo.op import Op
from onnxla.hlo.ops.contraction import Convolution, Dot
from onnxla.hlo.ops.elementwise import Compare, Convert, Elementwise
from onnxla.hlo.ops.indexing import DynamicSlice, Gather
from onnxla.hlo.ops.reduction import Reduce, ReduceWindow, simple_combiner
from onnxla.hlo.ops.shape import Broadcast, Concatenate, Pad, Reshape, Reverse, Slice, Transpose
from onnxla.hlo.ops.structural import Constant
from onnxla.hlo.types import BF16, F16, F32, TensorType
from onnxla.passes.pass_base import ComputationPass

_MOVES = Broadcast | Concatenate | DynamicSlice | Gather | Pad | Reshape | Reverse | Slice | Transpose
_CASTS = ("Cast", "CastLike")


class WidenHalf(ComputationPass):
    """Give every computed f16 or bf16 value an f32 form, and let its users take that."""

    name = "widen-half"

    def run_on(self, computation: Computation) -> bool:
        wide: dict[Instruction, Instruction] = {}
        found: list[tuple[Instruction, Instruction]] = []
        for instruction in computation.instructions():
            twin = _twin(instruction, wide)
            if twin is None:
                continue
            wide[instruction] = twin
            found.append((instruction, twin))
        for instruction, twin in found:
            if _is_half(instruction):
                twin = Instruction(Convert(instruction.tensor_type.element), (twin,), source=instruction.source)
            twin.name = instruction.name
            computation.replace(instruction, twin)
        if found:
            self.count("widened", len(found))
        return bool(found)


def _is_half(value: Instruction) -> bool:
    return isinstance(value.type, TensorType) and value.type.element in (F16, BF16)


def _twin(instruction: Instruction, wide: dict[Instruction, Instruction]) -> Instruction | None:
    """The f32 form of an instruction with a half-precision result, or one that reads forms; None where it has none."""
    op, operands = instruction.op, instruction.operands
    if isinstance(op, Convert):
        return _converted(instruction, wide)
    if not any(_is_half(v) for v in (instruction, *operands)):
        return None
    if isinstance(op, _MOVES):
        # moving what is stored as half precision is cheaper than moving it as f32
        return _emit(instruction, op, wide) if any(o in wide for o in operands) else None
    if isinstance(op, Dot | Convolution):
        if op.element in (F16, BF16):
            return _emit(instruction, replace(op, element=F32), wide, keep_stored=True)
        return _emit(instruction, op, wide, keep_stored=True) if any(o in wide for o in operands) else None
    if isinstance(op, Reduce | ReduceWindow):
        return _reduced(instruction, op, wide)
    if isinstance(op, Compare):
        return _emit(instruction, op, wide) if any(o in wide for o in operands) else None
    return _emit(instruction, op, wide) if isinstance(op, Elementwise) else None


def _converted(instruction: Instruction, wide: dict[Instruction, Instruction]) -> Instruction | None:
    """A conversion from a form, or one to half precision that is not meant to round."""
    (operand,) = instruction.operands
    if _is_half(instruction):
        element = operand.tensor_type.element
        return None if element is not F32 or _is_meant(instruction) else wide.get(operand, operand)
    if operand not in wide:
        return None
    if instruction.tensor_type.element is F32:
        return wide[operand]
    return Instruction(instruction.op, (wide[operand],), source=instruction.source)


def _is_meant(conversion: Instruction) -> bool:
    """Whether the model casts to half precision in order to round: it casts the same numbers on."""
    if not _is_cast(conversion):
        return False
    following = list(conversion.users)
    while following:
        user = following.pop()
        if _is_cast(user):
            return True
        if isinstance(user.op, _MOVES):
            following += user.users
    return False


def _is_cast(instruction: Instruction) -> bool:
    source = instruction.source
    return isinstance(instruction.op, Convert) and source is not None and source.op_type in _CASTS


def _reduced(
    instruction: Instruction, op: Reduce | ReduceWindow, wide: dict[Instruction, Instruction]
) -> Instruction | None:
    """A reduction of one tensor, by a combiner that has a wide form."""
    opcode = simple_combiner(op.to_apply)
    if opcode is None or len(instruction.operands) != 2:
        return None
    combiner = Builder(source=instruction.source).combiner(opcode, F32)
    return _emit(instruction, replace(op, to_apply=combiner), wide)


def _emit(
    instruction: Instruction, op: Op, wide: dict[Instruction, Instruction], keep_stored: bool = False
) -> Instruction:
    """`op` over the forms of the operands. `keep_stored` leaves those without a form as they are."""
    b = Builder(source=instruction.source)
    operands = []
    for operand in instruction.operands:
        if operand in wide:
            operand = wide[operand]
        elif _is_half(operand) and not (keep_stored and not isinstance(operand.op, Constant)):
            operand = b.convert(operand, F32)
        operands.append(operand)
    return b.emit(op, *operands)
