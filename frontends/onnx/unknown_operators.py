"""Operators that no sizes of inputs make known: looked for while sizes are open and nothing can be imported."""

from collections.abc import Iterable, Iterator

from onnx import NodeProto

from onnxla.errors import Problem, SourceNode, UnsupportedOpError
from onnxla.frontends.onnx import rules
from onnxla.frontends.onnx.functions import has_standard_body
from onnxla.frontends.onnx.model_file import OnnxModel
from onnxla.frontends.onnx.registry import NoRule, lookup, normal_domain, qualified_name
from onnxla.frontends.onnx.structure import check_structure, functions_of, in_order, live_nodes, node_name, subgraphs

rules.load()


def unknown_operators(model: OnnxModel) -> list[Problem]:
    """A problem for each node that the outputs need and that has neither rule nor body. Raises ModelFormatError."""
    check_structure(model)
    functions = functions_of(model)
    graph = model.proto.graph

    def known(node: NodeProto, opset: int) -> str:
        domain = normal_domain(node.domain)
        if (domain, node.op_type, node.overload) in functions:
            return ""
        try:
            lookup(node.op_type, domain, opset)
        except NoRule as error:
            return "" if has_standard_body(node.op_type, domain, opset) else str(error)
        return ""

    problems = []
    for index, node in _nodes(live_nodes(in_order(graph.node), (o.name for o in graph.output))):
        opset = model.opsets.get(normal_domain(node.domain), 1)
        cause = known(node, opset)
        if cause:
            name = qualified_name(node.op_type, normal_domain(node.domain))
            problems.append(Problem(UnsupportedOpError, cause, SourceNode(node_name(node, index), name, index, opset)))
    return problems


def _nodes(nodes: Iterable[tuple[int, NodeProto]]) -> Iterator[tuple[int, NodeProto]]:
    """The nodes and those of their subgraphs, with their positions."""
    left = list(nodes)
    while left:
        index, node = left.pop(0)
        yield index, node
        left += [place for _, subgraph in subgraphs(node) for place in enumerate(subgraph.node)]
