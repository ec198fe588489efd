"""Products and convolutions of f32 numbers made ones of half precision, which tensor cores are built for.

Only the factors are rounded. Sums, and everything between contractions, stay f32, so an intermediate value overflows
only where it is a factor beyond 65504 and `element` is f16; bf16 has the range of f32. Quantised contractions, which
are integer ones by now, are left alone.
"""

from dataclasses import replace

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Computation, Instruction
from onnxla.hlo.ops.contraction import Convolution, Dot
from onnxla.hlo.types import F32, ElementType
from onnxla.passes.pass_base import ComputationPass


class LowerContractions(ComputationPass):
    """Convert the operands of every f32 dot and convolution to `element`, and keep the sums f32."""

    name = "lower-contractions"

    def __init__(self, element: ElementType) -> None:
        super().__init__()
        self.element = element

    def run_on(self, computation: Computation) -> bool:
        found = [i for i in computation.instructions() if _is_of_f32(i)]
        for instruction in found:
            assert isinstance(instruction.op, Dot | Convolution)
            b = Builder(source=instruction.source)
            factors = [b.convert(operand, self.element) for operand in instruction.operands]
            lowered = b.emit(replace(instruction.op, element=F32), *factors)
            lowered.name = instruction.name
            computation.replace(instruction, lowered)
        if found:
            self.count("lowered", len(found))
        return bool(found)


def _is_of_f32(instruction: Instruction) -> bool:
    return isinstance(instruction.op, Dot | Convolution) and all(
        value.tensor_type.element is F32 for value in (instruction, *instruction.operands)
    )
