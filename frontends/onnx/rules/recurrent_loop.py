"""The time loop of recurrent operators: an HLO `while` around one step of a cell."""

from collections.abc import Sequence
from dataclasses import dataclass

from onnxla.frontends.onnx.rules.recurrent_cells import Cell
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.structural import Constant
from onnxla.hlo.types import S32, TensorType


@dataclass(frozen=True)
class TimeLoop:
    """One direction of a recurrent layer over `inputs` [steps, batch, gates * hidden].

    Steps at or beyond an element's length leave its states alone and give zeros; walking backwards,
    these are the first steps.
    """

    cell: Cell
    inputs: Instruction
    lengths: Instruction | None
    """s32 [batch]; None where every element has all steps."""
    backwards: bool
    direction: int
    """Where this direction writes in the buffer of all outputs [steps, directions, batch, hidden]."""

    @property
    def steps(self) -> int:
        return self.inputs.shape[0]

    def run(
        self, b: Builder, outputs: Instruction, states: Sequence[Instruction]
    ) -> tuple[Instruction, list[Instruction]]:
        """All steps: `outputs` with this direction filled in, and the last states.

        The loop carries (t, outputs, states..., invariants...). Constant invariants stand inside the
        body instead, where a backend can lay them out while compiling. One step needs no loop.
        """
        if self.steps == 0:
            return outputs, list(states)
        invariants = [self.inputs, *([self.lengths] if self.lengths is not None else []), *self.cell.operands]
        if self.steps == 1:
            return self._step(b, b.constant(0, S32), outputs, states, invariants)
        carried = [v for v in invariants if not isinstance(v.op, Constant)]
        init = b.tuple(b.constant(0, S32), outputs, *states, *carried)

        body = Builder("time_step", b.source)
        state = body.parameter(init.type)
        t, buffer, *values = [body.get_tuple_element(state, k) for k in range(len(init.operands))]
        inner_states, inner_carried = values[: len(states)], values[len(states) :]
        waiting = iter(inner_carried)
        inside = [body.literal(v.op.literal) if isinstance(v.op, Constant) else next(waiting) for v in invariants]
        buffer, inner_states = self._step(body, t, buffer, inner_states, inside)
        next_t = body.add(t, body.constant(1, S32))
        root = body.tuple(next_t, buffer, *inner_states, *inner_carried)

        condition = Builder("more_time", b.source)
        t = condition.get_tuple_element(condition.parameter(init.type), 0)
        more = condition.compare(t, condition.constant(self.steps, S32), "LT")
        done = b.while_(init, condition.build(more), body.build(root))
        outputs, *last = [b.get_tuple_element(done, k) for k in range(1, 2 + len(states))]
        return outputs, last

    def _step(
        self,
        b: Builder,
        t: Instruction,
        outputs: Instruction,
        states: Sequence[Instruction],
        invariants: Sequence[Instruction],
    ) -> tuple[Instruction, list[Instruction]]:
        """Step number `t` in walking order; `invariants` are the inputs, the lengths and the cell's operands."""
        inputs, *operands = invariants
        lengths = operands.pop(0) if self.lengths is not None else None
        _, batch, width = inputs.shape
        time = b.subtract(b.constant(self.steps - 1, S32), t) if self.backwards else t
        zero = b.constant(0, S32)
        x = b.reshape(b.dynamic_slice(inputs, [time, zero, zero], [1, batch, width]), [batch, width])
        new = self.cell.step(b, x, states, operands)
        y = new[0]
        if lengths is not None:
            active = b.compare(b.broadcast_scalar(time, [batch]), lengths, "LT")
            active = b.broadcast(active, y.shape, [0])
            new = [b.select(active, after, before) for after, before in zip(new, states, strict=True)]
            y = b.select(active, y, b.full_like(y, 0))
        place = [time, b.constant(self.direction, S32), zero, zero]
        update = b.reshape(y, (1, 1, *y.shape))
        return b.dynamic_update_slice(outputs, update, place), new


def all_steps(steps: int, directions: int, state: TensorType, b: Builder) -> Instruction:
    """The buffer of all outputs, zero at first."""
    return b.full((steps, directions, *state.shape), 0, state.element)
