"""Constants are found through any chain of operations, and no question costs more than its budget."""

import time

import numpy as np

from onnxla.hlo.builder import Builder
from onnxla.hlo.constant_evaluation import ConstantEvaluator
from onnxla.hlo.module import Instruction
from onnxla.hlo.parser import parse_module
from onnxla.hlo.types import F32, PRED, S64, TensorType

VECTOR = TensorType(F32, (4,))


def evaluator(max_bytes: int = 1 << 20, max_seconds: float = 10.0) -> ConstantEvaluator:
    return ConstantEvaluator(max_bytes, max_seconds)


def test_a_shape_computation_is_constant() -> None:
    b = Builder()
    shape = b.constant(np.array([2, 3, 4]))
    batch = b.slice(shape, [0], [1])
    rest = b.constant(np.array([-1], np.int64))
    target = b.concatenate([batch, b.multiply(rest, rest)], 0)
    assert np.array_equal(evaluator().value(target), [2, 1])  # type: ignore[arg-type]


def test_what_depends_on_a_parameter_is_unknown() -> None:
    b = Builder()
    x = b.parameter(VECTOR)
    ones = b.full([4], 1.0, F32)
    ask = evaluator()
    assert ask.value(x) is None
    assert ask.value(b.add(ones, x)) is None
    assert not ask.is_constant(b.tuple(ones, x))
    assert ask.value(ones) is not None


def test_a_tensor_without_elements_is_known() -> None:
    """An input of shape [0] stands for one that is left out, as Resize's scales before opset 13."""
    value = evaluator().value(Builder().parameter(TensorType(F32, (2, 0))))
    assert value is not None and value.shape == (2, 0) and value.dtype == np.float32


def test_an_element_of_a_tuple_depends_on_that_element_only() -> None:
    b = Builder()
    pair = b.tuple(b.parameter(VECTOR), b.constant(np.int64(7)))
    ask = evaluator()
    assert ask.value(b.get_tuple_element(pair, 0)) is None
    assert ask.value(b.get_tuple_element(pair, 1)) == 7


def test_a_tuple_has_no_array() -> None:
    b = Builder()
    assert evaluator().value(b.tuple(b.constant(1))) is None


def test_an_answer_is_computed_once_and_paid_once() -> None:
    b = Builder()
    x = b.full([100], 1.0, F32)
    y = b.add(x, x)
    ask = evaluator()
    first = ask.value(y)
    left = ask.bytes_left
    assert ask.value(y) is first and ask.bytes_left == left == (1 << 20) - 2 * 400


def test_a_result_beyond_the_bytes_is_unknown_and_so_is_what_needs_it() -> None:
    b = Builder()
    large = b.full([1 << 30], 0.0, F32)
    middle = b.negate(large)
    small = b.slice(middle, [0], [2])
    ask = evaluator()
    assert ask.value(small) is None
    assert ask.value(middle) is None
    assert not ask.is_constant(small)
    assert ask.bytes_left == 1 << 20


def test_the_sum_of_results_is_bounded() -> None:
    b = Builder()
    ask = evaluator(max_bytes=1000)
    scalar = b.constant(np.float32(1))
    answers = [ask.value(b.broadcast_scalar(scalar, [100])) is not None for _ in range(4)]
    assert answers == [True, True, False, False]


def test_constants_themselves_cost_nothing() -> None:
    b = Builder()
    assert evaluator(max_bytes=10).value(b.constant(np.zeros(100))) is not None


def test_reshaping_a_constant_costs_nothing() -> None:
    b = Builder()
    assert evaluator(max_bytes=10).value(b.reshape(b.constant(np.zeros(100)), [10, 10])) is not None


def endless_loop() -> Instruction:
    always = Builder("always")
    same = always.build(always.parameter(TensorType(PRED)))
    b = Builder()
    return b.while_(b.constant(True), same, same)


def test_an_endless_loop_meets_the_budget() -> None:
    start = time.monotonic()
    ask = evaluator(max_seconds=0.05)
    assert ask.value(endless_loop()) is None
    assert ask.seconds_left < 1e-4
    assert time.monotonic() - start < 5


def test_calls_that_double_at_each_level_meet_the_budget() -> None:
    lines = ["c0 {\n x = f32[] parameter(0)\n ROOT y = f32[] negate(x)\n}"]
    lines += [
        f"c{i} {{\n x = f32[] parameter(0)\n a = f32[] call(x), to_apply=c{i - 1}\n"
        f" ROOT b = f32[] call(a), to_apply=c{i - 1}\n}}"
        for i in range(1, 90)
    ]
    lines += ["ENTRY main {\n x = f32[] constant(1)\n ROOT y = f32[] call(x), to_apply=c89\n}"]
    module = parse_module("\n".join(lines))
    assert evaluator(max_seconds=0.05).value(module.entry.root) is None


def test_work_that_would_take_too_long_is_not_begun() -> None:
    b = Builder()
    large = b.broadcast_scalar(b.constant(np.float32(1)), [3000, 3000])
    product = b.slice(b.matmul(b.matmul(large, large), large), [0, 0], [1, 1])
    start = time.monotonic()
    assert evaluator(max_bytes=1 << 30, max_seconds=1.0).value(product) is None
    assert time.monotonic() - start < 5


def test_loops_branches_and_calls_are_evaluated() -> None:
    module = parse_module("""
        below { i = s64[] parameter(0)
                n = s64[] constant(5)
                ROOT c = pred[] compare(i, n), direction=LT }
        next { i = s64[] parameter(0)
               one = s64[] constant(1)
               ROOT j = s64[] add(i, one) }
        back { i = s64[] parameter(0)
               ROOT j = s64[] negate(i) }
        ENTRY main { zero = s64[] constant(0)
                     five = s64[] while(zero), condition=below, body=next
                     yes = pred[] constant(false)
                     six = s64[] conditional(yes, five, five), true_computation=back, false_computation=next
                     seven = s64[] call(six), to_apply=next
                     last = s32[] constant(-3)
                     ROOT minus = s64[] conditional(last, zero, seven), branch_computations={next, back} }
    """)
    value = evaluator().value(module.entry.root)
    assert value is not None and value.dtype == S64.dtype and value == -7


def test_an_operation_without_a_value_is_unknown() -> None:
    module = parse_module("""
        ENTRY main { x = f32[] constant(1)
                     ROOT y = f32[] custom-call(x), custom_call_target="mystery" }
    """)
    assert evaluator().value(module.entry.root) is None


def test_a_long_chain_needs_no_deep_recursion() -> None:
    b = Builder()
    value = b.constant(np.float32(1))
    for _ in range(20_000):
        value = b.negate(value)
    assert evaluator().value(value) == 1
