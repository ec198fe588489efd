"""The verifier finds plans that would read the wrong bytes, whatever made them wrong."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from onnxla.codegen.plan import Buffer, Copy, Launch, Plan, Slot, Space, Step, Steps, WhileLoop
from onnxla.codegen.plan_verifier import verify_plan
from onnxla.codegen.planner import make_plan
from onnxla.codegen.weights import WeightsImage
from onnxla.errors import InternalError
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Module
from onnxla.hlo.types import F32, S32, TensorType
from tests.codegen.callback_kernels import CallbackKernels

VECTOR = TensorType(F32, (16,))


def straight_plan() -> Plan:
    """x -> reverse -> exponential -> add, where both intermediates are alive at once."""
    b = Builder()
    y = b.reverse(b.parameter(VECTOR, "x"), [0])
    total = b.reverse(b.add(b.unary("exponential", y), y), [0])
    return make_plan(Module("m", b.build(b.tuple(total))), CallbackKernels().lower, WeightsImage())


def loop_plan() -> Plan:
    """A counted loop that needs, in its second round as in its first, a value from before it."""
    b = Builder()
    x = b.reverse(b.parameter(VECTOR, "x"), [0])
    state = b.tuple(b.constant(np.int32(3)), b.negate(x), x)
    condition = Builder("condition")
    left = condition.get_tuple_element(condition.parameter(state.type), 0)
    more = condition.build(condition.compare(left, condition.constant(np.int32(0)), "GT"))
    body = Builder("body")
    parameter = body.parameter(state.type)
    counter, total, kept = (body.get_tuple_element(parameter, k) for k in range(3))
    less = body.subtract(counter, body.constant(np.int32(1)))
    grown = body.reverse(body.unary("exponential", body.reverse(kept, [0])), [0])
    again = body.build(body.tuple(less, body.add(total, grown), kept))
    done = b.get_tuple_element(b.while_(state, more, again), 1)
    return make_plan(Module("m", b.build(b.tuple(done))), CallbackKernels().lower, WeightsImage())


def rewritten(plan: Plan, change: Callable[[Slot], Slot]) -> Plan:
    """`plan` with every slot changed."""

    def step_of(step: Step) -> Step:
        if isinstance(step, Launch):
            return replace(step, arguments=tuple(map(change, step.arguments)))
        if isinstance(step, Copy):
            return replace(step, source=change(step.source), target=change(step.target))
        assert isinstance(step, WhileLoop)
        states = tuple(replace(s, buffer=change(Slot(s.buffer, s.init)).buffer) for s in step.states)
        return replace(
            step,
            condition=steps_of(step.condition),
            body=steps_of(step.body),
            predicate=change(step.predicate),
            states=states,
        )

    def steps_of(steps: Steps) -> Steps:
        return tuple(map(step_of, steps))

    return replace(plan, steps=steps_of(plan.steps))


def moved(name: str, **fields: Any) -> Callable[[Slot], Slot]:
    """Changes the buffer that is named `name`."""
    return lambda slot: replace(slot, buffer=replace(slot.buffer, **fields)) if slot.buffer.name == name else slot


def test_good_plans_pass() -> None:
    verify_plan(straight_plan())
    verify_plan(loop_plan())


def test_two_live_values_in_one_place() -> None:
    with pytest.raises(InternalError, match="exponential: reads %reverse@arena.0.64. where it writes"):
        verify_plan(rewritten(straight_plan(), lambda s: moved("exponential", place=0)(moved("reverse", place=0)(s))))


def test_partly_overlapping_buffers() -> None:
    plan = straight_plan()
    wide = replace(plan, arena_bytes=1024)
    with pytest.raises(InternalError, match="where"):
        verify_plan(rewritten(wide, lambda s: moved("exponential", place=0, bytes=512)(moved("reverse", place=64)(s))))


def test_steps_in_the_wrong_order() -> None:
    plan = straight_plan()
    with pytest.raises(InternalError, match="reads %reverse.*, where nothing is"):
        verify_plan(replace(plan, steps=(plan.steps[1], plan.steps[0], *plan.steps[2:])))


def test_a_missing_step() -> None:
    plan = straight_plan()
    with pytest.raises(InternalError, match="the end of the program: reads"):
        verify_plan(replace(plan, steps=plan.steps[:-1]))


def test_a_loop_that_overwrites_what_its_next_round_reads() -> None:
    plan = loop_plan()
    kept, inner = (next(b for b in plan.buffers if b.name == name) for name in ("reverse", "exponential"))
    assert kept != inner
    with pytest.raises(InternalError, match="reverse.1: reads %reverse@.*, where nothing is"):
        verify_plan(rewritten(plan, lambda s: Slot(kept, s.value) if s.buffer == inner else s))


@pytest.mark.parametrize("place", [-64, 32, 1 << 20])
def test_a_buffer_outside_the_arena_or_unaligned(place: int) -> None:
    with pytest.raises(InternalError, match="is outside its memory"):
        verify_plan(rewritten(straight_plan(), moved("exponential", place=place)))


def test_inputs_are_never_written() -> None:
    with pytest.raises(InternalError, match="which is only to be read"):
        verify_plan(rewritten(straight_plan(), moved("reverse", space=Space.INPUT, place=0)))


def test_a_buffer_smaller_than_its_parameter() -> None:
    with pytest.raises(InternalError, match="is smaller than parameter"):
        verify_plan(rewritten(straight_plan(), moved("reverse", bytes=60)))


def test_copies_keep_sizes() -> None:
    small, large = (Slot(Buffer("b", Space.ARENA, 64 * k, 8 * k + 8), "v") for k in (0, 1))
    plan = replace(straight_plan(), arena_bytes=256)
    source = Slot(Buffer("x", Space.INPUT, 0, 64), "x")
    assert plan.inputs[0].element is not S32
    with pytest.raises(InternalError, match="of another size"):
        verify_plan(replace(plan, steps=(Copy("c", None, source, small), Copy("c", None, source, large))))
