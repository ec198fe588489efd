"""What makes a graph a graph: every name made once, before it is read; no cycles; bounded nesting.

Checked for the whole model before a node is imported, so that the importer may rely on it.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto

from onnxla.errors import ModelFormatError
from onnxla.frontends.onnx.model_file import OnnxModel
from onnxla.frontends.onnx.operator_names import normal_domain

FunctionKey: TypeAlias = tuple[str, str, str]
"""Domain, name and overload of a model-local function."""

MOST_FAULTS = 50


def functions_of(model: OnnxModel) -> dict[FunctionKey, FunctionProto]:
    """The model-local functions by key. Raises ModelFormatError where two share one."""
    found: dict[FunctionKey, FunctionProto] = {}
    for function in model.proto.functions:
        key = (normal_domain(function.domain), function.name, function.overload)
        if key in found:
            raise ModelFormatError(f"two functions are named {function.domain}.{function.name}")
        found[key] = function
    return found


def check_structure(model: OnnxModel) -> None:
    """Raise one ModelFormatError for all structural faults of the graph, its subgraphs and functions."""
    faults = list(_graph_faults(model.proto.graph, frozenset(), "the graph"))
    for function in model.proto.functions:
        where = f"function {function.name}"
        faults += _node_faults(function.node, set(function.input), function.output, where)
    if faults:
        more = f"\n  and {len(faults) - MOST_FAULTS} more" if len(faults) > MOST_FAULTS else ""
        raise ModelFormatError(f"{model.name} is not a valid model\n  " + "\n  ".join(faults[:MOST_FAULTS]) + more)


def _graph_faults(graph: GraphProto, outer: Iterable[str], where: str) -> Iterator[str]:
    inputs = [i.name for i in graph.input]
    yield from (f"two inputs of {where} are named {name!r}" for name in _repeated(inputs))
    known = {*outer, *inputs, *(t.name for t in graph.initializer), *(t.values.name for t in graph.sparse_initializer)}
    if "" in inputs:
        yield f"an input of {where} has no name"
    yield from _node_faults(graph.node, known, [o.name for o in graph.output], where)


def _node_faults(nodes: Sequence[NodeProto], known: set[str], outputs: Iterable[str], where: str) -> Iterator[str]:
    made = [name for node in nodes for name in node.output if name]
    yield from (f"two nodes of {where} make {name!r}" for name in _repeated(made))
    visible = known | set(made)
    for i, node in enumerate(nodes):
        label = node_name(node, i)
        for name in node.input:
            if name and name not in visible:
                yield f"node {label} ({node.op_type}) of {where} reads {name!r}, which nothing makes"
        for attribute, subgraph in subgraphs(node):
            yield from _graph_faults(subgraph, visible, f"{attribute} of {label}")
    yield from (f"{where} gives {name!r}, which nothing makes" for name in outputs if name not in visible)
    try:
        in_order(nodes)
    except ModelFormatError as error:
        yield f"{error} in {where}"


def _repeated(names: Iterable[str]) -> list[str]:
    seen: set[str] = set()
    return list(dict.fromkeys(n for n in names if n in seen or seen.add(n)))  # type: ignore[func-returns-value]


def node_name(node: NodeProto, index: int) -> str:
    """The node's own name, or one made from its first output, or its position."""
    return node.name or next((f"{node.op_type}:{name}" for name in node.output if name), f"{node.op_type}:{index}")


def subgraphs(node: NodeProto) -> Iterator[tuple[str, GraphProto]]:
    """The subgraph attributes of a node with their names."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.name, attribute.g
        for i, graph in enumerate(attribute.graphs if attribute.type == AttributeProto.GRAPHS else ()):
            yield f"{attribute.name}[{i}]", graph


def free_names(graph: GraphProto) -> list[str]:
    """The names that a subgraph reads and does not make: values of the graph around it. Each once, in order."""
    own = {i.name for i in graph.input} | {t.name for t in graph.initializer}
    own |= {t.values.name for t in graph.sparse_initializer} | {name for node in graph.node for name in node.output}
    free: dict[str, None] = {}
    for node in graph.node:
        free.update(dict.fromkeys(name for name in _read_by(node) if name not in own))
    free.update(dict.fromkeys(o.name for o in graph.output if o.name not in own))
    return list(free)


def _read_by(node: NodeProto) -> Iterator[str]:
    """The names of its own graph that a node reads, through its subgraphs too, and what a Gradient derives."""
    yield from (name for name in node.input if name)
    if node.op_type == "Gradient":
        yield from (a.s.decode(errors="replace") for a in node.attribute if a.name == "y" and a.s)
    for _, subgraph in subgraphs(node):
        yield from free_names(subgraph)


def live_nodes(nodes: Sequence[tuple[int, NodeProto]], outputs: Iterable[str]) -> list[tuple[int, NodeProto]]:
    """The nodes, in order, that some name in `outputs` needs."""
    needed = set(outputs)
    live: list[tuple[int, NodeProto]] = []
    for index, node in reversed(nodes):
        if any(name in needed for name in node.output if name):
            live.append((index, node))
            needed.update(_read_by(node))
    return live[::-1]


def in_order(nodes: Sequence[NodeProto]) -> list[tuple[int, NodeProto]]:
    """The nodes with their positions, every one after those it reads from; stable where that holds already.

    Raises ModelFormatError naming the nodes of a cycle.
    """
    maker = {name: i for i, node in enumerate(nodes) for name in node.output if name}
    needs = [sorted({maker[name] for name in _read_by(node) if name in maker}) for node in nodes]
    if all(not n or n[-1] < i for i, n in enumerate(needs)):
        return list(enumerate(nodes))
    order: list[int] = []
    state = [0] * len(nodes)  # 0 new, 1 on the path, 2 placed
    for root in range(len(nodes)):
        path = [(root, 0)]
        while path:
            i, next_need = path.pop()
            if state[i] == 2:
                continue
            state[i] = 1
            if next_need < len(needs[i]):
                need = needs[i][next_need]
                path += [(i, next_need + 1), (need, 0)]
                if state[need] == 1:
                    cycle = [node_name(nodes[j], j) for j, _ in path[[j for j, _ in path].index(need) : -1]]
                    raise ModelFormatError(f"the nodes {', '.join(cycle[:10])} form a cycle")
            else:
                state[i] = 2
                order.append(i)
    return [(i, nodes[i]) for i in order]
