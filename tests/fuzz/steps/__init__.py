"""What a random model is made of: each file has a family of steps, a step appends valid nodes to a graph.

`STEPS` of a file says how often each is taken, `SPECIAL` which of them also take NaN and infinities.
"""

from collections.abc import Callable

from tests.fuzz.graph import Graph
from tests.fuzz.steps import (
    blocks,
    contractions,
    contrib,
    control,
    convolutions,
    elementwise,
    indexing,
    large,
    movement,
    nested,
    norms,
    quantised,
    recurrent,
    reductions,
    rewrites,
)

Step = Callable[[Graph], None]

_FAMILIES = (
    elementwise, rewrites, reductions, norms, movement, indexing, contractions, convolutions, quantised, control,
    recurrent, blocks, contrib, large, nested,
)  # fmt: skip

STEPS: dict[Step, float] = {step: weight for family in _FAMILIES for step, weight in family.STEPS.items()}
SPECIAL_STEPS: dict[Step, float] = {
    step: STEPS[step] for family in (elementwise, rewrites, reductions, movement) for step in family.SPECIAL
}
nested.allow_in_bodies(
    {step: STEPS[step] for family in _FAMILIES if family not in (blocks, large) for step in family.STEPS}
)
