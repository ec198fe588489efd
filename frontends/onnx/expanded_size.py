"""How many nodes a model has once its functions are written out, known before any of them is.

Thirty functions that call each other twice are a small file and a billion nodes.
"""

from collections.abc import Iterable, Mapping, Sequence

from onnx import FunctionProto, NodeProto

from onnxla.frontends.onnx.model_file import OnnxModel
from onnxla.frontends.onnx.operator_names import normal_domain
from onnxla.frontends.onnx.structure import FunctionKey, in_order, live_nodes, subgraphs


def expanded_nodes(model: OnnxModel, functions: Mapping[FunctionKey, FunctionProto]) -> int:
    """The nodes that the outputs need, those of functions once for each call.

    The body of a loop counts once, of the branches of an If the smaller one: there is never less to import. A function
    that calls itself counts nothing, since the import stops there.
    """
    return _Count(functions).of(model.proto.graph.node, [o.name for o in model.proto.graph.output])


class _Count:
    def __init__(self, functions: Mapping[FunctionKey, FunctionProto]) -> None:
        self._functions = functions
        self._known: dict[FunctionKey, int] = {}

    def of(self, nodes: Sequence[NodeProto], outputs: Iterable[str]) -> int:
        return sum(1 + self._inside(node) for _, node in live_nodes(in_order(nodes), outputs))

    def _inside(self, node: NodeProto) -> int:
        """The nodes that a node stands for, beside itself."""
        key = (normal_domain(node.domain), node.op_type, node.overload)
        if key in self._functions:
            if key not in self._known:
                self._known[key] = 0
                body = self._functions[key]
                self._known[key] = self.of(body.node, body.output)
            return self._known[key]
        bodies = [self.of(graph.node, [o.name for o in graph.output]) for _, graph in subgraphs(node)]
        return min(bodies, default=0) if node.op_type == "If" else sum(bodies)
