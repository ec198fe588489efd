"""Each fuzzing target on its seeds and some mutants of them; hours of it by hand: tests/hostile/fuzzers."""

import random

import pytest

from tests.hostile.fuzzers import (
    artifact,
    cache,
    checkpoint,
    hlo_text,
    importer,
    objects,
    shape_inference,
    stablehlo,
    tensorflow_graph,
)
from tests.hostile.fuzzers.target import Target, is_accepted

TARGETS = {
    module.TARGET: mutants
    for module, mutants in (
        (artifact, 400),
        (cache, 250),
        (checkpoint, 40),
        (hlo_text, 600),
        (importer, 500),
        (objects, 500),
        (shape_inference, 900),
        (stablehlo, 200),
        (tensorflow_graph, 80),
    )
}


@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
def test_mutants_are_taken_or_refused(target: Target) -> None:
    """Other errors, those of onnxla itself, and what takes too long are raised by `is_accepted`."""
    rng = random.Random(target.name)
    seeds = target.seeds()
    taken = [is_accepted(target, seed) for seed in seeds[:20]]
    for _ in range(TARGETS[target]):
        data = rng.choice(seeds)
        for _ in range(rng.choice((1, 1, 2, 3))):
            data = target.mutate(data, rng)
        taken.append(is_accepted(target, data))
    assert any(taken) and (target is cache.TARGET or not all(taken))
