"""Which variables a graph assigns to, found without importing it: handles are followed into the functions called."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from onnxla.frontends.tensorflow.graph import Body, Edge, Node, ordered
from onnxla.frontends.tensorflow.model_file import TensorFlowModel
from onnxla.frontends.tensorflow.variables import HANDLES, variable_name

_ASSIGNING = (
    "Assign",
    "ResourceApply",
    "ResourceSparseApply",
    "ResourceScatter",
    "ResourceStridedSliceAssign",
    "Apply",
    "SparseApply",
    "ScatterUpdate",
    "ScatterAdd",
    "ScatterSub",
    "ScatterNdUpdate",
)
RANDOM = ("RandomUniform", "RandomStandardNormal", "RandomUniformInt", "TruncatedNormal")
"""Operations that count how often they ran."""

_PASSED_ON = ("Identity", "Enter", "RefEnter", "Switch", "RefSwitch")

_FUNCTIONS = ("f", "cond", "body", "then_branch", "else_branch")


@dataclass(frozen=True)
class Effects:
    """What the nodes behind some values change, in the order they are met."""

    variables: list[str]
    counters: list[str]
    """Of random operations: they begin with 0."""


_COUNTER = "random_counter:"


def counter_name(path: str) -> str:
    """The variable in which the random operation at `path` counts."""
    return f"{_COUNTER}{path}"


def is_counter(name: str) -> bool:
    return name.startswith(_COUNTER)


def effects_of(model: TensorFlowModel, body: Body, wanted: Iterable[str]) -> Effects:
    """What the nodes behind `wanted` change."""
    variables: dict[str, None] = {}
    counters: dict[str, None] = {}
    _follow(model, body, [*wanted], {}, variables, counters, "", ())
    return Effects(list(variables), list(counters))


def _follow(
    model: TensorFlowModel,
    body: Body,
    wanted: Iterable[str],
    arguments: Mapping[str, str],
    variables: dict[str, None],
    counters: dict[str, None],
    path: str,
    calls: tuple[str, ...],
) -> None:
    for node in ordered(body, [*wanted, *body.control_results]):
        handles = [_handle(body, e, arguments) for e in node.inputs]
        if node.op.startswith(_ASSIGNING):
            variables.update(dict.fromkeys(name for name in handles if name is not None))
        elif node.op in RANDOM:
            counters[counter_name(path + node.name)] = None
        for function in _called(model, node):
            if function.name in calls:
                continue
            offset = len(node.inputs) - len(function.arguments)
            inner = {
                a.name: name
                for a, name in zip(function.arguments, handles[max(offset, 0) :], strict=False)
                if name is not None
            }
            results = [e.node for e in function.results]
            deeper = (*calls, function.name)
            _follow(model, function, results, inner, variables, counters, f"{path}{node.name}/", deeper)


def _called(model: TensorFlowModel, node: Node) -> list[Body]:
    names = [node.op]
    for key in _FUNCTIONS:
        if key in node.attributes:
            names.append(node.attributes[key].func.name)
    if "branches" in node.attributes:
        names += [f.name for f in node.attributes["branches"].list.func]
    return [model.functions[name] for name in names if name in model.functions]


def _handle(body: Body, edge: Edge, arguments: Mapping[str, str]) -> str | None:
    """The variable that an edge carries, if it does."""
    seen: set[str] = set()
    while edge.node in body.nodes and edge.node not in seen:
        seen.add(edge.node)
        node = body.nodes[edge.node]
        if node.op in HANDLES:
            return variable_name(node)
        if node.op not in _PASSED_ON or not node.inputs:
            return None
        edge = node.inputs[0]
    return arguments.get(edge.node)
