"""`import_tensorflow`: a signature or a graph to an HLO module with static shapes, or all reasons why not.

read (model_file) -> choose (signature) -> bind shapes -> walk (graph_importer) -> module

Variables that the graph assigns to (effects) become parameters and results; others are weights.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from onnxla.config import CompileOptions, Limits
from onnxla.errors import (
    InternalError,
    ModelFormatError,
    Problem,
    ResourceLimitError,
    ShapeError,
    UnsupportedOpError,
    raise_problems,
)
from onnxla.frontends.problems import Poisoned, ProblemFound
from onnxla.frontends.signature import TensorSpec, bind_inputs
from onnxla.frontends.tensorflow import rules
from onnxla.frontends.tensorflow.graph import MOST_FAULTS
from onnxla.frontends.tensorflow.graph_importer import GraphImporter
from onnxla.frontends.tensorflow.model_file import TensorFlowModel, read_tensorflow
from onnxla.frontends.tensorflow.session import Session
from onnxla.frontends.tensorflow.signature import Interface, Port, interface_of
from onnxla.frontends.tensorflow.state import ModelState, initial_values
from onnxla.frontends.tensorflow.values import Value, describe
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction, Module
from onnxla.hlo.types import Array, type_of

rules.load()


@dataclass(frozen=True)
class ImportedTensorFlow:
    """The module and its interface.

    The parameters of the entry are `inputs`, then `state`; the elements of its root are `outputs`, then the new values
    of `state`, in order.
    """

    module: Module
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    state: Mapping[str, Array]
    """The variables that the graph assigns to, with the values they begin with."""


@dataclass(frozen=True)
class TensorFlowImportResult:
    """What an import found: the model, or the problems."""

    model: ImportedTensorFlow | None
    problems: tuple[Problem, ...]


def import_tensorflow(source: Any, **arguments: Any) -> ImportedTensorFlow:
    """Import a SavedModel or GraphDef; the arguments are those of `try_import`.

    Raises ModelFormatError for what is no valid model, InputError for names that there are not,
    UnboundDimensionsError while dimensions have no size, and otherwise one CompileError with every problem.
    """
    result = try_import(read_tensorflow(source), **arguments)
    raise_problems(result.problems)
    assert result.model is not None
    return result.model


def try_import(
    model: TensorFlowModel,
    *,
    signature: str | None = None,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    dims: Mapping[str, int] | None = None,
    constants: Mapping[str, npt.ArrayLike] | None = None,
    options: CompileOptions | None = None,
    limits: Limits | None = None,
) -> TensorFlowImportResult:
    """Import a signature of a model (or a graph between `inputs` and `outputs`), returning the problems of nodes.

    `shapes` gives whole input shapes, `dims` sizes of dimensions, which are called `INPUT.0`, `INPUT.1`, ...;
    `constants` replaces inputs by values.
    """
    limits = limits or Limits()
    if model.node_count > limits.nodes:
        raise ResourceLimitError(f"the model has {model.node_count} nodes; the limit is {limits.nodes}")
    interface = interface_of(model, signature, inputs, outputs)
    values = {name: np.asarray(value) for name, value in (constants or {}).items()}
    specs = bind_inputs([p.spec for p in interface.inputs], shapes or {}, dims or {}, values, ())
    mutable = initial_values(model, interface)
    walk = _Walk(model, interface, specs, values, mutable, options or CompileOptions(), limits)
    found = walk.run()
    if model.faults:
        raise ModelFormatError(_broken(model, walk.session.problems))
    if walk.session.problems or found is None:
        return TensorFlowImportResult(None, tuple(walk.session.problems))
    return TensorFlowImportResult(found, ())


def _broken(model: TensorFlowModel, problems: Sequence[Problem]) -> str:
    """What nodes read that is not there, and what else is wrong with the model."""
    more = [f"and {len(model.faults) - MOST_FAULTS} more"] if len(model.faults) > MOST_FAULTS else []
    lines = [f"{model.name} is not a valid model", *model.faults[:MOST_FAULTS], *more]
    hint = ["  hint   freeze or cut the graph again with all that its outputs need"]
    return "\n".join(["\n  ".join(lines), *hint, *map(str, problems)])


class _Walk:
    """One walk over the graph."""

    def __init__(
        self,
        model: TensorFlowModel,
        interface: Interface,
        specs: Sequence[TensorSpec],
        constants: Mapping[str, Array],
        mutable: Mapping[str, Array],
        options: CompileOptions,
        limits: Limits,
    ) -> None:
        self.session = Session(model, options, limits)
        self._interface = interface
        self._specs = specs
        self._builder = Builder("main")
        self._constants = constants
        self._parameters = [self._parameter(spec) for spec in specs]
        self._mutable = mutable
        self._state = ModelState(model.variables, self._builder, mutable)
        self._graph = GraphImporter(self.session, self._builder, model.body, self._state)

    def run(self) -> ImportedTensorFlow | None:
        """The imported model; None where there are problems."""
        edges = {p.spec.name: p.edge for p in self._interface.inputs}
        for name, value in self._constants.items():
            self._bind_constant(edges[name].node, name, value)
        for spec, parameter in zip(self._specs, self._parameters, strict=True):
            if parameter is not None:
                self._graph.bind(edges[spec.name].node, parameter)
            else:
                self._graph.give_up(edges[spec.name].node)
        try:
            self._graph.run(p.edge.node for p in self._interface.outputs)
        except RecursionError as error:
            raise ResourceLimitError("functions are nested too deeply") from error
        results = [self._output(p) for p in self._interface.outputs]
        outputs = [(spec, value) for spec, value in filter(None, results)]
        if self.session.problems or self.session.model.faults:
            return None
        if len(outputs) != len(results):
            raise InternalError("an output has no value and no problem was noted")
        unforeseen = set(self._state.written) - set(self._mutable)
        if unforeseen:
            raise InternalError(f"variables are assigned to that were not foreseen: {', '.join(sorted(unforeseen))}")
        roots = [value for _, value in outputs] + [self._state.current[name] for name in self._mutable]
        module = Module(self.session.model.name, self._builder.build(self._builder.tuple(*roots)))
        self._check_state()
        if self.session.problems:
            return None
        return ImportedTensorFlow(module, tuple(self._specs), tuple(s for s, _ in outputs), self._mutable)

    def _parameter(self, spec: TensorSpec) -> Instruction | None:
        """A parameter of the entry; a problem for an input that is no tensor of numbers."""
        if spec.element is None:
            strings = spec.onnx_type == "tensor(string)"
            self.session.problems.append(
                Problem(
                    UnsupportedOpError,
                    f"the input {spec.name} is {spec.onnx_type}; only tensors of numbers can be inputs",
                    hint="feed the model what comes after the operations on strings"
                    if strings
                    else "choose other inputs, inputs=[...] (--from)",
                )
            )
            return None
        if spec.type.size > self.session.limits.elements:
            raise ResourceLimitError(f"the input {spec} has more than {self.session.limits.elements} elements")
        parameter = self._builder.parameter(spec.type, spec.name)
        self.session.input_names[parameter] = spec.name
        return parameter

    def _bind_constant(self, node: str, name: str, value: Array) -> None:
        spec = next(p.spec for p in self._interface.inputs if p.spec.name == name)
        if spec.element is None or value.dtype != spec.element.dtype:
            cause = f"the constant given for {name} is {value.dtype}; the model wants {spec.onnx_type}"
            self.session.problems.append(Problem(ShapeError, cause, hint=f"give {name} as an array of that type"))
            self._graph.give_up(node)
            return
        self._graph.bind(node, self._builder.constant(value, name=name))

    def _output(self, port: Port) -> tuple[TensorSpec, Instruction] | None:
        """An output with its type; a problem where it cannot be one."""
        try:
            value: Value = self._graph.value(port.edge)
        except (Poisoned, ProblemFound):
            return None
        if isinstance(value, Instruction):
            element, shape = value.tensor_type.element, value.shape
            return TensorSpec(port.spec.name, element, shape, f"tensor({element})"), value
        cause = f"the output {port.spec.name} is a {describe(value)}; only tensors of numbers can be outputs"
        hint = "name a tensor as the output, outputs=[...] (--to)"
        self.session.problems.append(Problem(UnsupportedOpError, cause, hint=hint))
        return None

    def _check_state(self) -> None:
        """A variable keeps its type from one run to the next."""
        for name, value in self._mutable.items():
            now = self._state.current[name].tensor_type
            if now != type_of(value):
                cause = f"the variable {name} is {type_of(value)} and becomes {now}; its shape must not change"
                hint = "assign values of the variable's own shape, or give the inputs sizes that lead to it"
                source = self._state.current[name].source
                self.session.problems.append(Problem(ShapeError, cause, source, hint=hint))
