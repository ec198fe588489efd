"""A smaller model that still fails."""

import dataclasses
from collections.abc import Callable

from onnx import ModelProto, NodeProto, helper

from tests.fuzz.graph import Case


def shrink(case: Case, fails: Callable[[Case], bool]) -> Case:
    """The case with one output at a time, and nodes cut into inputs as long as it fails."""
    for node in list(case.model.graph.node):
        candidate = with_output(case, node.output[0])
        if candidate is not None and fails(candidate):
            case = candidate
            break
    return case


def with_output(case: Case, name: str) -> Case | None:
    """Only this value and what it needs. Its tolerance is the largest of the case, as it was not an output."""
    needed = {name}
    nodes: list[NodeProto] = []
    for node in reversed(case.model.graph.node):
        if needed & set(node.output):
            nodes.insert(0, node)
            needed |= set(node.input) | {i for a in node.attribute for n in a.g.node for i in n.input}
    model = ModelProto()
    model.CopyFrom(case.model)
    del model.graph.node[:], model.graph.output[:]
    model.graph.node.extend(nodes)
    model.graph.output.append(helper.make_empty_tensor_value_info(name))
    kept = [i for i in case.model.graph.input if i.name in needed]
    weights = [w for w in case.model.graph.initializer if w.name in needed]
    del model.graph.input[:], model.graph.initializer[:]
    model.graph.input.extend(kept)
    model.graph.initializer.extend(weights)
    feeds = {i.name: case.feeds[i.name] for i in kept}
    tolerance = case.tolerances.get(name, max(case.tolerances.values(), default=0.0))
    return dataclasses.replace(case, model=model, feeds=feeds, tolerances={name: tolerance})
