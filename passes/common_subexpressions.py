"""One instruction for each value: equal operations on equal operands merge."""

import dataclasses
from collections.abc import Hashable

from onnxla.hlo.module import Computation, Instruction
from onnxla.hlo.op import Op
from onnxla.hlo.ops.control_flow import CustomCall, Map
from onnxla.hlo.ops.elementwise import Elementwise
from onnxla.hlo.ops.indexing import Scatter, Sort
from onnxla.hlo.ops.reduction import Reduce, ReduceWindow
from onnxla.hlo.ops.structural import Parameter
from onnxla.passes.pass_base import ComputationPass


class MergeCommonSubexpressions(ComputationPass):
    """Let every reader of a value read the first instruction that computes it."""

    name = "merge-common-subexpressions"

    def run_on(self, computation: Computation) -> bool:
        first: dict[Hashable, Instruction] = {}
        numbers: dict[Instruction, int] = {}
        bodies: dict[Computation, Hashable] = {}
        merged = 0
        for number, instruction in enumerate(computation.instructions()):
            numbers[instruction] = number
            if isinstance(instruction.op, Parameter | CustomCall):
                continue
            known = first.setdefault(_key(instruction, numbers, bodies), instruction)
            if known is not instruction:
                computation.replace(instruction, known)
                merged += 1
        if merged:
            self.count("merged", merged)
        return merged > 0


def _key(instruction: Instruction, numbers: dict[Instruction, int], bodies: dict[Computation, Hashable]) -> Hashable:
    op = instruction.op
    operands = [numbers[o] for o in instruction.operands]
    if isinstance(op, Elementwise) and op.commutative:
        operands.sort()
    return (op.opcode, _attributes(op, bodies), tuple(operands))


def _attributes(op: Op, bodies: dict[Computation, Hashable]) -> Hashable:
    """The operation; one that applies a small computation to scalars with what that says instead of its identity."""
    if not isinstance(op, Reduce | ReduceWindow | Sort | Scatter | Map):
        return op
    values = (getattr(op, f.name) for f in dataclasses.fields(op))
    return tuple(_body(v, bodies) if isinstance(v, Computation) else v for v in values)


def _body(computation: Computation, bodies: dict[Computation, Hashable]) -> Hashable:
    if computation not in bodies:
        order = computation.instructions()
        places = {instruction: i for i, instruction in enumerate(order)}
        lines = tuple((i.op.opcode, i.op, tuple(places[o] for o in i.operands)) for i in order)
        bodies[computation] = (lines, places[computation.root])
    return bodies[computation]
