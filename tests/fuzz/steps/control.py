"""Branches, loops, scans, sequences and functions of the model."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from onnx import GraphProto, NodeProto, helper

from tests.fuzz.graph import Graph, Skip, Value, info, rounded

_KINDS = ("float32", "int32")


def _body(name: str, nodes: Sequence[NodeProto], inputs: Sequence[Value], outputs: Sequence[Value]) -> GraphProto:
    return helper.make_graph(list(nodes), name, [info(v) for v in inputs], [info(v) for v in outputs])


def _named(g: Graph, value: Value, name: str) -> Value:
    return replace(value, name=f"{g.prefix}{name}{len(g.nodes)}")


def branch(g: Graph) -> None:
    """If over captured values; the flag is a constant, an input or computed; a branch may have a branch."""
    x = g.pick(_KINDS, rank=(1, 3))
    condition = g.hold(np.array(g.chance(0.5)), constant=g.chance(0.3))
    if g.chance(0.3):
        condition = g.node("Not", [condition], condition)
    y = g.leaf(x.dtype, x.shape)
    bodies = []
    for k, op in enumerate(("Neg", "Sub")):
        inner, out = _named(g, x, f"b{k}_"), _named(g, x, f"o{k}_")
        operands = [x.name] if op == "Neg" else [x.name, y.name]
        nodes = [helper.make_node(op, operands, [inner.name]), helper.make_node("Abs", [inner.name], [out.name])]
        if k and g.chance(0.3):
            deep = [_named(g, x, f"d{i}_") for i in range(2)]
            arms = [
                _body(f"deep{i}", [helper.make_node(o, [inner.name], [d.name])], [], [d])
                for i, (o, d) in enumerate(zip(("Abs", "Neg"), deep, strict=True))
            ]
            nodes[1] = helper.make_node("If", [condition.name], [out.name], then_branch=arms[0], else_branch=arms[1])
        bodies.append(_body(op, nodes, [], [out]))
    result = rounded(x, bound=x.bound + y.bound, error=x.error + y.error)
    g.node("If", [condition], result, then_branch=bodies[0], else_branch=bodies[1])


def loop(g: Graph) -> None:
    """A sum carried through a loop, its steps collected; with a slice that depends on the trip, or an early end."""
    x = g.pick(_KINDS, rank=(0, 3))
    trips = g.random.randint(0, 4)
    kind = g.random.randrange(3)
    table = g.leaf(x.dtype, (max(trips, 1), *x.shape)) if kind == 1 else g.leaf(x.dtype, x.shape)
    i, c = _named(g, Value("", "int64", ()), "i"), _named(g, Value("", "bool", ()), "c")
    s, a, y, co = _named(g, x, "s"), _named(g, x, "a"), _named(g, x, "y"), _named(g, c, "co")
    nodes = []
    addend = table.name
    if kind == 1:
        addend = f"{g.prefix}row{len(g.nodes)}"
        nodes.append(helper.make_node("Gather", [table.name, i.name], [addend], axis=0))
    nodes += [helper.make_node("Add", [s.name, addend], [a.name]), helper.make_node("Neg", [a.name], [y.name])]
    if kind == 2:
        if not trips:
            raise Skip("the end is what is tested")
        end = g.hold(np.array(g.random.randint(1, 4), np.int64), constant=True)
        g.allow("Less", [i, i], [c], "", {})
        nodes.append(helper.make_node("Less", [i.name, end.name], [co.name]))
    else:
        nodes.append(helper.make_node("Identity", [c.name], [co.name]))
    last = rounded(x, bound=x.bound + trips * table.bound)
    count = g.hold(np.array(trips, np.int64), constant=g.chance(0.8) or kind != 2)
    if kind == 2:
        body = _body("body", nodes, [i, c, s], [co, a])
        g.node("Loop", [count, None, x], last, body=body)
    else:
        body = _body("body", nodes, [i, c, s], [co, a, y])
        g.node("Loop", [count, None, x], last, replace(last, shape=(trips, *x.shape)), body=body)


def scan(g: Graph) -> None:
    """A running sum over the first dimension or another, forwards or backwards."""
    x = g.pick(("float32",), rank=(1, 3))
    axis = g.random.randrange(x.rank)
    n = x.shape[axis]
    inner = tuple(d for k, d in enumerate(x.shape) if k != axis)
    if not n:
        raise Skip("nothing to scan")
    state = g.leaf("float32", inner)
    s, e = _named(g, replace(x, shape=inner), "s"), _named(g, replace(x, shape=inner), "e")
    a, y = _named(g, s, "a"), _named(g, s, "y")
    nodes = [helper.make_node("Add", [s.name, e.name], [a.name]), helper.make_node("Tanh", [a.name], [y.name])]
    result = rounded(x, bound=2 + n * x.bound, error=n * x.error)
    collected = rounded(x, shape=(n, *inner), bound=1, error=result.error)
    attributes: dict[str, Any] = {"scan_input_axes": [axis], "scan_input_directions": [g.random.randint(0, 1)]}
    body = _body("body", nodes, [s, e], [a, y])
    results = replace(result, shape=inner), collected
    g.node("Scan", [state, x], *results, body=body, num_scan_inputs=1, **attributes)


def sequence(g: Graph) -> None:
    """Values put in a sequence; one taken out, or all of them joined."""
    x = g.pick(("float32", "int32"), rank=(1, 3))
    others = [x, g.leaf(x.dtype, x.shape), g.leaf(x.dtype, x.shape)]
    g.allow("SequenceConstruct", others, (), "", {})
    name = f"{g.prefix}seq{len(g.nodes)}"
    g.nodes.append(helper.make_node("SequenceConstruct", [v.name for v in others], [name]))
    bound = max(v.bound for v in others)
    holder = Value(name, x.dtype, ())
    if g.chance(0.5):
        k = g.random.randint(-3, 2)
        _raw(g, "SequenceAt", [holder.name, g.hold(np.array(k, np.int64)).name], replace(x, bound=bound), {})
    else:
        axis = g.random.randrange(x.rank)
        shape = tuple(3 * n if k == axis else n for k, n in enumerate(x.shape))
        _raw(g, "ConcatFromSequence", [holder.name], replace(x, shape=shape, bound=bound), {"axis": axis})


def _raw(g: Graph, op: str, inputs: list[str], result: Value, attributes: dict[str, Any]) -> None:
    """A node whose inputs are no tensors."""
    name = f"{g.prefix}n{len(g.nodes)}_0"
    g.nodes.append(helper.make_node(op, inputs, [name], **attributes))
    g.values.append(replace(result, name=name))
    g.outputs[name] = g.values[-1]


def function(g: Graph) -> None:
    """A function of the model, called once or twice."""
    x = g.pick(("float32",), rank=(1, 3))
    name = f"f{len(g.functions)}"
    nodes = [helper.make_node("Tanh", ["x"], ["t"]), helper.make_node("Mul", ["t", "y"], ["z"])]
    imports = [helper.make_opsetid("", g.opset)]
    g.functions.append(helper.make_function("own", name, ["x", "y"], ["z"], nodes, imports))
    for _ in range(g.random.randint(1, 2)):
        y = g.leaf("float32", g.random.choice((x.shape, x.shape[-1:])))
        x = g.node(name, [x, y], rounded(x, bound=y.bound, error=x.error * max(y.bound, 1)), domain="own")


STEPS: dict[Callable[[Graph], None], float] = {branch: 1.5, loop: 1.5, scan: 1, sequence: 0.5, function: 0.7}
SPECIAL = ()
