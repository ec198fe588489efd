"""Calls give way to what they call, so that passes see through them."""

from onnxla.hlo.module import Computation, Instruction
from onnxla.hlo.ops.control_flow import Call
from onnxla.passes.pass_base import ComputationPass


class InlineCalls(ComputationPass):
    """Put the body of every called computation in place of the call. Callees come first, so one round is enough."""

    name = "inline-calls"

    def run_on(self, computation: Computation) -> bool:
        calls = [i for i in computation.instructions() if isinstance(i.op, Call)]
        for call in calls:
            computation.replace(call, _body_of(call))
        if calls:
            self.count("inlined", len(calls))
        return bool(calls)


def _body_of(call: Instruction) -> Instruction:
    """The root of a copy of the callee that reads the call's operands."""
    assert isinstance(call.op, Call)
    callee = call.op.to_apply
    copies = dict(zip(callee.parameters, call.operands, strict=True))
    for instruction in callee.instructions():
        if instruction not in copies:
            operands = [copies[o] for o in instruction.operands]
            copies[instruction] = Instruction(
                instruction.op, operands, name=instruction.name, source=instruction.source or call.source
            )
    return copies[callee.root]
