"""TensorFlow 1's loops as While over functions, so that one rule imports both.

A loop is a frame: Enter brings values in, Merge takes the first or the next one, LoopCond says whether to go on, Switch
sends a value on to the body or to Exit, NextIteration sends it back. Frames are taken apart from the inside out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from onnxla.errors import ModelFormatError
from onnxla.frontends.tensorflow.graph import Argument, Body, Edge, Node
from onnxla.frontends.tensorflow.messages import AttrValue

ENTERS, MERGES, SWITCHES = ("Enter", "RefEnter"), ("Merge", "RefMerge"), ("Switch", "RefSwitch")
EXITS, NEXT_ITERATIONS = ("Exit", "RefExit"), ("NextIteration", "RefNextIteration")


@dataclass(frozen=True)
class Variable:
    """A value that each iteration replaces."""

    enter: Node
    merge: Node
    next_iteration: Node
    switch: Node | None
    """None where neither the body nor anything behind the loop reads it."""


@dataclass(frozen=True)
class Frame:
    """One loop."""

    name: str
    variables: list[Variable]
    constants: list[Node]
    """Enter nodes whose values stay the same."""
    condition: Edge
    inside: set[str]
    """The names of all nodes that belong to it."""


def with_functional_loops(body: Body) -> tuple[Body, dict[str, Body]]:
    """The body with a While node for each loop, and the functions that those call.

    Raises ModelFormatError for a loop that does not have the form that TensorFlow makes.
    """
    functions: dict[str, Body] = {}
    body = replace(body, nodes=dict(body.nodes))
    while True:
        names = _frame_names(body)
        if not names:
            return body, functions
        readers = _readers(body)
        innermost = next((f for n in names if (f := _frame(body, n, readers, names)) is not None), None)
        if innermost is None:
            raise ModelFormatError(f"the loops {', '.join(names)} contain each other")
        _replace(body, innermost, functions)


def _frame_names(body: Body) -> dict[str, list[Node]]:
    found: dict[str, list[Node]] = {}
    for node in body.nodes.values():
        if node.op in ENTERS:
            found.setdefault(node.attributes["frame_name"].s.decode(errors="backslashreplace"), []).append(node)
    return found


def _readers(body: Body) -> dict[str, list[Node]]:
    """The nodes that wait for each node."""
    found: dict[str, list[Node]] = {}
    for node in body.nodes.values():
        for name in {*(e.node for e in node.inputs), *node.controls}:
            found.setdefault(name, []).append(node)
    return found


def _frame(body: Body, name: str, readers: Mapping[str, list[Node]], frames: Mapping[str, list[Node]]) -> Frame | None:
    """The loop of a name; None while there is another one inside of it."""
    variables, constants = [], []
    for enter in frames[name]:
        merge = next((n for n in readers.get(enter.name, []) if n.op in MERGES), None)
        if merge is None:
            constants.append(enter)
            continue
        other = next((body.nodes[e.node] for e in merge.inputs if e.node != enter.name), None)
        if other is None or other.op not in NEXT_ITERATIONS:
            raise ModelFormatError(f"{merge.name} of the loop {name} does not merge with a next iteration")
        switch = next((n for n in readers.get(merge.name, []) if _is_switch_of(n, merge)), None)
        variables.append(Variable(enter, merge, other, switch))
    tests = {v.switch.inputs[1].node for v in variables if v.switch is not None}
    if len(tests) != 1 or (test := body.nodes[tests.pop()]).op != "LoopCond":
        raise ModelFormatError(f"the loop {name} has no condition")
    inside = _inside(body, [*frames[name]], variables, readers)
    if any(body.nodes[n].op in ENTERS and body.nodes[n] not in frames[name] for n in inside):
        return None
    return Frame(name, variables, constants, test.inputs[0], inside)


def _is_switch_of(node: Node, merge: Node) -> bool:
    return node.op in SWITCHES and node.inputs[0].node == merge.name


def _inside(body: Body, enters: list[Node], variables: list[Variable], readers: Mapping[str, list[Node]]) -> set[str]:
    """Everything that depends on the frame's Enter nodes, up to its own exits."""
    switches = {v.switch.name for v in variables if v.switch is not None}
    found = {e.name for e in enters}
    queue = list(found)
    while queue:
        for node in readers.get(queue.pop(), []):
            own_exit = node.op in EXITS and node.inputs[0].node in switches
            if node.name not in found and not own_exit:
                found.add(node.name)
                queue.append(node.name)
    return found


def _replace(body: Body, frame: Frame, functions: dict[str, Body]) -> None:
    """Put a While node into `body` in the place of a frame."""
    base = f"{frame.name}/while"
    while base in body.nodes or f"{base}/cond" in functions:
        base += "_"
    arguments = {v.merge.name: Edge(f"variable_{k}") for k, v in enumerate(frame.variables)}
    arguments |= {e.name: Edge(f"constant_{k}") for k, e in enumerate(frame.constants)}
    passed = [arguments[e.name] for e in frame.constants]
    condition = _function(body, f"{base}/cond", arguments, [frame.condition])
    in_body = dict(arguments)
    for v in frame.variables:
        if v.switch is not None:
            in_body[v.switch.name] = arguments[v.merge.name]
    next_values = [v.next_iteration.inputs[0] for v in frame.variables]
    functions[condition.name] = condition
    functions[f"{base}/body"] = loop = _function(body, f"{base}/body", in_body, next_values)
    loop.results += passed
    enters = [*(v.enter for v in frame.variables), *frame.constants]
    place = min(body.nodes[e.name].index for e in enters)
    body.nodes[base] = Node(
        base,
        "While",
        tuple(e.inputs[0] for e in enters),
        tuple(dict.fromkeys(c for e in enters for c in e.controls)),
        {key: AttrValue(func={"name": f"{base}/{key}"}) for key in ("cond", "body")},
        place,
    )
    position = {v.switch.name: k for k, v in enumerate(frame.variables) if v.switch is not None}
    for node in list(body.nodes.values()):
        if node.op in EXITS and node.inputs[0].node in position:
            edge = Edge(base, position[node.inputs[0].node])
            body.nodes[node.name] = replace(node, op="Identity", inputs=(edge,), controls=())
    for name in frame.inside:
        del body.nodes[name]


def _function(body: Body, name: str, arguments: Mapping[str, Edge], results: list[Edge]) -> Body:
    """The nodes that `results` need, up to the nodes that arguments stand for."""
    nodes: dict[str, Node] = {}
    stack = [e.node for e in results]
    while stack:
        current = stack.pop()
        if current in arguments or current in nodes:
            continue
        node = body.nodes[current]
        if node.op in NEXT_ITERATIONS:
            raise ModelFormatError(f"{current} is read outside of its place in the loop")
        inputs = tuple(arguments.get(e.node, e) for e in node.inputs)
        controls = tuple(c for c in node.controls if c not in arguments)
        nodes[current] = replace(node, inputs=inputs, controls=controls)
        stack += [e.node for e in node.inputs]
        stack += controls
    ordered = dict(sorted(nodes.items(), key=lambda item: item[1].index))
    names = dict.fromkeys(edge.node for edge in arguments.values())
    return Body(name, ordered, [Argument(n) for n in names], [arguments.get(e.node, e) for e in results])
