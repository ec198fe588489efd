"""A bounded number of random models; `python -m tests.fuzz.run` runs as many as wanted."""

import pytest

from tests.fuzz.check import check_seed, describe, guard_seed
from tests.fuzz.generator import generate
from tests.fuzz.shrink import shrink
from tests.fuzz.witnesses import compiled


def test_a_seed_means_one_model() -> None:
    assert generate(7).model.SerializeToString() == generate(7).model.SerializeToString()


@pytest.mark.parametrize("first", range(0, 120, 10))
def test_random_models_mean_the_same_to_every_witness(first: int) -> None:
    for seed in range(first, first + 10):
        try:
            check_seed(seed)
        except Exception as error:
            pytest.fail(describe(seed, error))


def test_random_models_stay_inside_their_memory() -> None:
    for seed in range(500, 520):
        guard_seed(seed)


def test_a_failing_model_shrinks_to_the_nodes_that_fail() -> None:
    case = next(c for c in map(generate, range(100)) if len(c.model.graph.node) > 8 and not c.expected)
    kinds = [node.op_type for node in case.model.graph.node]
    rare = min(kinds, key=lambda kind: (kinds.count(kind), kinds.index(kind)))
    smaller = shrink(case, lambda c: any(node.op_type == rare for node in c.model.graph.node))
    assert [node.op_type for node in smaller.model.graph.node] == [rare]
    assert len(compiled(smaller)) == len(smaller.model.graph.output)
