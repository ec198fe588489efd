"""A smaller model that still fails: the search of `onnxla debug`, with the interpreter's values around each part."""

import dataclasses
from collections.abc import Callable

import numpy as np
from onnx import helper

from onnxla.debugging.budget import Budget
from onnxla.debugging.model_part import ModelGraph, Part
from onnxla.debugging.smallest_part import smallest_part
from onnxla.frontends.onnx.importer import import_model
from onnxla.frontends.onnx.model_file import read_model
from tests.fuzz.graph import Array, Case

Fails = Callable[[Case], bool]
_SECONDS = 300


def shrink(case: Case, fails: Fails) -> Case:
    """The smallest part of a case that fails; the case itself where none does."""
    graph = ModelGraph(read_model(case.model))
    values = _values(case, list(graph.maker))

    def part_of(part: Part) -> Case | None:
        """Its tolerances are the case's largest for what was no output."""
        cut = graph.cut_values(part)
        if not {*cut, *part.outputs} <= values.keys():
            return None
        feeds = {name: values[name] for name in cut if name not in graph.known(cut)}
        largest = max(case.tolerances.values(), default=0.0)
        return dataclasses.replace(
            case,
            model=graph.extract(part, values, values).proto,
            feeds=feeds,
            tolerances={name: case.tolerances.get(name, largest) for name in part.outputs},
            expected={name: array for name, array in case.expected.items() if name in part.outputs},
        )

    def shows(part: Part) -> bool:
        smaller = part_of(part)
        return smaller is not None and fails(smaller)

    whole = graph.whole()
    found = smallest_part(graph, whole, shows, Budget(_SECONDS))
    return case if found == whole else part_of(found) or case


def _values(case: Case, names: list[str]) -> dict[str, Array]:
    """The inputs, and what the interpreter computes for values inside the model: those that are tensors."""
    values = dict(case.feeds)
    feeds = [case.feeds[i.name] for i in case.model.graph.input]
    for name in names:
        model = type(case.model)()
        model.CopyFrom(case.model)
        del model.graph.output[:]
        model.graph.output.append(helper.make_empty_tensor_value_info(name))
        try:
            with np.errstate(all="ignore"):
                (values[name],) = import_model(model).module.entry.evaluate(*feeds)
        except Exception:  # no tensor, or what fails
            continue
    return values
