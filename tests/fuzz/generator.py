"""From a seed to a model and its inputs."""

import random

from tests.fuzz.graph import OPSETS, Case, Graph
from tests.fuzz.steps import SPECIAL_STEPS, STEPS
from tests.fuzz.wrapped import wrapped

_WRAPPED = 0.1
_SPECIAL = 0.06


def generate(seed: int) -> Case:
    """A valid model of up to about 20 nodes, or a test of the standard in detours; the same seed, the same model."""
    source = random.Random(seed)
    if source.random() < _WRAPPED:
        case = wrapped(source)
        if case is not None:
            return case
    return grown(source, f"seed {seed}")


def grown(source: random.Random, label: str) -> Case:
    """A model of one to six steps."""
    opset = source.choices(list(OPSETS), list(OPSETS.values()))[0]
    graph = Graph(source, opset, special=source.random() < _SPECIAL)
    table = SPECIAL_STEPS if graph.special else STEPS
    steps, weights = list(table), list(table.values())
    dtype = "float32" if graph.chance(0.8) else source.choice(("float16", "int32"))
    graph.leaf(dtype, graph.shape(0, 4), constant=False)
    left = source.randint(1, 6)
    while left > 0 or not graph.nodes:
        with graph.step():
            source.choices(steps, weights)[0](graph)
        left -= 1
        if graph.nodes and any(v.size > 50_000 for v in graph.values):
            break
    return graph.case(label)
