"""`import_model`: an ONNX model to an HLO module with static shapes, or all reasons why not.

read (model_file) -> check (structure) -> bind shapes (signature) -> walk (graph_importer) -> module
"""

import os
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from onnxla.config import CompileOptions, Limits
from onnxla.errors import (
    InternalError,
    Problem,
    ResourceLimitError,
    ShapeError,
    UnsupportedOpError,
    raise_problems,
)
from onnxla.frontends.onnx import rules
from onnxla.frontends.onnx.expanded_size import expanded_nodes
from onnxla.frontends.onnx.failed_values import Binding
from onnxla.frontends.onnx.graph_importer import GraphImporter
from onnxla.frontends.onnx.model_file import NEWEST_OPSET, ModelSource, OnnxModel, read_model
from onnxla.frontends.onnx.session import Session
from onnxla.frontends.onnx.signature import MOST_DIMENSIONS, STRINGS, places_of, signature_of, tensor_spec
from onnxla.frontends.onnx.unknown_operators import require_graph
from onnxla.frontends.onnx.values import ChosenStrings, Value, describe, tensors_of
from onnxla.frontends.onnx.vocabulary import strings_of_input, vocabulary
from onnxla.frontends.poison import POISON, Poison
from onnxla.frontends.problems import text_problem, value_of
from onnxla.frontends.signature import TensorSpec, bind_inputs
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction, Module
from onnxla.hlo.types import Array, TensorType

rules.load()

AnImporter = TypeVar("AnImporter", bound=GraphImporter)


@dataclass(frozen=True)
class ImportedModel:
    """The module and its interface: parameter i of the entry is `inputs[i]`, element i of its root `outputs[i]`."""

    module: Module
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    vocabularies: Mapping[str, tuple[str, ...]]
    """Inputs of strings, whose parameters take places in a list, or the list's length for what is not in it."""
    results: tuple[Value, ...]
    """What each output of the model is. The tensors in them, from left to right, are `outputs`."""


@dataclass(frozen=True)
class ImportResult:
    """What an import found: the model, or the problems."""

    model: ImportedModel | None
    problems: tuple[Problem, ...]


def import_model(
    source: ModelSource,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    dims: Mapping[str, int] | None = None,
    constants: Mapping[str, npt.ArrayLike] | None = None,
    folder: str | os.PathLike[str] | None = None,
    options: CompileOptions | None = None,
    limits: Limits | None = None,
) -> ImportedModel:
    """Import a model from a path, bytes, a ModelProto or an OnnxModel.

    `shapes` gives whole input shapes, `dims` sizes of symbolic dimensions; `constants` replaces inputs
    by values, which also overrides the initializers that are inputs. `folder` is where the external
    data of an in-memory model lies.

    Raises ModelFormatError for what is not a valid model, UnboundDimensionsError while dimensions have
    no size, and otherwise one CompileError with every problem of the model.
    """
    model = read_model(source, folder=folder)
    result = try_import(model, shapes=shapes, dims=dims, constants=constants, options=options, limits=limits)
    raise_problems(result.problems)
    assert result.model is not None
    return result.model


def try_import(
    model: OnnxModel,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    dims: Mapping[str, int] | None = None,
    constants: Mapping[str, npt.ArrayLike] | None = None,
    options: CompileOptions | None = None,
    limits: Limits | None = None,
) -> ImportResult:
    """As `import_model`, returning the problems of nodes instead of raising them."""
    limits = limits or Limits()
    session = Session(model, options or CompileOptions(), limits)
    graph, inputs = walk(model, session, shapes or {}, dims or {}, constants or {}, GraphImporter)
    results = _results(graph, session, signature_of(model).outputs)
    if session.problems:
        return ImportResult(None, tuple(session.problems))
    outputs = [leaf for spec, value in results for leaf in tensors_of(value, spec.name)]
    entry = graph.builder.build(graph.builder.tuple(*(tensor for _, tensor in outputs)))
    imported = ImportedModel(
        Module(model.proto.graph.name or model.name, entry),
        tuple(places_of(i) if i.onnx_type == STRINGS else i for i in inputs),
        tuple(tensor_spec(name, tensor.tensor_type) for name, tensor in outputs),
        {i.name: vocabulary(model) for i in inputs if i.onnx_type == STRINGS},
        tuple(value for _, value in results),
    )
    return ImportResult(imported, ())


def walk(
    model: OnnxModel,
    session: Session,
    shapes: Mapping[str, Sequence[int]],
    dims: Mapping[str, int],
    constants: Mapping[str, npt.ArrayLike],
    importer: Callable[[Session, Builder, Mapping[str, int], ChainMap[str, Binding]], AnImporter],
) -> tuple[AnImporter, list[TensorSpec]]:
    """Import the main graph with a new `importer`; it, which knows all values then, and the inputs.

    Inputs that do not fit are poison. Raises as `import_model` does for what is no problem of a node.
    """
    limits = session.limits
    if len(model.proto.graph.node) > limits.nodes:
        raise ResourceLimitError(f"the model has {len(model.proto.graph.node)} nodes; the limit is {limits.nodes}")
    require_graph(model)
    _require_known_opset(model)
    _require_nodes_within(limits.nodes, session)
    values = {name: np.asarray(value) for name, value in constants.items()}
    signature = signature_of(model)
    inputs = bind_inputs(signature.inputs, shapes, dims, values, (d.name for d in signature.defaults))
    builder = Builder("main")
    graph = importer(session, builder, model.opsets, ChainMap[str, Binding]({}))
    _bind_constants(graph, (*signature.inputs, *signature.defaults), values)
    _bind_parameters(graph, inputs, session)
    proto = model.proto.graph
    graph.bind_initializers(proto, values)
    try:
        graph.run(proto.node, [o.name for o in proto.output])
    except RecursionError as error:
        raise ResourceLimitError("subgraphs and functions are nested too deeply") from error
    return graph, inputs


def _require_nodes_within(limit: int, session: Session) -> None:
    """Functions can multiply: count before anything is written out."""
    if not session.functions:
        return
    try:
        count = expanded_nodes(session.model, session.functions)
    except RecursionError as error:
        raise ResourceLimitError("subgraphs and functions are nested too deeply") from error
    if count > limit:
        raise ResourceLimitError(
            f"the model has {count} nodes with its functions written out; Limits(nodes=...) allows {limit}"
        )


def _require_known_opset(model: OnnxModel) -> None:
    opset = model.opsets.get("", 1)
    if opset > NEWEST_OPSET or opset < 1:
        raise UnsupportedOpError(
            [
                Problem(
                    UnsupportedOpError,
                    f"opset {opset} of ai.onnx is not known; versions 1 to {NEWEST_OPSET} are",
                    hint="export the model for one of them, or convert it: onnx.version_converter",
                )
            ]
        )


def _bind_constants(graph: GraphImporter, specs: Sequence[TensorSpec], constants: Mapping[str, Array]) -> None:
    """Bind the inputs whose values are given, which must have the declared type."""
    by_name = {s.name: s for s in specs}
    for name, value in constants.items():
        spec = by_name[name]
        strings = value.dtype.kind in "OSU"
        if strings and spec.onnx_type == "tensor(string)":
            graph.bind_constant(name, value.astype(str).astype(object))
        elif spec.element is not None and value.dtype == spec.element.dtype:
            graph.bind_constant(name, value)
        else:
            cause = f"the constant given for {name} is {value.dtype}; the model wants {spec.onnx_type}"
            hint = f"give {name} as an array of that type"
            graph.session.problems.append(Problem(ShapeError, cause, hint=hint))
            graph.values[name] = POISON


def _bind_parameters(graph: GraphImporter, inputs: Sequence[TensorSpec], session: Session) -> None:
    """One parameter of the entry for each input. Inputs that are not tensors of numbers are problems."""
    words = vocabulary(session.model)
    for spec in inputs:
        graph.values[spec.name] = POISON
        if spec.onnx_type == STRINGS and words and spec.is_static:
            places = graph.builder.parameter(places_of(spec).type, spec.name)
            session.input_names[places] = spec.name
            graph.values[spec.name] = strings_of_input(spec.name, places, words)
            continue
        if spec.element is None:
            session.problems.append(
                Problem(
                    UnsupportedOpError,
                    f"the input {spec.name} is {spec.onnx_type}; only tensors of numbers can be inputs",
                    hint=value_of(spec.name)
                    if spec.onnx_type == STRINGS
                    else "onnxla.backend.prepare(model) compiles for the structure of what it is run on",
                    needs_constants=(spec.name,) if spec.onnx_type == "tensor(string)" else (),
                )
            )
            continue
        if _has_too_many_dimensions(session, "input", spec.name, spec.type):
            continue
        if spec.type.size > session.limits.elements:
            raise ResourceLimitError(f"the input {spec} has more than {session.limits.elements} elements")
        parameter = graph.builder.parameter(spec.type, spec.name)
        session.input_names[parameter] = spec.name
        graph.values[spec.name] = parameter


def _has_too_many_dimensions(session: Session, role: str, name: str, type: TensorType) -> bool:
    """Note a problem where no array can have as many dimensions as the tensor."""
    if type.rank <= MOST_DIMENSIONS:
        return False
    cause = f"the {role} {name} has {type.rank} dimensions; arrays have at most {MOST_DIMENSIONS}"
    session.problems.append(Problem(UnsupportedOpError, cause, hint="merge dimensions by a Reshape"))
    return True


def _results(graph: GraphImporter, session: Session, declared: Sequence[TensorSpec]) -> list[tuple[TensorSpec, Value]]:
    """What the outputs of the main graph are. An output that is not of the declared type is noted as a problem."""
    found: list[tuple[TensorSpec, Value]] = []
    poisoned = False
    for spec in declared:
        value = graph.values.get(spec.name)
        if value is None or isinstance(value, Poison):
            poisoned = True
            continue
        if not _is_of_type(value, spec):
            kind = value.tensor_type.element if isinstance(value, Instruction) else f"a {describe(value)}"
            cause = f"the output {spec.name} is declared {spec.element or spec.onnx_type} and computed as {kind}"
            source = value.source if isinstance(value, Instruction) else None
            session.problems.append(Problem(ShapeError, cause, source, hint="correct the output's type in the model"))
        if isinstance(value, ChosenStrings) and value.input:
            session.problems.append(text_problem(value.input))
        for name, tensor in tensors_of(value, spec.name):
            _has_too_many_dimensions(session, "output", name, tensor.tensor_type)
        found.append((spec, value))
    if poisoned and not session.problems:
        raise InternalError("an output has no value and no problem was noted")
    return found


def _is_of_type(value: Value, spec: TensorSpec) -> bool:
    """Whether an output may be `value`. Models may leave the type out, or write an element's for an optional's."""
    if isinstance(value, Instruction):
        return spec.element in (None, value.tensor_type.element) and not spec.onnx_type.startswith("seq(")
    return spec.element is None
