"""TensorFlow 1's conditionals as a choice between values that are both computed.

Switch sends a value to one of its outputs, and what depends on the others does not run; Merge takes the value that is
there. Here Switch passes its value to all outputs, and Merge, knowing under which conditions each of its inputs would
be there, chooses. That gives the same values where the branches have no effects and end, which is required.
"""

from dataclasses import dataclass, replace

from onnxla.errors import ModelFormatError
from onnxla.frontends.tensorflow.graph import Body, Edge, Node, ordered
from onnxla.frontends.tensorflow.loops import MERGES, SWITCHES

_SWITCH_N = "_SwitchN"
PASS, CHOOSE, CONDITIONAL = "onnxla.Pass", "onnxla.Choose", "onnxla.ConditionalEffect"
"""The operations that stand for Switch, for Merge, and for what must not run unless a branch is taken."""

_EFFECTS = ("Assign", "ResourceApply", "ResourceScatter", "Apply", "ScatterUpdate", "ScatterAdd", "While")


@dataclass(frozen=True)
class Guard:
    """A value is there only if `condition` chooses `branch`."""

    condition: Edge
    branch: int


Guards = frozenset[Guard]


def with_choices(body: Body) -> Body:
    """The body without Switch and Merge. Raises ModelFormatError where a Merge does not show what it chooses by."""
    if not any(n.op in (*SWITCHES, *MERGES, _SWITCH_N) for n in body.nodes.values()):
        return body
    guards: dict[str, Guards] = {}
    changed = dict(body.nodes)
    for node in ordered(body, body.nodes):
        each = [_of_edge(body, e, guards) for e in node.inputs]
        by_control = [guards.get(c, frozenset[Guard]()) for c in node.controls]
        if node.op in MERGES:
            changed[node.name], guards[node.name] = _choice(body, node, each)
            continue
        guards[node.name] = frozenset[Guard]().union(*each, *by_control)
        if node.op in (*SWITCHES, _SWITCH_N):
            changed[node.name] = replace(node, op=PASS)
        elif guards[node.name] and node.op.startswith(_EFFECTS):
            changed[node.name] = replace(node, op=CONDITIONAL)
    return replace(body, nodes=changed)


def _of_edge(body: Body, edge: Edge, guards: dict[str, Guards]) -> Guards:
    """Under which conditions a value is there."""
    node = body.nodes.get(edge.node)
    found = guards.get(edge.node, frozenset[Guard]())
    if node is None or node.op not in (*SWITCHES, _SWITCH_N):
        return found
    return found | {Guard(_plain(body, node.inputs[1]), edge.index)}


def _plain(body: Body, edge: Edge) -> Edge:
    """The value that an edge carries, without Identity and Switch on the way."""
    while (node := body.nodes.get(edge.node)) is not None and node.op in ("Identity", *SWITCHES) and node.inputs:
        edge = node.inputs[0]
    return edge


def _choice(body: Body, merge: Node, each: list[Guards]) -> tuple[Node, Guards]:
    """The node that chooses among a Merge's inputs, and the conditions that stay."""
    conditions = [{g.condition: g.branch for g in guards} for guards in each]
    for condition in conditions[0]:
        branches = [c.get(condition, -1) for c in conditions]
        if sorted(branches) == list(range(len(branches))):
            values = tuple(merge.inputs[branches.index(k)] for k in range(len(branches)))
            kept = frozenset(g for g in frozenset[Guard]().union(*each) if g.condition != condition)
            return replace(merge, op=CHOOSE, inputs=(condition, *values)), kept
    raise ModelFormatError(f"{merge.name} merges values that no one condition tells apart")
