"""A graph or a function's body as nodes with edges, whatever message it came from.

Both name a value `node:...`: a graph numbers all outputs of a node (`split:1`), a function numbers those of one output
argument (`split:output:1`), and its own arguments go by their bare name.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from onnxla.errors import ModelFormatError

CHECKS = ("Assert", "Print", "PrintV2", "CheckNumerics")
MISSING = "onnxla.Missing"
MOST_FAULTS = 50


@dataclass(frozen=True)
class Edge:
    """One value: output `index` of a node, or of its output argument where `argument` names one."""

    node: str
    index: int = 0
    argument: str = ""

    def __str__(self) -> str:
        return ":".join([self.node, *([self.argument] if self.argument else []), str(self.index)])


@dataclass(frozen=True)
class Node:
    """One operation."""

    name: str
    op: str
    inputs: tuple[Edge, ...]
    controls: tuple[str, ...]
    """Nodes that must have run before."""
    attributes: Mapping[str, Any]
    """AttrValue by name."""
    index: int
    """Position in the graph or function it stands in."""


@dataclass(frozen=True)
class Argument:
    """An argument of a function, by the name that edges use."""

    name: str


@dataclass
class Body:
    """Nodes by name, with what goes in and what comes out."""

    name: str
    nodes: dict[str, Node]
    arguments: list[Argument] = field(default_factory=list)
    results: list[Edge] = field(default_factory=list)
    control_results: list[str] = field(default_factory=list)
    """Nodes that run although nobody reads them: those with effects."""
    faults: list[str] = field(default_factory=list)
    """What nodes read that is not there. Nodes of the operation MISSING stand for it: the rest can be looked at."""

    def edges_from(self, node: Node) -> Iterable[str]:
        """The names of the nodes that `node` waits for; arguments are no nodes, and nobody waits for a check."""
        yield from (e.node for e in node.inputs if e.node in self.nodes)
        yield from (name for name in node.controls if not self.is_check(name))

    def is_check(self, name: str) -> bool:
        """Whether the node only looks at values, and so is left out."""
        return name not in self.nodes or self.nodes[name].op in CHECKS


def parse_edge(text: str) -> Edge:
    """`x`, `x:1` or `x:output:1`. Raises ModelFormatError."""
    parts = text.split(":")
    if len(parts) > 3 or (len(parts) > 1 and not parts[-1].isdecimal()):
        raise ModelFormatError(f"{text!r} is no name of a value")
    return Edge(parts[0], int(parts[-1]) if len(parts) > 1 else 0, parts[1] if len(parts) == 3 else "")


def body_of_graph(name: str, nodes: Sequence[Any]) -> Body:
    """A GraphDef's nodes. Raises ModelFormatError for names that are there twice; those that are not are `faults`."""
    broken: list[str] = []
    return _checked(Body(name, _nodes(nodes, broken)), broken)


def body_of_function(function: Any) -> Body:
    """A FunctionDef. Raises ModelFormatError where it contradicts itself."""
    signature = function.signature
    lists = [a.name for a in (*signature.input_arg, *signature.output_arg) if a.number_attr or a.type_list_attr]
    if lists:
        raise ModelFormatError(f"the function {signature.name} has arguments that are lists: {', '.join(lists)}")
    missing = [a.name for a in signature.output_arg if a.name not in function.ret]
    if missing:
        raise ModelFormatError(f"the function {signature.name} does not say what it returns as {', '.join(missing)}")
    broken: list[str] = []
    body = Body(
        signature.name,
        _nodes(function.node_def, broken),
        [Argument(a.name) for a in signature.input_arg],
        [parse_edge(function.ret[a.name]) for a in signature.output_arg],
        sorted(function.control_ret.values()),
    )
    return _checked(body, broken)


_FEWEST_INPUTS = {
    **dict.fromkeys(("Switch", "RefSwitch", "_SwitchN"), 2),
    **dict.fromkeys(("Merge", "RefMerge", "Enter", "RefEnter", "Exit", "RefExit", "LoopCond"), 1),
    **dict.fromkeys(("NextIteration", "RefNextIteration"), 1),
}
"""Of operations that say what a graph's structure is; rules check those of others."""


def _nodes(protos: Sequence[Any], broken: list[str]) -> dict[str, Node]:
    nodes: dict[str, Node] = {}
    for index, proto in enumerate(protos):
        if proto.name in nodes:
            broken.append(f"two nodes are called {proto.name}")
            continue
        inputs: list[Edge] = []
        for text in proto.input:
            try:
                inputs += [] if text.startswith("^") else [parse_edge(text)]
            except ModelFormatError as error:
                broken.append(f"{proto.name} ({proto.op}): {error}")
        controls = tuple(text[1:] for text in proto.input if text.startswith("^"))
        if len(inputs) < (fewest := _FEWEST_INPUTS.get(proto.op, 0)):
            broken.append(f"{proto.name} ({proto.op}) has {len(inputs)} inputs, and needs {fewest}")
        nodes[proto.name] = Node(proto.name, proto.op, tuple(inputs), controls, proto.attr, index)
    return nodes


def _checked(body: Body, broken: list[str]) -> Body:
    known = {a.name for a in body.arguments} | set(body.nodes)
    for node in list(body.nodes.values()):
        for name in (*(e.node for e in node.inputs), *node.controls):
            if name not in known:
                body.faults.append(f"{node.name} reads from {name}, which {body.name} does not have")
                body.nodes[name] = Node(name, MISSING, (), (), {}, len(body.nodes))
    if broken:
        raise ModelFormatError("\n  ".join([*broken, *body.faults][:MOST_FAULTS]))
    return body


def ordered(body: Body, wanted: Iterable[str]) -> list[Node]:
    """The nodes that `wanted` need, each after those it waits for, else in the body's order.

    Raises ModelFormatError for a cycle.
    """
    done: dict[str, bool] = {}
    order: list[Node] = []
    for start in sorted({w for w in wanted if not body.is_check(w)}, key=lambda w: body.nodes[w].index):
        stack = [(start, False)]
        while stack:
            name, expanded = stack.pop()
            if expanded:
                done[name] = True
                order.append(body.nodes[name])
                continue
            if name in done:
                continue
            done[name] = False
            stack.append((name, True))
            before = sorted(set(body.edges_from(body.nodes[name])), key=lambda n: -body.nodes[n].index)
            for other in before:
                if other not in done:
                    stack.append((other, False))
                elif not done[other]:
                    raise ModelFormatError(f"{other} waits for itself: the graph has a cycle that is no loop")
    return order
