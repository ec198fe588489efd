"""The variables of a SavedModel: which there are, and the key of each one's value in the checkpoint.

TensorFlow 2 pairs the objects of the SavedModel with those of the checkpoint by the names that lead to them, and a
function's captured inputs with objects by number. Older exports have a restore operation, which says the pairs.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from onnxla.errors import InputError, ModelFormatError
from onnxla.frontends.tensorflow.checkpoint import Checkpoint
from onnxla.frontends.tensorflow.element_types import element_of_code
from onnxla.frontends.tensorflow.graph import Body, Edge, Node
from onnxla.frontends.tensorflow.tensors import shape_of, tensor_array
from onnxla.hlo.types import Array

HANDLES = ("VarHandleOp", "VariableV2", "Variable")
_CALLS = ("StatefulPartitionedCall", "PartitionedCall")
_PASSED_ON = ("Identity", "Cast")


@dataclass(frozen=True)
class Variable:
    """A variable as the graph declares it."""

    name: str
    code: int
    """DataType number."""
    shape: tuple[int | None, ...] | None
    key: str | None = None
    """Where the checkpoint has its value; None where it has none."""


def variable_name(node: Node) -> str:
    """The name under which nodes share a variable."""
    shared = (
        node.attributes["shared_name"].s.decode(errors="backslashreplace") if "shared_name" in node.attributes else ""
    )
    return shared or node.name


def declared_variable(node: Node) -> Variable:
    """What a node that makes a variable says of it."""
    shape = shape_of(node.attributes["shape"].shape) if "shape" in node.attributes else None
    return Variable(variable_name(node), node.attributes["dtype"].type if "dtype" in node.attributes else 0, shape)


class Variables:
    """The variables of a model by name."""

    def __init__(
        self,
        found: Mapping[str, Variable],
        checkpoint: Checkpoint | None,
        values: Mapping[str, Array] | None = None,
    ) -> None:
        """`values` go before those of the checkpoint."""
        self._found = dict(found)
        self._values = dict(values or {})
        self._checkpoint = checkpoint

    def get(self, name: str) -> Variable | None:
        return self._found.get(name)

    def with_values(self, values: Mapping[str, Array]) -> "Variables":
        """The same variables with other values than the checkpoint's. Raises InputError for what does not fit."""
        problems = []
        for name, value in values.items():
            variable = self._found.get(name)
            if variable is None:
                problems.append(f"the model has no variable {name!r}; it has {', '.join(self._found) or 'none'}")
                continue
            shape, element = variable.shape, element_of_code(variable.code)
            fits = shape is None or (
                len(shape) == value.ndim and all(w in (None, n) for w, n in zip(shape, value.shape, strict=True))
            )
            if value.dtype != element.dtype or not fits:
                problems.append(f"{name}: {value.dtype}{list(value.shape)} does not fit the variable")
        if problems:
            raise InputError("\n".join(problems))
        return Variables(self._found, self._checkpoint, {**self._values, **values})

    def value(self, name: str) -> Array | None:
        """The value that was given, or the checkpoint's; None where there is none.

        Raises ModelFormatError for a damaged one.
        """
        if name in self._values:
            return self._values[name]
        variable = self._found.get(name)
        if variable is None or variable.key is None or self._checkpoint is None:
            return None
        return self._checkpoint.array(variable.key)


def declared_variables(body: Body, functions: Mapping[str, Body]) -> dict[str, Variable]:
    """The variables that the nodes of a graph make, by name."""
    found: dict[str, Variable] = {}
    for graph in (body, *functions.values()):
        for node in graph.nodes.values():
            if node.op in HANDLES:
                found.setdefault(variable_name(node), declared_variable(node))
    return found


def find_variables(meta_graph: Any, body: Body, functions: Mapping[str, Body], checkpoint: Checkpoint) -> Variables:
    """The variables of a SavedModel's graph, each with its key as far as it can be known."""
    found = declared_variables(body, functions)
    keys = dict(_restored(body, functions))
    objects = meta_graph.object_graph_def.nodes
    key_of_object = _keys_of_objects(objects, checkpoint.objects)
    names: dict[str, list[str]] = {}
    for number, key in key_of_object.items():
        names.setdefault(objects[number].variable.name, []).append(key)
    keys |= {name: same[0] for name, same in names.items() if len(same) == 1}
    for handle, number in _captured(meta_graph, body):
        if number in key_of_object:
            keys[handle] = key_of_object[number]
    for name, variable in found.items():
        stored = keys.get(name, name)
        found[name] = replace(variable, key=stored if stored in checkpoint else None)
    return Variables(found, checkpoint)


def _keys_of_objects(saved: Any, stored: Any) -> dict[int, str]:
    """The key of each variable among the SavedModel's objects, walking both graphs of objects side by side."""
    pairs = [(0, 0)] if saved and stored else []
    seen = {0}
    found: dict[int, str] = {}
    for number, twin in pairs:
        for attribute in stored[twin].attributes:
            if attribute.name == "VARIABLE_VALUE":
                found[number] = attribute.checkpoint_key
        twins = {child.local_name: child.node_id for child in stored[twin].children}
        for child in saved[number].children:
            other = twins.get(child.local_name, -1)
            fits = 0 <= child.node_id < len(saved) and 0 <= other < len(stored)
            if fits and child.node_id not in seen:
                seen.add(child.node_id)
                pairs.append((child.node_id, other))
    return {number: key for number, key in found.items() if saved[number].HasField("variable")}


def _captured(meta_graph: Any, body: Body) -> Iterator[tuple[str, int]]:
    """Pairs of a variable's name and its object's number: what calls of the main graph pass to captured inputs."""
    concrete = meta_graph.object_graph_def.concrete_functions
    for node in body.nodes.values():
        name = node.attributes["f"].func.name if node.op in _CALLS else ""
        if name not in concrete:
            continue
        bound = concrete[name].bound_inputs
        for edge, number in zip(node.inputs[len(node.inputs) - len(bound) :], bound, strict=False):
            handle = body.nodes.get(edge.node)
            if handle is not None and handle.op in HANDLES:
                yield variable_name(handle), number


def _restored(body: Body, functions: Mapping[str, Body]) -> Iterator[tuple[str, str]]:
    """Pairs of a variable's name and its key, from assignments of what RestoreV2 reads."""
    for graph in (body, *functions.values()):
        for node in graph.nodes.values():
            if node.op not in ("AssignVariableOp", "Assign") or len(node.inputs) < 2:
                continue
            key = _restored_key(graph, node.inputs[1])
            handle = graph.nodes.get(node.inputs[0].node)
            if key is not None and handle is not None and handle.op in HANDLES:
                yield variable_name(handle), key


def _restored_key(graph: Body, edge: Edge) -> str | None:
    node = graph.nodes.get(edge.node)
    seen: set[str] = set()  # nobody has looked for cycles yet
    while node is not None and node.op in _PASSED_ON and node.inputs and node.name not in seen:
        seen.add(node.name)
        edge = node.inputs[0]
        node = graph.nodes.get(edge.node)
    if node is None or node.op != "RestoreV2" or len(node.inputs) < 2:
        return None
    names = graph.nodes.get(node.inputs[1].node)
    if names is None or names.op != "Const":
        return None
    keys = tensor_array(names.attributes["value"].tensor).reshape(-1)
    if edge.index >= keys.size:
        raise ModelFormatError(f"{node.name} restores {keys.size} values; number {edge.index} is read")
    return bytes(keys[edge.index]).decode(errors="backslashreplace")
