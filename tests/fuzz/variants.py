"""The same function as another model: what a compiler must not notice."""

import dataclasses
import random
from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, helper, numpy_helper

from tests.fuzz.graph import Case

_DECIDED = ("QuantizeLinear", "DequantizeLinear", "Resize", "Upsample", "Range")
"""Operators whose float operands decide shapes, or that onnxruntime and we read while compiling."""


def identities(case: Case, source: random.Random) -> Case:
    """An Identity before every input of every node."""
    model = _copy(case)
    nodes = []
    for k, node in enumerate(case.model.graph.node):
        new = type(node)()
        new.CopyFrom(node)
        for i, name in enumerate(node.input):
            if name:
                nodes.append(helper.make_node("Identity", [name], [f"id{k}_{i}"]))
                new.input[i] = f"id{k}_{i}"
        nodes.append(new)
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return dataclasses.replace(case, model=model)


def constants_as_inputs(case: Case, source: random.Random) -> Case:
    """Float initializers become inputs."""
    model, feeds = _copy(case), dict(case.feeds)
    kept = []
    for weight in case.model.graph.initializer:
        array = numpy_helper.to_array(weight)
        if array.dtype.kind != "f" or any(_needs_constants(node, weight.name) for node in case.model.graph.node):
            kept.append(weight)
            continue
        feeds[weight.name] = array
        model.graph.input.append(helper.make_tensor_value_info(weight.name, weight.data_type, array.shape))
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)
    return dataclasses.replace(case, model=model, feeds=feeds)


def inputs_as_constants(case: Case, source: random.Random) -> Case:
    """Every input becomes an initializer: all of it may be folded."""
    model = _copy(case)
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(a), name) for name, a in case.feeds.items())
    del model.graph.input[:]
    return dataclasses.replace(case, model=model, feeds={})


def transpose_pairs(case: Case, source: random.Random) -> Case:
    """Every output is transposed and transposed back."""
    model = _copy(case)
    for k, output in enumerate(model.graph.output):
        orders: list[dict[str, Any]] = [{}, {}]
        rank = len(output.type.tensor_type.shape.dim)
        order = source.sample(range(rank), rank)
        if rank:
            orders = [{"perm": order}, {"perm": [order.index(a) for a in range(rank)]}]
        model.graph.node.append(helper.make_node("Transpose", [output.name], [f"t{k}"], **orders[0]))
        model.graph.node.append(helper.make_node("Transpose", [f"t{k}"], [f"u{k}"], **orders[1]))
    tolerances = {f"u{k}": case.tolerances[o.name] for k, o in enumerate(case.model.graph.output)}
    for k, output in enumerate(model.graph.output):
        output.name = f"u{k}"
    return dataclasses.replace(case, model=model, tolerances=tolerances)


def concatenated(case: Case, source: random.Random) -> Case:
    """Every output is joined with itself and cut out again."""
    model = _copy(case)
    tolerances = {}
    for k, output in enumerate(model.graph.output):
        rank = len(output.type.tensor_type.shape.dim)
        name = output.name
        if rank:
            axis = source.randrange(rank)
            n = output.type.tensor_type.shape.dim[axis].dim_value
            whole, parts = f"whole{k}", [f"part{k}", f"rest{k}"]
            model.graph.node.append(helper.make_node("Concat", [name, name], [whole], axis=axis))
            model.graph.node.append(_split(model, whole, parts, axis, n))
            output.name = parts[source.randrange(2)]
        tolerances[output.name] = case.tolerances[name]
    return dataclasses.replace(case, model=model, tolerances=tolerances)


def more_outputs(case: Case, source: random.Random) -> Case:
    """Values inside the model are outputs too: nothing may be fused away or overwritten. They come last."""
    model = _copy(case)
    known = {o.name for o in model.graph.output}
    for node in case.model.graph.node:
        for name in node.output:
            if name in case.tolerances and name not in known and source.random() < 0.5:
                model.graph.output.append(helper.make_empty_tensor_value_info(name))
    return dataclasses.replace(case, model=model)


def open_shapes(case: Case, source: random.Random) -> Case:
    """No dimension of an input is known before the first run."""
    model = _copy(case)
    for k, taken in enumerate(model.graph.input):
        for axis, dimension in enumerate(taken.type.tensor_type.shape.dim):
            dimension.dim_param = f"d{k}_{axis}"
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    return dataclasses.replace(case, model=model)


def _split(model: ModelProto, whole: str, parts: list[str], axis: int, size: int) -> NodeProto:
    opset = next(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))
    if opset < 13:
        return helper.make_node("Split", [whole], parts, axis=axis, split=[size, size])
    name = f"{whole}_sizes"
    model.graph.initializer.append(numpy_helper.from_array(np.array([size, size], np.int64), name))
    return helper.make_node("Split", [whole, name], parts, axis=axis)


def _needs_constants(node: NodeProto, name: str) -> bool:
    inside = (n for attribute in node.attribute for n in attribute.g.node)
    return name in node.input and node.op_type in _DECIDED or any(_needs_constants(n, name) for n in inside)


def _copy(case: Case) -> ModelProto:
    model = ModelProto()
    model.CopyFrom(case.model)
    return model


VARIANTS: dict[str, Callable[[Case, random.Random], Case]] = {
    f.__name__: f
    for f in (
        identities,
        constants_as_inputs,
        inputs_as_constants,
        transpose_pairs,
        concatenated,
        more_outputs,
        open_shapes,
    )
}
