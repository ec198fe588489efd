"""Which ways to measure, in what order and for how long.

The kernels in which a run spends most time come first, as the cost model sees it. What was measured before, here and
with the same compiler, is not measured again; what takes no time is left to the model.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from onnxla import watch
from onnxla.codegen.choices import Choices, Decision, Site
from onnxla.codegen.cost import Machine
from onnxla.codegen.cpu.target import Target
from onnxla.codegen.dataflow import Compute, build_dataflow, walk
from onnxla.codegen.kernels.schedule import lower
from onnxla.hlo.module import Module
from onnxla.tuning.memory import TuningMemory

AT_ONCE = 4
"""Instructions that are compiled together, in several processes."""
NEGLIGIBLE = 0.01
"""Part of the predicted time of all choices that is left unmeasured in the end."""
Measure = Callable[[Sequence[Site]], list[dict[str, float]]]


@dataclass(frozen=True)
class Tuned:
    """What tuning found."""

    decisions: Mapping[str, Decision]
    """By site: those that were measured, now or before."""
    is_complete: bool
    """Whether everything that matters was measured before the time was over."""
    measured_now: int = 0


class Tuner:
    """Measures in `seconds`; `measure` gives the times of the ways of some sites, which `memory` keeps."""

    def __init__(
        self,
        target: Target,
        seconds: float,
        measure: Measure,
        memory: TuningMemory | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.target, self.seconds, self.measure = target, seconds, measure
        self.memory, self.clock = memory, clock

    def tune(self, module: Module, *, direct_only: bool = False) -> Tuned:
        """The decisions for an optimised module. No measurement begins when the time is over."""
        end = self.clock() + self.seconds
        choices = Choices(Machine.stated(self.target))
        with watch.span("tuning: choices", 0.0, 0.1):
            dataflow = build_dataflow(module, lambda i: lower(i, self.target, direct_only=direct_only, choices=choices))
        uses = {site: 0 for site in choices.sites}
        of_lowering = {id(found.lowering): site for site, found in choices.sites.items()}
        for node in walk(dataflow.body):
            if isinstance(node, Compute) and id(node.lowering) in of_lowering:
                uses[of_lowering[id(node.lowering)]] += 1
        found = self._remembered(choices)
        todo = _that_matter(choices, uses, found)
        measured = 0
        with watch.span("tuning", 0.1, 1.0):
            while todo and self.clock() < end:
                share, todo = todo[:AT_ONCE], todo[AT_ONCE:]
                part = measured / (measured + len(share) + len(todo))
                with watch.span("", part, (measured + len(share)) / (measured + len(share) + len(todo))):
                    times = self.measure([choices.sites[site] for site in share])
                for site, seconds in zip(share, times, strict=True):
                    found[site] = choices.decisions[site].with_times(seconds)
                    if self.memory is not None:
                        self.memory.put(site, seconds)
                measured += len(share)
        return Tuned(found, not todo, measured)

    def _remembered(self, choices: Choices) -> dict[str, Decision]:
        """What is known from before, of the same candidates."""
        found = {}
        for site, decision in choices.decisions.items():
            seconds = {} if self.memory is None else self.memory.get(site)
            if seconds.keys() == {c.name for c in decision.candidates}:
                found[site] = decision.with_times(seconds)
        return found


def _that_matter(choices: Choices, uses: Mapping[str, int], known: Mapping[str, Decision]) -> list[str]:
    """The sites to measure, the dearest first, without those that together take next to no time."""
    cost = {site: uses[site] * decision.candidates[0].predicted for site, decision in choices.decisions.items()}
    order = sorted(cost, key=lambda site: (-cost[site], site))
    total, before, todo = sum(cost.values()), 0.0, []
    for site in order:
        if before > (1 - NEGLIGIBLE) * total:
            break
        before += cost[site]
        if site not in known:
            todo.append(site)
    return todo
