"""Operations that no kernel computes give way to ones that kernels do; `passes/expand` says how."""

from collections.abc import Callable

from onnxla.errors import Problem, UnsupportedOpError
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Computation, Instruction
from onnxla.hlo.ops.control_flow import CustomCall
from onnxla.hlo.ops.linear_algebra import Cholesky, Fft, RngBitGenerator, TriangularSolve
from onnxla.hlo.ops.reduction import SelectAndScatter
from onnxla.passes.cloning import inline
from onnxla.passes.expand.fourier import expand_fft
from onnxla.passes.expand.linear_algebra import expand_cholesky, expand_triangular_solve
from onnxla.passes.expand.pooling_gradient import expand_select_and_scatter
from onnxla.passes.expand.random_bits import expand_random_bits
from onnxla.passes.pass_base import ComputationPass


class ExpandOperations(ComputationPass):
    """Replace rng-bit-generator, fft, cholesky, triangular-solve, select-and-scatter and custom-call."""

    name = "expand-operations"

    def run_on(self, computation: Computation) -> bool:
        changed = False
        for instruction in computation.instructions():
            expand = EXPANSIONS.get(type(instruction.op))
            if expand is not None:
                b = Builder(f"expanded_{instruction.op.opcode}".replace("-", "_"), source=instruction.source)
                computation.replace(instruction, expand(b, instruction))
                self.count(instruction.op.opcode)
                changed = True
        return changed


def expand_custom_call(b: Builder, instruction: Instruction) -> Instruction:
    """The computation that defines the call. Raises UnsupportedOpError where it has none."""
    op = instruction.op
    assert isinstance(op, CustomCall)
    if not op.called:
        cause = f"no kernel is known for the custom-call {op.target!r}, and it calls no computation that defines it"
        hint = "give it one: called_computations={%definition}"
        raise UnsupportedOpError([Problem(UnsupportedOpError, cause, instruction.source, hint=hint)])
    return inline(op.called[0], instruction.operands, instruction.source)


EXPANSIONS: dict[type, Callable[[Builder, Instruction], Instruction]] = {
    Cholesky: expand_cholesky,
    CustomCall: expand_custom_call,
    Fft: expand_fft,
    RngBitGenerator: expand_random_bits,
    SelectAndScatter: expand_select_and_scatter,
    TriangularSolve: expand_triangular_solve,
}
