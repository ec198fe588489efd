"""What the plan does with memory: views are free, outputs are written in place, loops and branches do not copy."""

from collections.abc import Callable

import numpy as np
import pytest

from onnxla.codegen.plan import Branch, Copy, Launch, Plan, Space, WhileLoop, memory_table, nested, walk_steps
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Computation, Instruction, Module
from onnxla.hlo.types import F32, F64, PRED, S32, U8, U32, Array, TensorType
from onnxla.runtime.profiler import new_profile
from tests.codegen.callback_kernels import CallbackKernels, NativePlan, flatten

VECTOR = TensorType(F32, (8,))
COUNTER = TensorType(S32)
Step = Callable[[Builder, list[Instruction]], list[Instruction]]
Case = Callable[[Builder, Instruction], Instruction]
X: Array = np.arange(8, dtype=np.float32)


def entry(b: Builder, *outputs: Instruction) -> Module:
    return Module("m", b.build(b.tuple(*outputs)))


def check(module: Module, *inputs: Array, kernels: CallbackKernels | None = None) -> Plan:
    """The module's plan, after the native code has given what the interpreter gives."""
    native = NativePlan(module, kernels)
    for got, expected in zip(native.run(*inputs), flatten(module.entry.evaluate(*inputs)), strict=True):
        np.testing.assert_array_equal(got, expected)
    return native.plan


def copies(plan: Plan) -> list[Copy]:
    return [s for s in walk_steps(plan.steps) if isinstance(s, Copy)]


def launches(plan: Plan) -> list[Launch]:
    return [s for s in walk_steps(plan.steps) if isinstance(s, Launch)]


def test_a_chain_of_elementwise_kernels_runs_in_the_output() -> None:
    b = Builder()
    y = b.negate(b.add(b.multiply(b.parameter(VECTOR, "x"), b.constant(X)), b.constant(X)))
    plan = check(entry(b, b.reshape(y, (2, 4))), X)
    assert plan.arena_bytes == 0 and plan.intermediate_bytes == 3 * VECTOR.bytes
    assert {launch.arguments[-1].buffer.space for launch in launches(plan)} == {Space.OUTPUT}


def test_the_text_of_a_plan() -> None:
    b = Builder()
    x = b.parameter(VECTOR, "x")
    plan = check(entry(b, b.unary("exponential", b.reverse(x, [0]))), X)
    assert str(plan) == (
        "plan m\n"
        "  arena 64 bytes (live at most 64, all values 64)\n"
        "  weights 0 bytes\n"
        "  input 0 f32[8]{0}\n"
        "  output 0 f32[8]{0} = %exponential@output[0]\n"
        "  launch reverse = reverse x1 (%x@input[0], out %reverse@arena+0[32])\n"
        "  launch exponential = exponential x1 (%reverse@arena+0[32], out %exponential@output[0])\n"
    )
    assert memory_table(plan).splitlines()[1].split() == ["1", "2", "0", "32", "reverse"]


def test_an_input_a_constant_and_a_value_twice_are_copied_to_outputs() -> None:
    b = Builder()
    x = b.parameter(VECTOR, "x")
    y = b.negate(x)
    plan = check(entry(b, x, b.constant(X), y, y), X)
    assert [str(c.source.buffer) for c in copies(plan)] == ["input[0]", "weights+0[32]", "output[2]"]


def test_an_operand_that_is_read_later_is_not_overwritten() -> None:
    b = Builder()
    y = b.reverse(b.parameter(VECTOR, "x"), [0])
    z = b.negate(y)
    plan = check(entry(b, b.reverse(b.add(z, y), [0])), X)
    assert plan.arena_bytes == 2 * 64


def test_wider_elements_of_a_byte_input_are_copied_to_aligned_memory() -> None:
    b = Builder()
    x = b.parameter(TensorType(U8, (8,)), "x")
    module = entry(b, b.negate(b.bitcast_convert(b.reshape(x, (2, 4)), TensorType(U32, (2,)))))
    assert len(copies(check(module, np.arange(8, dtype=np.uint8)))) == 1


def test_narrower_elements_are_only_another_view() -> None:
    b = Builder()
    y = b.negate(b.parameter(TensorType(F64, (4,)), "x"))
    module = entry(b, b.reverse(b.bitcast_convert(y, TensorType(U32, (4, 2))), [0]))
    assert not copies(check(module, np.arange(4.0)))


def counting_loop(b: Builder, leaves: list[Instruction], turns: int, step: Step) -> list[Instruction]:
    """`turns` rounds of `step(builder, leaves)`; the final leaves."""
    state = b.tuple(b.constant(np.int32(turns)), *leaves)
    condition = Builder("condition")
    left = condition.get_tuple_element(condition.parameter(state.type), 0)
    more = condition.build(condition.compare(left, condition.constant(np.int32(0)), "GT"))
    body = Builder("body")
    parameter = body.parameter(state.type)
    counter, *inside = [body.get_tuple_element(parameter, k) for k in range(len(leaves) + 1)]
    roots = step(body, inside)
    again = body.build(body.tuple(body.subtract(counter, body.constant(np.int32(1))), *roots))
    done = b.while_(state, more, again)
    return [b.get_tuple_element(done, k + 1) for k in range(len(leaves))]


@pytest.mark.parametrize("turns", [0, 1, 3])
def test_a_loop_updates_its_state_in_place(turns: int) -> None:
    b = Builder()
    start = b.negate(b.parameter(VECTOR, "x"))
    (y,) = counting_loop(b, [start], turns, lambda body, leaves: [body.add(leaves[0], leaves[0])])
    plan = check(entry(b, y), X)
    # Only the counter is copied, from the weights, once.
    assert [c.source.buffer.space for c in copies(plan)] == [Space.WEIGHTS]
    (loop,) = [s for s in plan.steps if isinstance(s, WhileLoop)]
    assert [str(s.buffer) for s in loop.states][1] == "output[0]"


def test_a_loop_reads_what_it_does_not_change_from_where_it_lies() -> None:
    b = Builder()
    x, weight = b.parameter(VECTOR, "x"), b.constant(X)
    first, *_ = counting_loop(
        b, [b.negate(x), x, weight], 2, lambda body, v: [body.add(body.multiply(v[0], v[2]), v[1]), v[1], v[2]]
    )
    plan = check(entry(b, first), X)
    (loop,) = [s for s in plan.steps if isinstance(s, WhileLoop)]
    assert len(loop.states) == 2
    assert {s.buffer.space for s in launches(plan)[2].arguments} >= {Space.WEIGHTS}


@pytest.mark.parametrize("turns", [0, 1, 2, 5])
@pytest.mark.parametrize("order", [(1, 0, 2), (1, 2, 0), (2, 2, 2), (0, 0, 1)])
def test_a_loop_that_permutes_its_state(turns: int, order: tuple[int, ...]) -> None:
    b = Builder()
    x = b.parameter(VECTOR, "x")
    leaves = [b.negate(x), b.add(x, x), x]
    out = counting_loop(b, leaves, turns, lambda body, v: [v[k] for k in order])
    check(entry(b, *out), X)


def test_an_updated_slice_of_the_state_is_written_in_place() -> None:
    b = Builder()
    x = b.parameter(VECTOR, "x")

    def step(body: Builder, leaves: list[Instruction]) -> list[Instruction]:
        buffer, place = leaves
        update = body.reshape(body.convert(place, F32), (1,))
        moved = body.add(place, body.constant(np.int32(1)))
        return [body.dynamic_update_slice(buffer, update, [place]), moved]

    buffer, _ = counting_loop(b, [b.negate(x), b.constant(np.int32(2))], 4, step)
    plan = check(entry(b, buffer), X)
    (loop,) = [s for s in plan.steps if isinstance(s, WhileLoop)]
    assert not [s for s in loop.body if isinstance(s, Copy) and s.target.buffer.bytes == VECTOR.bytes]


def test_the_condition_may_not_spoil_the_state_it_reads() -> None:
    b = Builder()
    x = b.parameter(VECTOR, "x")
    state = b.tuple(b.negate(x), b.constant(np.float32(3)))
    condition = Builder("condition")
    parameter = condition.parameter(state.type)
    scalar = condition.get_tuple_element(parameter, 1)
    low = condition.negate(condition.negate(scalar))
    more = condition.build(condition.compare(low, condition.constant(np.float32(0)), "GT"))
    body = Builder("body")
    inside = body.parameter(state.type)
    vector, scalar = body.get_tuple_element(inside, 0), body.get_tuple_element(inside, 1)
    less = body.subtract(scalar, body.constant(np.float32(1)))
    done = b.while_(state, more, body.build(body.tuple(body.add(vector, vector), less)))
    check(entry(b, b.get_tuple_element(done, 0), b.get_tuple_element(done, 1)), X)


def case(name: str, type: TensorType, make: Case) -> Computation:
    b = Builder(name)
    return b.build(make(b, b.parameter(type)))


@pytest.mark.parametrize("index", [-1, 0, 1, 2, 7])
def test_every_case_leaves_its_result_where_the_branch_is_read(index: int) -> None:
    b = Builder()
    x = b.negate(b.parameter(VECTOR, "x"))
    cases = [
        case("double", VECTOR, lambda c, v: c.add(v, v)),
        case("constant", VECTOR, lambda c, v: c.constant(X)),
        case("same", VECTOR, lambda c, v: v),
    ]
    number = b.parameter(COUNTER, "index")
    plan = check(entry(b, b.conditional(number, [x, x, x], cases)), X, np.array(index, np.int32))
    (branch,) = [s for s in plan.steps if isinstance(s, Branch)]
    assert str(branch.results[0].buffer) == "output[0]"
    assert [c.source.value for c in copies(plan)] == ["constant", "negate"]


@pytest.mark.parametrize("flag", [True, False])
def test_a_predicate_takes_the_first_case_when_true(flag: bool) -> None:
    b = Builder()
    x, pred = b.parameter(VECTOR, "x"), b.parameter(TensorType(PRED), "flag")
    cases = [case("then", VECTOR, lambda c, v: c.negate(v)), case("otherwise", VECTOR, lambda c, v: v)]
    check(entry(b, b.conditional(pred, [x, x], cases)), X, np.array(flag))


def test_a_call_is_inlined_each_time() -> None:
    b = Builder()
    x = b.parameter(VECTOR, "x")
    callee = Builder("callee")
    computation = callee.build(callee.negate(callee.parameter(VECTOR)))
    plan = check(entry(b, b.call(computation, b.call(computation, x))), X)
    assert len(launches(plan)) == 2 and len(plan.kernels()) == 1


def test_empty_tensors_take_no_steps_of_their_own() -> None:
    b = Builder()
    x = b.parameter(TensorType(F32, (0, 4)), "x")
    plan = check(entry(b, x, b.constant(np.zeros((3, 0), np.float32)), b.negate(x)), np.zeros((0, 4), np.float32))
    assert not copies(plan) and plan.arena_bytes == 0


def test_temporaries_live_for_one_instruction() -> None:
    b = Builder()
    y = b.reverse(b.reverse(b.parameter(VECTOR, "x"), [0]), [0])
    plan = check(entry(b, b.reverse(y, [0])), X, kernels=CallbackKernels(tasks=2, temporary_bytes=1000))
    assert plan.arena_bytes == 1024 + 2 * 64


def profiled(native: NativePlan, records: int, *inputs: Array) -> Array:
    """What a run writes, with one element more that must stay as it was."""
    steps = sum(1 for _ in walk_steps(native.plan.steps))
    array = np.append(new_profile(steps, records), 12345)
    native.run(*inputs, profile=array)
    assert array[-1] == 12345
    return array[:-1]


def test_the_profile_has_a_time_for_every_step() -> None:
    b = Builder()
    y = b.negate(b.reverse(b.parameter(VECTOR, "x"), [0]))
    array = profiled(NativePlan(entry(b, y, y)), 0, X)
    begin, end, _, records = array[:4]
    starts, times, rounds = array[4:].reshape(-1, 3).T
    assert begin > 0 and begin + times.sum() == end and records == 0
    assert (rounds == 1).all() and (starts == begin + np.cumsum([0, *times[:-1]])).all()


def test_the_profile_counts_the_rounds_of_a_loop_and_its_steps() -> None:
    b = Builder()
    (y,) = counting_loop(b, [b.negate(b.parameter(VECTOR, "x"))], 3, lambda body, v: [body.add(v[0], v[0])])
    native = NativePlan(entry(b, y))
    array = profiled(native, 100, X)
    steps = list(walk_steps(native.plan.steps))
    (loop,) = (k for k, step in enumerate(steps) if isinstance(step, WhileLoop))
    condition, body = (len(list(walk_steps(inner))) for inner in nested(steps[loop]))
    _, times, rounds = array[4 : 4 + 3 * len(steps)].reshape(-1, 3).T
    assert rounds[loop] == 1
    assert (rounds[loop + 1 : loop + 1 + condition] == 4).all()
    assert (rounds[loop + 1 + condition : loop + 1 + condition + body] == 3).all()
    assert times[loop] >= times[loop + 1 : loop + 1 + condition + body].sum()


def test_records_say_which_thread_ran_which_task_as_far_as_there_is_room() -> None:
    b = Builder()
    y = b.reverse(b.parameter(VECTOR, "x"), [0])
    native = NativePlan(entry(b, y), CallbackKernels(tasks=3))
    (step,) = native.plan.steps
    for room in (10, 2):
        array = profiled(native, room, X)
        assert array[2:4].tolist() == [room, 4]
        records = array[4 + 3 :].reshape(-1, 4)[: min(room, 4)]
        assert (records[:, 0] == 0).all() and (records[:3, 1] != 0).all() and (records[:, 2] <= records[:, 3]).all()
        assert (records[1:3, 2] >= records[:1, 3]).all()  # tasks follow each other on one thread
        if room > 4:
            assert records[3, 1] == 0 and records[3, 2] <= records[0, 2]  # the step as a whole ends last


def test_equal_plans_have_equal_objects() -> None:
    def objects() -> tuple[bytes, ...]:
        b = Builder()
        x = b.parameter(VECTOR, "x")
        (y,) = counting_loop(b, [b.negate(x)], 3, lambda body, v: [body.add(v[0], v[0])])
        return NativePlan(entry(b, y), kernels).code.objects

    kernels = CallbackKernels()
    kernels.emit = lambda kernel, symbol: f"define void @{symbol}(ptr %b, i64 %t) {{\n  ret void\n}}\n"  # type: ignore[method-assign]
    assert objects() == objects()
