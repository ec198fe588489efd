"""Operators that nothing makes known: looked for where nothing can be imported, for open sizes or a broken graph."""

from collections.abc import Iterable, Iterator

from onnx import NodeProto

from onnxla.errors import ModelFormatError, Problem, SourceNode
from onnxla.frontends.onnx import rules
from onnxla.frontends.onnx.functions import has_standard_body
from onnxla.frontends.onnx.missing_rules import no_rule_problem
from onnxla.frontends.onnx.model_file import OnnxModel
from onnxla.frontends.onnx.operator_names import normal_domain, qualified_name
from onnxla.frontends.onnx.registry import NoRule, lookup
from onnxla.frontends.onnx.structure import check_structure, functions_of, in_order, live_nodes, node_name, subgraphs

rules.load()


def unknown_operators(model: OnnxModel) -> list[Problem]:
    """A problem for each node that the outputs need and that has neither rule nor body. Raises ModelFormatError."""
    require_graph(model)
    return _unknown(model)


def require_graph(model: OnnxModel) -> None:
    """Raise one ModelFormatError for all faults of structure, which has the operators that are unknown as well."""
    try:
        check_structure(model)
    except ModelFormatError as error:
        try:
            unknown = _unknown(model)
        except ModelFormatError:  # what the outputs need is not known
            unknown = []
        raise ModelFormatError("\n".join([str(error), *map(str, unknown)])) from None


def _unknown(model: OnnxModel) -> list[Problem]:
    functions = functions_of(model)
    graph = model.proto.graph

    problems = []
    for index, node in _nodes(live_nodes(in_order(graph.node), (o.name for o in graph.output))):
        domain = normal_domain(node.domain)
        opset = model.opsets.get(domain, 1)
        if (domain, node.op_type, node.overload) in functions or has_standard_body(node.op_type, domain, opset):
            continue
        try:
            lookup(node.op_type, domain, opset)
        except NoRule as error:
            source = SourceNode(node_name(node, index), qualified_name(node.op_type, domain), index, opset)
            problems.append(no_rule_problem(error, node.op_type, domain, source, ()))
    return problems


def _nodes(nodes: Iterable[tuple[int, NodeProto]]) -> Iterator[tuple[int, NodeProto]]:
    """The nodes and those of their subgraphs, with their positions."""
    left = list(nodes)
    while left:
        index, node = left.pop(0)
        yield index, node
        left += [place for _, subgraph in subgraphs(node) for place in enumerate(subgraph.node)]
