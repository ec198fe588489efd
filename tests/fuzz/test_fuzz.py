"""A bounded number of random models; `python -m tests.fuzz.run` runs as many as wanted."""

import pytest

from tests.fuzz.check import check_seed, describe, guard_seed
from tests.fuzz.generator import generate


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
