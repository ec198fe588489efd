"""Bodies of branches, loops and functions that are random graphs themselves.

A body grows like a model. What it makes of the value it is given goes out: over all trips of a loop, or as the results
of a function. Its own inputs are captured from outside, or handed to the function.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from onnx import NodeProto, helper

from tests.fuzz.graph import Graph, Skip, Value, domains_of, info, rounded

Table = Mapping[Callable[[Graph], None], float]
_TABLE: dict[Callable[[Graph], None], float] = {}
"""The steps that bodies take; filled when all are known, as bodies may have bodies."""


def allow_in_bodies(steps: Table) -> None:
    _TABLE.update(steps)


def _grown(g: Graph, start: Value, letter: str) -> Graph:
    """A body that has taken one to three steps from a value of its own."""
    if g.depth >= 2:
        raise Skip("deep enough")
    body = Graph(g.random, g.opset, prefix=f"{g.prefix}{letter}{len(g.nodes)}_", depth=g.depth + 1)
    body.functions = g.functions
    body.values.append(start)
    steps, weights = list(_TABLE), list(_TABLE.values())
    for _ in range(g.random.randint(1, 3)):
        with body.step():
            g.random.choices(steps, weights)[0](body)
    if any(v.size > 5000 for v in body.values):
        raise Skip("too much for a loop")
    return body


def _adopt(g: Graph, body: Graph) -> None:
    """What the body reads from outside is the model's."""
    for name, array in body.inputs.items():
        g.inputs[name] = array
        g.values.append(next(v for v in body.values if v.name == name))
    g.initializers.update(body.initializers)


def _like(body: Graph, x: Value) -> Value:
    """A result of the body with x's type; one more node makes it one of its own."""
    found = [v for v in body.outputs.values() if v.dtype == x.dtype and v.shape == x.shape and v.bound < 100]
    return body.node("Tanh", [body.random.choice(found) if found else x], rounded(x, bound=1, error=0.01))


def branch(g: Graph) -> None:
    x = g.pick(("float32",), rank=(1, 3))
    condition = g.hold(np.array(g.chance(0.5)), constant=g.chance(0.2))
    bodies, bound = [], 1.0
    for letter in "te":
        body = _grown(g, x, letter)
        out = _like(body, x)
        _adopt(g, body)
        bodies.append(helper.make_graph(body.nodes, letter, [], [info(out)]))
    result = replace(x, bound=bound, error=0.02)
    g.node("If", [condition], result, then_branch=bodies[0], else_branch=bodies[1])


def loop(g: Graph) -> None:
    """The state goes through the body and a Tanh; other results are collected."""
    x = g.pick(("float32",), rank=(1, 3))
    trips = g.random.randint(0, 4)
    tag = f"{g.prefix}{len(g.nodes)}"
    state = replace(x, name=f"s{tag}", error=0.01)
    body = _grown(g, state, "l")
    carry = _like(body, state)
    used = {name for node in body.nodes for name in node.input}
    collected = [v for v in body.outputs.values() if v.name not in used and v is not carry][:3]
    _adopt(g, body)
    trip, going = Value(f"i{tag}", "int64", ()), Value(f"c{tag}", "bool", ())
    still = replace(going, name=f"co{tag}")
    nodes: list[NodeProto] = [*body.nodes, helper.make_node("Identity", [going.name], [still.name])]
    outputs = [info(v) for v in (still, carry, *collected)]
    graph = helper.make_graph(nodes, "body", [info(v) for v in (trip, going, state)], outputs)
    count = g.hold(np.array(trips, np.int64))
    results = [replace(carry, bound=max(x.bound, 1), error=0.02)]
    results += [replace(v, shape=(trips, *v.shape)) for v in collected]
    g.node("Loop", [count, None, x], *results, body=graph)


def scan(g: Graph) -> None:
    """A body for each slice along the first dimension; it may capture anything."""
    x = g.pick(("float32",), rank=(2, 3))
    n = x.shape[0]
    if not n:
        raise Skip("nothing to scan")
    tag = f"{g.prefix}{len(g.nodes)}"
    piece = replace(x, name=f"e{tag}", shape=x.shape[1:])
    body = _grown(g, piece, "s")
    carry = _like(body, piece)
    used = {name for node in body.nodes for name in node.input}
    collected = [v for v in body.outputs.values() if v.name not in used and v is not carry][:2]
    _adopt(g, body)
    state = Value(f"z{tag}", "float32", piece.shape)
    after = replace(state, name=f"za{tag}")
    nodes = [*body.nodes, helper.make_node("Add", [state.name, carry.name], [after.name])]
    graph = helper.make_graph(nodes, "body", [info(state), info(piece)], [info(v) for v in (after, *collected)])
    first = g.leaf("float32", piece.shape)
    results = [replace(state, bound=2.0 + n, error=0.02 * n)]
    results += [replace(v, shape=(n, *v.shape)) for v in collected]
    g.node("Scan", [first, x], *results, body=graph, num_scan_inputs=1)


def function(g: Graph) -> None:
    """A function whose operands are all that its body reads."""
    x = g.pick(("float32",), rank=(1, 3))
    start = replace(x, name="x")
    body = _grown(g, start, "f")
    used = {name for node in body.nodes for name in node.input}
    results = [v for v in body.outputs.values() if v.name not in used][:3]
    if not results or domains_of(body.nodes):
        raise Skip("nothing comes out")
    _adopt(g, body)
    operands = [x, *(Value(name, str(a.dtype), a.shape) for name, a in (body.inputs | body.initializers).items())]
    name = f"grown{len(g.functions)}"
    names = [v.name for v in results]
    parameters = ["x", *(v.name for v in operands[1:])]
    imports = [helper.make_opsetid("", g.opset)]
    g.functions.append(helper.make_function("own", name, parameters, names, body.nodes, imports))
    g.node(name, operands, *results, domain="own")


STEPS: dict[Callable[[Graph], None], float] = {branch: 2, loop: 2, scan: 1.5, function: 1}
SPECIAL = ()
