"""What runs where, and why: the report of a model that is compiled in part."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from onnxla.errors import Problem, harmless_line
from onnxla.runtime.report import CompileReport

_SHOWN = 20
"""Most nodes of one part that are named; all are in `ClusterReport.nodes`."""


@dataclass(frozen=True)
class Reason:
    """Why a node runs in onnxruntime."""

    text: str
    problems: tuple[Problem, ...] = ()
    """What the import said; empty where the node could be imported, or only what it reads could not."""
    was_told: bool = False
    """Whether there were problems, of a report that was loaded: their texts are in `text`."""


@dataclass(frozen=True)
class ClusterReport:
    """One part of the model. The names are the model's own."""

    compiled: bool
    nodes: tuple[str, ...]
    """`/head/NonMaxSuppression (NonMaxSuppression), node 17`, in the order they run."""
    operators: tuple[str, ...]
    """Of the nodes."""
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    reasons: tuple[Reason, ...]
    """Why each node is not compiled; empty for a compiled part."""
    report: CompileReport | None
    """What compiling did."""

    def lines(self, number: int) -> list[str]:
        where = "compiled" if self.compiled else "onnxruntime"
        lines = [f"{number} {where}: {_nodes(len(self.nodes))} ({_counts(self.operators)})"]
        lines.append(f"  reads {_names(self.inputs)}; gives {_names(self.outputs)}")
        told = [k for k, reason in enumerate(self.reasons) if reason.problems or reason.was_told]
        for k in told[:_SHOWN]:
            lines += [f"  {self.nodes[k]}", f"    {self.reasons[k].text}"]
        if len(told) > _SHOWN:
            lines.append(f"  and {_nodes(len(told) - _SHOWN)} more with problems")
        others = Counter(reason.text for reason in self.reasons if not (reason.problems or reason.was_told))
        for text, n in others.most_common(_SHOWN):
            kinds = [kind for kind, reason in zip(self.operators, self.reasons, strict=True) if reason.text == text]
            lines.append(f"  {_nodes(n)} ({_counts(kinds)}): {text}")
        return lines


@dataclass(frozen=True)
class FallbackReport:
    """The parts of a model, in the order they run."""

    model: str
    clusters: tuple[ClusterReport, ...]

    @property
    def compiled_nodes(self) -> int:
        return sum(len(c.nodes) for c in self.clusters if c.compiled)

    @property
    def fallback_nodes(self) -> int:
        return sum(len(c.nodes) for c in self.clusters if not c.compiled)

    def __str__(self) -> str:
        compiled = sum(c.compiled for c in self.clusters)
        others = len(self.clusters) - compiled
        lines = [
            f"{self.model}: {_nodes(self.compiled_nodes)} compiled in {_clusters(compiled)}, "
            f"{self.fallback_nodes} in onnxruntime in {_clusters(others)}"
        ]
        for number, cluster in enumerate(self.clusters, 1):
            lines += cluster.lines(number)
        return "\n".join(map(harmless_line, lines))


def _nodes(count: int) -> str:
    return "1 node" if count == 1 else f"{count} nodes"


def _counts(operators: Sequence[str]) -> str:
    """`Conv 3, Relu 2, Add 1`: the most frequent first."""
    counts = Counter(operators)
    return ", ".join(f"{name} {n}" for name, n in counts.most_common(6)) + (", ..." if len(counts) > 6 else "")


def _clusters(count: int) -> str:
    return "1 cluster" if count == 1 else f"{count} clusters"


def _names(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return (", ".join(names[:8]) or "nothing") + more
