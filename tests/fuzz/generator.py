"""From a seed to a model and its inputs."""

import random

from tests.fuzz.graph import Case, Graph
from tests.fuzz.operators import STEPS


def generate(seed: int) -> Case:
    """A valid model of up to about 16 nodes; the same seed gives the same model."""
    graph = Graph(random.Random(seed))
    graph.leaf("float32", graph.shape(1, 4), constant=False)
    steps = graph.random.randint(1, 12)
    while steps or not graph.nodes:
        graph.random.choices(list(STEPS), list(STEPS.values()))[0](graph)
        steps = max(steps - 1, 0)
        if any(v.size > 200_000 for v in graph.values):
            break
    return graph.case(f"seed {seed}")
