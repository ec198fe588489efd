"""The smallest part of a model that still shows a fault, by trying parts.

The first value that is wrong comes first: the shortest beginning of the model that fails ends with its node. Then the
fewest nodes before it, and then single nodes left out (delta debugging, Zeller and Hildebrandt 2002). What a trial
costs grows with the part; where compiling long beginnings takes too much of the time, halves are tried instead. A part
reads what onnxruntime has for the values around it, so it may be cut anywhere; it need not be connected.
"""

import math
from collections.abc import Callable, Sequence

from onnxla.debugging.budget import Budget
from onnxla.debugging.model_part import ModelGraph, Part

Fails = Callable[[Part], bool]
"""Whether a part shows the fault."""


def smallest_part(graph: ModelGraph, part: Part, fails: Fails, budget: Budget, seconds: float = 0.0) -> Part:
    """A part of `part`, which fails, that fails too and of which nothing can be left out, time allowing.

    `seconds` is what a trial of `part` takes.
    """
    search = _Search(graph, part, fails, budget)
    trials = math.ceil(math.log2(len(part.nodes) + 1)) / 2
    part = search.beginning(part) if trials * seconds < budget.left / 2 else search.window(part)
    while True:
        smaller = search.without_nodes(search.one_output(part))
        if smaller == part or budget.is_over:
            return smaller
        part = smaller


class _Search:
    def __init__(self, graph: ModelGraph, part: Part, fails: Fails, budget: Budget) -> None:
        self.graph = graph
        self.fails = fails
        self.budget = budget
        self.tried = {part}

    def shows(self, part: Part) -> bool:
        """Whether a part that was not tried before shows the fault."""
        if not part.outputs or part in self.tried or self.budget.is_over:
            return False
        self.tried.add(part)
        count = len(part.nodes)
        self.budget.says(f"trying {count} {'node' if count == 1 else 'nodes'}")
        return self.fails(part)

    def beginning(self, part: Part) -> Part:
        """The shortest beginning that fails, only what its last node gives, and the fewest nodes before that."""
        short, long = 0, len(part.nodes)
        found = part
        while long - short > 1 and not self.budget.is_over:
            middle = (short + long) // 2
            candidate = self._of(part.nodes[:middle])
            if self.shows(candidate):
                long, found = middle, candidate
            else:
                short = middle
        last = self.graph.part(found.nodes, [n for n in found.outputs if self.graph.maker[n] == found.nodes[-1]])
        part = last if self.shows(last) else found
        count = 1
        while count < len(part.nodes):
            candidate = self.graph.part(part.nodes[-count:], part.outputs)
            if self.shows(candidate):
                return candidate
            count *= 2
        return part

    def window(self, part: Part) -> Part:
        """Halves of the nodes in their order, as long as one fails; then both ends shortened."""
        while (half := self._half(part)) is not None:
            part = half
        step = len(part.nodes) // 4
        while step and not self.budget.is_over:
            for shorter in (part.nodes[step:], part.nodes[:-step]):
                candidate = self._of(shorter)
                if self.shows(candidate):
                    part = candidate
                    break
            else:
                step //= 2
            step = min(step, len(part.nodes) - 1)
        return part

    def _half(self, part: Part) -> Part | None:
        size = (len(part.nodes) + 1) // 2
        if size == len(part.nodes):
            return None
        starts = (0, len(part.nodes) - size, (len(part.nodes) - size) // 2)
        candidates = (self._of(part.nodes[start : start + size]) for start in dict.fromkeys(starts))
        return next((c for c in candidates if self.shows(c)), None)

    def _of(self, nodes: Sequence[int]) -> Part:
        return self.graph.part(nodes, self.graph.results(nodes))

    def one_output(self, part: Part) -> Part:
        """One of the outputs and what it needs: the first that fails alone."""
        if len(part.outputs) == 1:
            return part
        candidates = (self.graph.part(part.nodes, [name]) for name in part.outputs)
        return next((c for c in candidates if self.shows(c)), part)

    def without_nodes(self, part: Part) -> Part:
        """Runs of nodes left out, their results given: long runs first, then single nodes."""
        length = max(1, len(part.nodes) // 2)
        while not self.budget.is_over:
            place = 0
            while place < len(part.nodes):
                kept = part.nodes[:place] + part.nodes[place + length :]
                candidate = self.graph.part(kept, part.outputs)
                if self.shows(candidate):
                    part = candidate
                else:
                    place += length
            if length == 1:
                return part
            length = max(1, min(length // 2, len(part.nodes)))
        return part
