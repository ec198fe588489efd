"""Inputs of strings whose only use is to be looked up: code takes their places in a list of all that is looked for.

A model tells strings apart by what its encoders and vectorizers look for, and by nothing else. So the list of that,
and one place for every other string, stand for the strings of an input; what would need the strings themselves makes
the model wait for their values instead.
"""

from collections.abc import Iterator, Sequence

from onnx import NodeProto

from onnxla.frontends.onnx.model_file import OnnxModel
from onnxla.frontends.onnx.structure import subgraphs
from onnxla.frontends.onnx.values import ChosenStrings
from onnxla.hlo.module import Instruction

_KEYS = ("keys_strings", "keys_tensor", "classes_strings", "cats_strings", "pool_strings")
"""The attributes, of ai.onnx.ml and TfIdfVectorizer, that strings are looked up in."""


def vocabulary(model: OnnxModel) -> tuple[str, ...]:
    """The strings that some encoder of the model looks for, each once, in order."""
    graphs: list[Sequence[NodeProto]] = [model.proto.graph.node, *(f.node for f in model.proto.functions)]
    found = {text for nodes in graphs for node in nodes for text in _keys_of(node)}
    return tuple(sorted(found))


def _keys_of(node: NodeProto) -> Iterator[str]:
    for attribute in node.attribute:
        if attribute.name in _KEYS:
            yield from (text.decode(errors="replace") for text in (*attribute.strings, *attribute.t.string_data))
    for _, graph in subgraphs(node):
        for inner in graph.node:
            yield from _keys_of(inner)


def strings_of_input(name: str, places: Instruction, words: Sequence[str]) -> ChosenStrings:
    """What an input of strings is, for the parameter that takes their places in `words`."""
    other = "\0"  # stands for every string that is not in the list
    while other in words:
        other += "\0"
    return ChosenStrings(places, (*words, other), name)
