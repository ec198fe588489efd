"""Weights of 8-bit contractions lie along depth: matrix units take four neighbours in depth as one word.

Where they lie across it every byte would be moved by itself, as no hardware transposes bytes on their way to registers.
"""

import dataclasses

import numpy as np

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Computation, Instruction
from onnxla.hlo.ops.contraction import Convolution, Dot
from onnxla.hlo.ops.structural import Constant
from onnxla.hlo.types import S8, U8
from onnxla.passes.pass_base import ComputationPass


class WeightsAlongDepth(ComputationPass):
    """Transpose constant right operands of 8-bit dots and convolutions so that depth comes last."""

    name = "weights-along-depth"

    def run_on(self, computation: Computation) -> bool:
        changed = False
        for instruction in computation.instructions():
            if isinstance(instruction.op, Dot | Convolution):
                turned = _turned(instruction)
                if turned is not None:
                    computation.replace(instruction, turned)
                    self.count("turned")
                    changed = True
        return changed


def _turned(instruction: Instruction) -> Instruction | None:
    op, (left, right) = instruction.op, instruction.operands
    if not isinstance(right.op, Constant) or right.tensor_type.element not in (U8, S8):
        return None
    rank, new_op = right.tensor_type.rank, op
    if isinstance(op, Dot):
        order = (*op.rhs_batch, *op.rhs_free(rank), *op.rhs_contracting)
        places = tuple(range(rank))
        depth = len(op.rhs_contracting)
        new_op = dataclasses.replace(op, rhs_batch=places[: len(op.rhs_batch)], rhs_contracting=places[rank - depth :])
    else:
        assert isinstance(op, Convolution)
        dims = op.dimensions
        order = (dims.kernel_output_feature, *dims.kernel_spatial, dims.kernel_input_feature)
        places = tuple(range(1, rank - 1))
        turned = dataclasses.replace(
            dims, kernel_output_feature=0, kernel_spatial=places, kernel_input_feature=rank - 1
        )
        new_op = dataclasses.replace(op, dimensions=turned)
    if order == tuple(range(rank)):
        return None
    b = Builder(source=instruction.source)
    weights = np.ascontiguousarray(right.op.literal.array.transpose(order))
    result = b.emit(new_op, left, b.constant(weights, name=right.name))
    result.name = instruction.name
    return result
