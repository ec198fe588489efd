"""Copies of computations, in place or as new computations."""

from collections.abc import Sequence

from onnxla.errors import SourceNode
from onnxla.hlo.module import Computation, Instruction


def inline(computation: Computation, arguments: Sequence[Instruction], source: SourceNode | None = None) -> Instruction:
    """The root of a copy of `computation` that reads `arguments` in place of its parameters.

    Instructions without a source get `source`. The copy is part of whatever reads its root.
    """
    copies = dict(zip(computation.parameters, arguments, strict=True))
    for instruction in computation.instructions():
        if instruction not in copies:
            operands = [copies[o] for o in instruction.operands]
            copies[instruction] = Instruction(
                instruction.op, operands, name=instruction.name, source=instruction.source or source
            )
    return copies[computation.root]
