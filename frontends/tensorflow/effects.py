"""Which variables a graph assigns to, found without importing it: handles are followed into the functions called."""

from collections.abc import Iterable, Mapping

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
_PASSED_ON = ("Identity", "Enter", "RefEnter", "Switch", "RefSwitch")

_FUNCTIONS = ("f", "cond", "body", "then_branch", "else_branch")


def assigned_variables(model: TensorFlowModel, body: Body, wanted: Iterable[str]) -> list[str]:
    """The names of the variables that the nodes behind `wanted` assign to, in the order they are met."""
    found: dict[str, None] = {}
    _follow(model, body, [*wanted], {}, found, ())
    return list(found)


def _follow(
    model: TensorFlowModel,
    body: Body,
    wanted: Iterable[str],
    arguments: Mapping[str, str],
    found: dict[str, None],
    calls: tuple[str, ...],
) -> None:
    for node in ordered(body, [*wanted, *body.control_results]):
        handles = [_handle(body, e, arguments) for e in node.inputs]
        if node.op.startswith(_ASSIGNING):
            found.update(dict.fromkeys(name for name in handles if name is not None))
        for function in _called(model, node):
            if function.name in calls:
                continue
            offset = len(node.inputs) - len(function.arguments)
            inner = {
                a.name: name
                for a, name in zip(function.arguments, handles[max(offset, 0) :], strict=False)
                if name is not None
            }
            _follow(model, function, [e.node for e in function.results], inner, found, (*calls, function.name))


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
