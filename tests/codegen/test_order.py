"""The order of instructions is chosen for a small peak of live memory."""

from random import Random

from onnxla.codegen.order import order_instructions, peak_bytes
from onnxla.hlo.builder import Builder
from onnxla.hlo.types import F32, TensorType
from tests.codegen.random_programs import random_module


def test_the_costly_subtree_runs_before_the_cheap_one() -> None:
    b = Builder()
    x = b.parameter(TensorType(F32, (1024,)))
    kept = b.negate(x)
    large = b.negate(b.broadcast(x, (64, 1024), (1,)))
    small = b.slice(large, [0, 0], [1, 1024])
    computation = b.build(b.add(kept, b.reshape(small, (1024,))))
    order = order_instructions(computation)
    assert order.index(large) < order.index(kept)
    assert peak_bytes(order) < peak_bytes(computation.instructions())


def test_operands_come_first_and_nothing_is_lost() -> None:
    for seed in range(50):
        computation = random_module(Random(seed)).entry
        order = order_instructions(computation)
        assert set(order) == set(computation.instructions()) and len(order) == len(set(order))
        assert order[: len(computation.parameters)] == computation.parameters
        places = {instruction: k for k, instruction in enumerate(order)}
        assert all(places[o] < places[i] for i in order for o in i.operands)


def test_the_peak_counts_what_is_alive_at_once() -> None:
    b = Builder()
    y = b.negate(b.parameter(TensorType(F32, (4,))))
    for _ in range(5):
        y = b.negate(y)
    assert peak_bytes(b.build(y).instructions()) == 32
