"""The main graph of a model as nodes that read and make values: what is cut into clusters, and then into parts."""

from collections.abc import Iterable

from onnx import NodeProto

from onnxla.frontends.onnx.model_file import OnnxModel
from onnxla.frontends.onnx.operator_names import normal_domain, qualified_name
from onnxla.frontends.onnx.structure import free_names, in_order, live_nodes, node_name, subgraphs


class Wiring:
    """The nodes that the outputs need, by position, each after those it reads from."""

    def __init__(self, model: OnnxModel) -> None:
        graph = model.proto.graph
        self.outputs: tuple[str, ...] = tuple(o.name for o in graph.output)
        self.nodes: dict[int, NodeProto] = dict(live_nodes(in_order(graph.node), self.outputs))
        self.reads: dict[int, tuple[str, ...]] = {k: names_read_by(node) for k, node in self.nodes.items()}
        self.maker: dict[str, int] = {name: k for k, node in self.nodes.items() for name in node.output if name}
        self.readers: dict[str, list[int]] = {}
        for k, names in self.reads.items():
            for name in names:
                self.readers.setdefault(name, []).append(k)

    def makes(self, node: int) -> list[str]:
        """The values that a node makes."""
        return [name for name in self.nodes[node].output if name]

    def label(self, node: int) -> str:
        """`/head/NonMaxSuppression (NonMaxSuppression), node 17`."""
        return f"{node_name(self.nodes[node], node)} ({self.operator(node)}), node {node}"

    def operator(self, node: int) -> str:
        """`NonMaxSuppression`, `com.microsoft.Tokenizer`."""
        return qualified_name(self.nodes[node].op_type, normal_domain(self.nodes[node].domain))

    def needed(self, nodes: Iterable[int], names: Iterable[str]) -> list[int]:
        """Those of `nodes`, in order, that `names` need."""
        wanted, needed = set(nodes), set(names)
        kept = []
        for k in reversed(self.nodes):
            if k in wanted and needed.intersection(self.nodes[k].output):
                kept.append(k)
                needed.update(self.reads[k])
        return kept[::-1]


def names_read_by(node: NodeProto) -> tuple[str, ...]:
    """The values that a node reads, each once: those that its bodies take from around them are among them."""
    names = dict.fromkeys(name for name in node.input if name)
    for _, body in subgraphs(node):
        names.update(dict.fromkeys(free_names(body)))
    return tuple(names)
