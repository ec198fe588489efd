"""What a rule may ask of the importer around its node; the node view passes it on.

Most of it is about subgraphs: importing them, the values they close over, and problems that are taken
back when one way of importing a loop fails and another is tried.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from onnx import GraphProto, SparseTensorProto, TensorProto

from onnxla.errors import Problem, SourceNode
from onnxla.frontends.onnx.failed_values import Binding
from onnxla.frontends.onnx.values import Value
from onnxla.frontends.poison import Poison
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import Array


class Host(Protocol):
    """What a node view asks of the importer that walks the graph around it."""

    def known_value(self, instruction: Instruction) -> Array | None:
        """The value by constant propagation, within the folding budget; None where it is not known."""

    def blame(self, instruction: Instruction, role: str, source: SourceNode) -> Problem:
        """The problem that `instruction`, in `role`, must be known and is not: the chain and the way out."""

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

    def problem_count(self) -> int:
        """How many problems are noted, to take back later ones when an attempt fails."""

    def forget_problems(self, count: int) -> list[Problem]:
        """Take back, and return, the problems noted since there were `count`."""

    def note_problems(self, problems: Sequence[Problem]) -> None:
        """Note problems that belong to nodes other than the one being imported."""

    def note_origin(self, stand_in: Instruction, origin: Instruction) -> None:
        """`stand_in`, inside a body, has the value that `origin` has around it."""

    def note_varying(self, parameter: Instruction, words: str) -> None:
        """`parameter` changes with every iteration of a loop, which `words` name."""

    @property
    def unrolled_iterations(self) -> int:
        """Most iterations of a loop that may be written out."""
