"""Which nodes are compiled, which run in onnxruntime, and in how many stages.

A node that fails to import runs in onnxruntime. Nodes of one kind with the same number of changes between compiler and
onnxruntime before them make one cluster:

    x -> Conv -> Relu -> NonMaxSuppression -> Gather -> y
    0    0       0       1                    1             the most changes on a path to the node

So the clusters run one after the other, and no path leaves a cluster and comes back: they are convex. No others of the
same nodes are fewer, since a path with that many changes needs that many. A piece of a cluster, of nodes that values
join, is not worth handing arrays over for where it moves fewer than SMALLEST_BYTES: beside nodes that run in
onnxruntime it goes there too, and its neighbours grow together.
"""

from dataclasses import dataclass
from functools import cached_property

from onnxla.fallback.wiring import Wiring
from onnxla.frontends.onnx.structure import subgraphs
from onnxla.frontends.onnx.survey import Survey
from onnxla.hlo.types import TensorType
from onnxla.runtime.mixed_report import Reason

SMALLEST_BYTES = 1 << 16
"""What a piece beside others must read (of weights) and write to be compiled. Handing over takes some ten
microseconds, in which either runtime moves about as much."""


@dataclass(frozen=True)
class Cluster:
    """Nodes, by position, that run as one: compiled, or in onnxruntime."""

    compiled: bool
    nodes: tuple[int, ...]


class Clustering:
    """The clusters of a model in the order they run, and why nodes are in onnxruntime's."""

    def __init__(self, wiring: Wiring, survey: Survey) -> None:
        self._wiring = wiring
        self._survey = survey
        self._known: dict[str, bool] = {}
        self.reasons: dict[int, Reason] = {k: self._failure(k) for k in wiring.nodes if k in survey.failed}
        self._keep_together()
        self._leave_out_small_ones()

    @cached_property
    def clusters(self) -> tuple[Cluster, ...]:
        return self._levels()

    def is_known(self, name: str) -> bool:
        """Whether a value is the same in every run, so that whoever reads it has it as a weight."""
        if name not in self._known:
            self._known[name] = self._survey.known_value(name) is not None
        return self._known[name]

    # Reasons

    def _failure(self, node: int) -> Reason:
        problems = self._survey.failed[node]
        if problems:
            more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
            return Reason(problems[0].cause + more, problems)
        for name in self._wiring.reads[node]:
            # An input of the model that cannot be imported: what is wrong with it is said of no node.
            if name not in self._wiring.maker and self._survey.is_unknown(name):
                problems = tuple(p for p in self._survey.problems if p.node is None and name in p.needs_constants)
                return Reason(f"it reads the input {name}, which compiled code does not take", problems)
        return Reason("it reads what has no known shape before the model runs")

    # Colours

    def _keep_together(self) -> None:
        """Where one of the nodes that make and read a value that is not handed over is out, all of them are."""
        changed = True
        while changed:
            changed = False
            for name, maker in self._wiring.maker.items():
                together = {maker, *self._wiring.readers.get(name, ())}
                out = together & self.reasons.keys()
                if not out or out == together or self._is_handed_over(name):
                    continue
                if maker not in self.reasons and self.is_known(name):
                    continue
                other = self._wiring.label(min(out))
                for node in together - out:
                    text = f"it shares {name} with {other}, and only tensors of numbers are handed over"
                    self.reasons[node] = Reason(text)
                changed = True

    def _is_handed_over(self, name: str) -> bool:
        kind = self._survey.type(name)
        if kind is not None:
            return may_be_handed_over(kind)
        # What nobody knows is made and read in onnxruntime; what is a sequence, or strings, would not be.
        return self._survey.is_unknown(name)

    def _leave_out_small_ones(self) -> None:
        """Leave out small pieces of clusters beside onnxruntime's, until none is small: what was between them and is
        large grows together, and so becomes no smaller."""
        while True:
            small = [
                (piece, moved)
                for cluster in self._levels()
                if cluster.compiled
                for piece in self._pieces(cluster)
                if self._adjoins_others(piece) and (moved := self._bytes_moved(piece)) < SMALLEST_BYTES
            ]
            if not small:
                return
            for piece, moved in small:
                text = f"its cluster moves {moved} bytes, fewer than handing over is worth"
                self.reasons.update(dict.fromkeys(piece, Reason(text)))

    def _pieces(self, cluster: Cluster) -> list[list[int]]:
        """The nodes of a cluster, those that are joined by values together; without those whose results are known."""
        nodes = [k for k in cluster.nodes if not all(map(self.is_known, self._wiring.makes(k)))]
        inside = set(nodes)
        pieces: list[list[int]] = []
        seen: set[int] = set()
        for start in nodes:
            if start in seen:
                continue
            seen.add(start)
            piece, stack = [], [start]
            while stack:
                node = stack.pop()
                piece.append(node)
                new = (self._beside(node) & inside) - seen
                seen |= new
                stack += new
            pieces.append(sorted(piece))
        return pieces

    def _beside(self, node: int) -> set[int]:
        """The nodes that a node reads from, or that read from it."""
        before = {self._wiring.maker[name] for name in self._wiring.reads[node] if name in self._wiring.maker}
        return before.union(*(self._wiring.readers.get(name, ()) for name in self._wiring.makes(node)))

    def _adjoins_others(self, piece: list[int]) -> bool:
        return any(not self.reasons.keys().isdisjoint(self._beside(node)) for node in piece)

    def _bytes_moved(self, nodes: list[int]) -> int:
        """What nodes write, and the weights they read. Loops and branches do more than can be seen from here."""
        if any(True for k in nodes for _ in subgraphs(self._wiring.nodes[k])):
            return SMALLEST_BYTES
        written = {name for k in nodes for name in self._wiring.makes(k)}
        weights = {name for k in nodes for name in self._wiring.reads[k] if self.is_known(name)}
        kinds = [self._survey.type(name) for name in written | weights]
        return sum(kind.size * kind.element.bytes for kind in kinds if kind is not None)

    # Levels

    def _levels(self) -> tuple[Cluster, ...]:
        """The fewer of the clusters that begin with a compiled one and of those that begin in onnxruntime."""
        return min((self._levels_from(compiled) for compiled in (True, False)), key=len)

    def _levels_from(self, compiled_first: bool) -> tuple[Cluster, ...]:
        level: dict[int, int] = {}
        for k in self._wiring.nodes:
            compiled = k not in self.reasons
            found = 0 if compiled == compiled_first else 1
            for name in self._wiring.reads[k]:
                maker = self._wiring.maker.get(name)
                if maker is None:
                    continue
                crosses = (maker not in self.reasons) != compiled
                if crosses and self.is_known(name):
                    continue
                found = max(found, level[maker] + crosses)
            level[k] = found
        groups: dict[int, list[int]] = {}
        for k, found in level.items():
            groups.setdefault(found, []).append(k)
        return tuple(
            Cluster(nodes[0] not in self.reasons, tuple(nodes))
            for _, nodes in sorted(groups.items())
            if not self._only_known(nodes)
        )

    def _only_known(self, nodes: list[int]) -> bool:
        """Whether nothing of a cluster has to run: its values are weights of those that read them."""
        given = set(self._wiring.outputs)
        return all(self.is_known(name) and name not in given for k in nodes for name in self._wiring.makes(k))


def may_be_handed_over(kind: TensorType) -> bool:
    """Whether numpy and onnxruntime keep a tensor of this type in the same bytes."""
    return kind.element.dtype.isbuiltin == 1 or kind.element.name == "bf16"
