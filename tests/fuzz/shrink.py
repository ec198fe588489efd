"""A smaller model that still fails."""

import dataclasses
from collections.abc import Callable

import numpy as np
from onnx import ModelProto, NodeProto, helper

from onnxla.frontends.onnx.importer import import_model
from tests.fuzz.graph import Array, Case

Fails = Callable[[Case], bool]


def shrink(case: Case, fails: Fails) -> Case:
    """The case with the first output that fails, and its nodes cut into inputs as long as it fails."""
    for node in list(case.model.graph.node):
        candidate = with_output(case, node.output[0])
        if candidate is not None and fails(candidate):
            case = candidate
            break
    for node in list(case.model.graph.node)[:-1]:
        smaller = without_node(case, node)
        if smaller is not None and fails(smaller):
            case = smaller
    return case


def with_output(case: Case, name: str) -> Case | None:
    """Only this value and what it needs. Its tolerance is the largest of the case, as it was not an output."""
    if not name:
        return None
    needed = {name}
    nodes: list[NodeProto] = []
    for node in reversed(case.model.graph.node):
        if needed & set(node.output):
            nodes.insert(0, node)
            needed |= _reads(node)
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
    expected = {k: v for k, v in case.expected.items() if k == name}
    return dataclasses.replace(case, model=model, feeds=feeds, tolerances={name: tolerance}, expected=expected)


def without_node(case: Case, node: NodeProto) -> Case | None:
    """The node's results as inputs."""
    try:
        values = _values(case, [name for name in node.output if name])
    except Exception:
        return None
    model = ModelProto()
    model.CopyFrom(case.model)
    kept = [n for n in model.graph.node if list(n.output) != list(node.output)]
    del model.graph.node[:]
    model.graph.node.extend(kept)
    for name, array in values.items():
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        model.graph.input.append(helper.make_tensor_value_info(name, kind, array.shape))
    smaller = dataclasses.replace(case, model=model, feeds={**case.feeds, **values})
    return with_output(smaller, model.graph.output[0].name) if len(model.graph.output) == 1 else smaller


def _values(case: Case, names: list[str]) -> dict[str, Array]:
    """What the interpreter computes for values inside the model."""
    model = ModelProto()
    model.CopyFrom(case.model)
    del model.graph.output[:]
    model.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in names)
    feeds = [case.feeds[i.name] for i in case.model.graph.input]
    with np.errstate(all="ignore"):
        return dict(zip(names, import_model(model).module.entry.evaluate(*feeds), strict=True))


def _reads(node: NodeProto) -> set[str]:
    """Names that a node or its bodies read."""
    names = set(node.input)
    for attribute in node.attribute:
        for inner in attribute.g.node:
            names |= _reads(inner)
    return names
