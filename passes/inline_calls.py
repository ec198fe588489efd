"""Calls give way to what they call, so that passes see through them."""

from onnxla.hlo.module import Computation
from onnxla.hlo.ops.control_flow import Call
from onnxla.passes.cloning import inline
from onnxla.passes.pass_base import ComputationPass


class InlineCalls(ComputationPass):
    """Put the body of every called computation in place of the call. Callees come first, so one round is enough."""

    name = "inline-calls"

    def run_on(self, computation: Computation) -> bool:
        calls = [i for i in computation.instructions() if isinstance(i.op, Call)]
        for call in calls:
            assert isinstance(call.op, Call)
            computation.replace(call, inline(call.op.to_apply, call.operands, call.source))
        if calls:
            self.count("inlined", len(calls))
        return bool(calls)
