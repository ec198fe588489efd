"""Channels last for convolutions.

Layouts are explicit transposes here. Every convolution is rewritten to read and write channels last
(`b01f_01io->b01f`), between transposes from and to the order the model has. The transposes behind it then sink through
whatever commutes with them, to the next convolution, where they meet their inverse and vanish: in a CNN those at the
model's inputs and outputs remain. Weights are transposed while compiling.
"""

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Computation, Instruction
from onnxla.hlo.ops.contraction import Convolution
from onnxla.hlo.ops.shape import Transpose
from onnxla.hlo.types import Shape, TensorType
from onnxla.hlo.window import ConvolutionDimensions
from onnxla.passes.layout.sinking import moves_elements, sink
from onnxla.passes.pass_base import ComputationPass

MOST_SPATIAL = 3


class AssignLayouts(ComputationPass):
    """Rewrite convolutions to channels last and sink the transposes that this takes. Other models stay as they are."""

    name = "assign-layouts"

    def run_on(self, computation: Computation) -> bool:
        order = computation.instructions()
        if not any(_can_move(i) for i in order):
            return False
        moving: set[Instruction] = set()
        """Transposes from channels last that may sink further: those made here, and the model's own like them."""
        orders: set[Shape] = set()
        for instruction in order:
            replacement: Instruction | None = None
            if _can_move(instruction):
                self.count("convolutions")
                replacement = _channels_last(instruction, moving)
                orders |= {replacement.op.permutation} if isinstance(replacement.op, Transpose) else set()
            elif any(o in moving for o in instruction.operands):
                replacement = sink(instruction, moving)
                self.count("sunk", replacement is not None)
            elif isinstance(instruction.op, Transpose) and instruction.op.permutation in orders:
                moving.add(instruction)
            if replacement is None:
                continue
            if isinstance(replacement.op, Transpose):
                if moves_elements(replacement.op.permutation, replacement.operands[0].shape):
                    moving.add(replacement)
                else:
                    replacement = Builder(source=instruction.source).reshape(replacement.operands[0], instruction.shape)
            computation.replace(instruction, replacement)
        left = [i for i in computation.instructions() if isinstance(i.op, Transpose) and i.shape]
        self.count("transposes left", len(left))
        return True


def _can_move(instruction: Instruction) -> bool:
    """Whether it is a convolution that is not channels last yet and that there is a channels-last form of."""
    op = instruction.op
    if not isinstance(op, Convolution) or op.batch_group_count != 1:
        return False
    spatial = len(op.dimensions.input_spatial)
    return 1 <= spatial <= MOST_SPATIAL and op.dimensions != ConvolutionDimensions.nhwc(spatial)


def _channels_last(convolution: Instruction, moving: set[Instruction]) -> Instruction:
    """The transpose, to the order of `convolution`, of the same convolution channels last."""
    op, (lhs, rhs) = convolution.op, convolution.operands
    assert isinstance(op, Convolution)
    dims = op.dimensions
    b = Builder(source=convolution.source)
    last = len(dims.input_spatial) + 1
    left = transposed(b, lhs, (dims.input_batch, *dims.input_spatial, dims.input_feature), moving)
    right = b.transpose(rhs, (*dims.kernel_spatial, dims.kernel_input_feature, dims.kernel_output_feature))
    nhwc = ConvolutionDimensions.nhwc(len(dims.input_spatial))
    moved = b.convolution(left, right, op.window, nhwc, op.feature_group_count, 1, op.element)
    back = {dims.output_batch: 0, dims.output_feature: last}
    back |= {d: k + 1 for k, d in enumerate(dims.output_spatial)}
    return b.transpose(moved, [back[d] for d in range(last + 1)])


def transposed(b: Builder, operand: Instruction, permutation: Shape, moving: set[Instruction]) -> Instruction:
    """`operand` transposed; where it is a moving transpose, both in one."""
    if operand in moving:
        inner = operand.op
        assert isinstance(inner, Transpose) and isinstance(operand.type, TensorType)
        return b.transpose(operand.operands[0], [inner.permutation[d] for d in permutation])
    return b.transpose(operand, permutation)
