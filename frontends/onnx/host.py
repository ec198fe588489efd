"""What a rule may ask of the importer around its node; the node view passes it on.

Most of it is about subgraphs: importing them, the values they close over, and problems that are taken
back when one way of importing a loop fails and another is tried.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from onnx import GraphProto, SparseTensorProto, TensorProto

from onnxla.frontends.host import ImportHost
from onnxla.frontends.onnx.failed_values import Binding
from onnxla.frontends.onnx.values import Value
from onnxla.frontends.poison import Poison
from onnxla.hlo.builder import Builder
from onnxla.hlo.types import Array


class Host(ImportHost, Protocol):
    """What a node view asks of the importer that walks the graph around it."""

    def named(self, name: str) -> Value | None:
        """The value that a name of the graph stands for; None where there is none (yet)."""

    def tensor(self, tensor: TensorProto) -> Array:
        """The array of an attribute's tensor."""

    def dense_tensor(self, sparse: SparseTensorProto) -> Array:
        """The array of an attribute's sparse tensor, its zeros written out."""

    def import_body(
        self, graph: GraphProto, arguments: Sequence[Value], builder: Builder, captured: Mapping[str, Binding] | None
    ) -> list[Value]:
        """Import a subgraph's nodes into `builder`; outer names come from `captured`, or the scope around."""

    def captures(self, graph: GraphProto) -> dict[str, Value | Poison]:
        """The outer values that a subgraph reads, by name, those that failed among them."""
