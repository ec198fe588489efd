"""`survey`: which nodes of a model can be imported, and what their values are, where some of them cannot.

As an import, but a node that fails does not stop what reads it where the types of its results are known from somewhere
else: parameters of these types stand for the results then, and the walk goes on.
"""

from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy.typing as npt
from onnx import NodeProto

from onnxla.config import CompileOptions, Limits
from onnxla.errors import Problem
from onnxla.frontends.onnx.failed_values import Binding
from onnxla.frontends.onnx.graph_importer import GraphImporter
from onnxla.frontends.onnx.importer import walk
from onnxla.frontends.onnx.model_file import OnnxModel
from onnxla.frontends.onnx.session import Session
from onnxla.frontends.onnx.values import StringConstant
from onnxla.frontends.poison import Poison
from onnxla.frontends.signature import TensorSpec
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import Array, TensorType

StandIns: TypeAlias = Callable[[NodeProto, "Survey"], Mapping[str, TensorType]]
"""The types of results of a node that failed, as far as they are known, by name."""


@dataclass
class Survey:
    """What a walk over the main graph has found, and, while it goes on, what it has found so far."""

    session: Session
    values: Mapping[str, Binding]
    """What every name of the main graph is; Poison where nobody knows."""
    inputs: tuple[TensorSpec, ...] = ()
    failed: dict[int, tuple[Problem, ...]] = field(default_factory=dict)
    """Nodes by position that cannot be imported, and what is wrong with them: nothing where only their inputs are."""
    imported: set[int] = field(default_factory=set)
    """The other nodes that the outputs need."""

    @property
    def problems(self) -> tuple[Problem, ...]:
        return tuple(self.session.problems)

    def type(self, name: str) -> TensorType | None:
        """The type of a value that is a tensor of numbers of known shape."""
        value = self.values.get(name)
        return value.tensor_type if isinstance(value, Instruction) else None

    def is_unknown(self, name: str) -> bool:
        """Whether a name is what a failed node gives, and nobody knows its type."""
        return isinstance(self.values.get(name), Poison)

    def known_value(self, name: str) -> Array | None:
        """The value of a name that is the same in every run; strings are an array of objects."""
        value = self.values.get(name)
        if isinstance(value, StringConstant):
            return value.array
        return self.session.evaluator.value(value) if isinstance(value, Instruction) else None


def survey(
    model: OnnxModel,
    *,
    shapes: Mapping[str, Sequence[int]],
    dims: Mapping[str, int],
    constants: Mapping[str, npt.ArrayLike],
    options: CompileOptions,
    limits: Limits,
    stand_ins: StandIns,
) -> Survey:
    """Walk the main graph of `model`, past the nodes that fail. Raises as `try_import` does."""
    session = Session(model, options, limits)

    def importer(
        session: Session, builder: Builder, opsets: Mapping[str, int], values: ChainMap[str, Binding]
    ) -> "_Surveyor":
        return _Surveyor(session, builder, opsets, values, stand_ins)

    graph, inputs = walk(model, session, shapes, dims, constants, importer)
    graph.found.inputs = tuple(inputs)
    return graph.found


class _Surveyor(GraphImporter):
    """The importer of the main graph; those of bodies and functions are plain ones, which fail as a whole."""

    def __init__(
        self,
        session: Session,
        builder: Builder,
        opsets: Mapping[str, int],
        values: ChainMap[str, Binding],
        stand_ins: StandIns,
    ) -> None:
        super().__init__(session, builder, opsets, values)
        self.found = Survey(session, self.values)
        self._stand_ins = stand_ins

    def _import_node(self, index: int, node: NodeProto) -> None:
        before = self.problem_count()
        super()._import_node(index, node)
        noted = tuple(self.session.problems[before:])
        results = [name for name in node.output if name]
        if not noted and not any(map(self.found.is_unknown, results)):
            self.found.imported.add(index)
            return
        self.found.failed[index] = noted
        self._replace(results, self._stand_ins(node, self.found))

    def _replace(self, results: Iterable[str], types: Mapping[str, TensorType]) -> None:
        for name in results:
            if name in types:
                self.values[name] = self.builder.parameter(types[name], name)
