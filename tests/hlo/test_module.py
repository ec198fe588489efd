"""The graph: order, uses, replacing, and running a computation in numpy."""

import numpy as np
import pytest

from onnxla.errors import HloError, SourceNode
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Module
from onnxla.hlo.parser import parse_module
from onnxla.hlo.types import F32, S32, TensorType, TupleType

VECTOR = TensorType(F32, (4,))


def test_operands_come_before_users_and_parameters_lead() -> None:
    b = Builder()
    x, unused, y = b.parameter(VECTOR), b.parameter(VECTOR), b.parameter(VECTOR)
    root = b.add(b.negate(y), b.multiply(x, y))
    computation = b.build(root)
    order = computation.instructions()
    assert order[:3] == [x, unused, y]
    assert order[-1] is root
    places = {instruction: i for i, instruction in enumerate(order)}
    assert all(places[o] < places[i] for i in order for o in i.operands)
    assert computation.instructions() == order


def test_what_the_root_does_not_need_is_not_in_the_program() -> None:
    b = Builder()
    x = b.parameter(VECTOR)
    dead = b.exponential(x)
    root = b.negate(x)
    assert dead in x.users
    assert dead not in b.build(root).instructions()
    assert list(x.users) == [root]


def test_a_chain_of_any_length_is_walked() -> None:
    b = Builder()
    value = b.parameter(TensorType(F32, ()))
    for _ in range(50_000):
        value = b.negate(value)
    computation = b.build(value)
    assert len(computation.instructions()) == 50_001
    assert computation.evaluate(np.float32(3)) == 3


def test_replace_moves_users_the_root_and_the_source() -> None:
    b = Builder(source=SourceNode("/a", "Neg"))
    x = b.parameter(VECTOR)
    y = b.negate(x)
    user = b.exponential(y)
    computation = b.build(user)
    b.source = None
    computation.replace(y, b.emit(y.op, x))
    assert user.operands[0] is not y and not y.users
    assert user.operands[0].source == SourceNode("/a", "Neg")
    computation.replace(user, x)
    assert computation.root is x


def test_replacing_by_a_user_of_the_value_makes_no_cycle() -> None:
    b = Builder()
    x = b.parameter(VECTOR)
    y = b.negate(x)
    computation = b.build(b.exponential(y))
    twice = b.add(y, y)
    computation.replace(y, twice)
    assert twice.operands == (y, y)
    assert computation.root.operands == (twice,)


def test_types_must_agree_when_replacing() -> None:
    b = Builder()
    x, y = b.parameter(VECTOR), b.parameter(TensorType(F32, (5,)))
    with pytest.raises(HloError, match="cannot replace"):
        x.replace_uses_with(y)


def test_computations_come_before_their_callers_each_once() -> None:
    b = Builder("main")
    x = b.parameter(VECTOR)
    total = b.reduce_by("add", x, [0])
    again = b.reduce_by("add", b.negate(x), [0])
    most = b.reduce_by("maximum", x, [0])
    module = Module("m", b.build(b.tuple(total, again, most)))
    assert [c.name for c in module.computations()] == ["add_f32", "maximum_f32", "main"]


def test_evaluate_runs_loops_and_tuples() -> None:
    module = parse_module("""
        below { s = (s32[], f32[]) parameter(0)
                i = s32[] get-tuple-element(s), index=0
                n = s32[] constant(5)
                ROOT c = pred[] compare(i, n), direction=LT }
        step { s = (s32[], f32[]) parameter(0)
               i = s32[] get-tuple-element(s), index=0
               x = f32[] get-tuple-element(s), index=1
               one = s32[] constant(1)
               j = s32[] add(i, one)
               y = f32[] add(x, x)
               ROOT t = (s32[], f32[]) tuple(j, y) }
        ENTRY main { s = (s32[], f32[]) parameter(0)
                     ROOT w = (s32[], f32[]) while(s), condition=below, body=step }
    """)
    assert module.entry.parameter_types == (TupleType((TensorType(S32), TensorType(F32))),)
    count, value = module.entry.evaluate((np.int32(0), np.float32(1)))
    assert (count, value) == (5, 32)


def test_evaluate_gives_a_parameter_that_is_the_root() -> None:
    b = Builder()
    x = b.parameter(VECTOR)
    b.parameter(VECTOR)
    value = np.arange(4, dtype=np.float32)
    assert b.build(x).evaluate(value, -value) is value
