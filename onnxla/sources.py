"""What can be compiled: an ONNX model or an HLO module, behind one small interface for the compiler."""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, Protocol, TypeAlias, TypeVar

from onnxla.config import CompileOptions, Limits
from onnxla.errors import CompileError, HloError, InputError, UnboundDimensionsError
from onnxla.frontends.onnx.external_data import external_locations
from onnxla.frontends.onnx.importer import ImportedModel, import_model
from onnxla.frontends.onnx.model_file import OnnxModel
from onnxla.frontends.onnx.signature import signature_of
from onnxla.frontends.onnx.values import (
    ChosenStrings,
    MapsValue,
    OptionalValue,
    SequenceValue,
    StringConstant,
    Value,
)
from onnxla.frontends.signature import Signature, TensorSpec
from onnxla.hlo.module import Computation, Instruction, Module
from onnxla.hlo.ops.structural import GetTupleElement, Tuple
from onnxla.hlo.parser import parse_module, weights_from
from onnxla.hlo.printer import long_constants, print_module
from onnxla.hlo.types import Array, TensorType, TupleType
from onnxla.runtime.digest import digest_of
from onnxla.runtime.results import (
    ChosenTextResult,
    MapsResult,
    NothingResult,
    Result,
    SequenceResult,
    TensorResult,
    TextResult,
)
from onnxla.runtime.signature import Dimension, ModelSignature, ModelTensor, model_tensor
from onnxla.runtime.tensors import TensorSignature, onnx_type

Shapes: TypeAlias = Mapping[str, Sequence[int]]
Anything = TypeVar("Anything")


@dataclass(frozen=True)
class Imported:
    """A module that passes may rewrite, with the names of its parameters and of the elements of its root."""

    module: Module
    inputs: tuple[TensorSignature, ...]
    outputs: tuple[TensorSignature, ...]
    constants: Mapping[str, Array]
    """Values of inputs that the module was made for."""
    results: tuple[Result, ...] = ()
    """How the model's outputs are made of `outputs`; empty where they are the same."""
    state: tuple[TensorSignature, ...] = ()
    """Variables that the model changes: parameters after the inputs, and elements of the root after the outputs."""
    vocabularies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Inputs of strings, whose parameters take places in these lists."""


class Source(ABC):
    """A model that can be imported as often as wanted."""

    name: str
    nodes: int
    """Operators as the model counts them."""

    @abstractmethod
    def signature(self, dims: Mapping[str, int], shapes: Shapes) -> ModelSignature:
        """Inputs and outputs as the model declares them, with the sizes that are known."""

    @property
    def state(self) -> Mapping[str, Array]:
        """The variables that running changes, with the values they begin with."""
        return {}

    @abstractmethod
    def load(self, shapes: Shapes, dims: Mapping[str, int], values: Mapping[str, Array]) -> Imported:
        """Import for input shapes. `values` offers values of inputs: those that decide shapes become constants.

        Raises CompileError with every problem, UnboundDimensionsError while a dimension has no size.
        """


class Found(Protocol):
    """What the import of any format finds."""

    @property
    def module(self) -> Module: ...

    @property
    def inputs(self) -> Sequence[TensorSpec]: ...

    @property
    def outputs(self) -> Sequence[TensorSpec]: ...


FoundT = TypeVar("FoundT", bound=Found)


class OpenSource(Source, Generic[FoundT]):
    """A model whose sizes may be open and whose inputs may be fixed: ONNX, TensorFlow, StableHLO."""

    def __init__(self, options: CompileOptions, limits: Limits, constants: Mapping[str, Array]) -> None:
        """`constants` are the inputs whose values are fixed."""
        self._constants = dict(constants)
        self._options = options
        self._limits = limits

    @abstractmethod
    def declared(self) -> Signature:
        """What the model says of its inputs and outputs."""

    @abstractmethod
    def imported(self, shapes: Shapes, dims: Mapping[str, int], constants: Mapping[str, Array]) -> FoundT:
        """Import with `constants` as values of inputs. Raises as `load` does."""

    def completed(self, found: FoundT, plain: Imported) -> Imported:
        """`plain` with what only models of this format have."""
        return plain

    def signature(self, dims: Mapping[str, int], shapes: Shapes) -> ModelSignature:
        declared = self.declared()
        return ModelSignature(
            tuple(declared_tensor(s, dims, shapes) for s in declared.inputs if s.name not in self._constants),
            tuple(declared_tensor(s, dims, {}) for s in declared.outputs),
            tuple(s.name for s in declared.defaults if s.name not in self._constants),
        )

    def load(self, shapes: Shapes, dims: Mapping[str, int], values: Mapping[str, Array]) -> Imported:
        found, constants = with_needed_values(
            lambda open_shapes, constants: self.imported(open_shapes, dims, constants), self._constants, shapes, values
        )
        inputs = tuple(tensor_signature(s.name, s.type) for s in found.inputs)
        outputs = tuple(tensor_signature(s.name, s.type) for s in found.outputs)
        return self.completed(found, Imported(found.module, inputs, outputs, constants))


class OnnxSource(OpenSource[ImportedModel]):
    """An ONNX model."""

    def __init__(
        self, model: OnnxModel, options: CompileOptions, limits: Limits, constants: Mapping[str, Array]
    ) -> None:
        super().__init__(options, limits, constants)
        self.name = model.name
        self.nodes = len(model.proto.graph.node)
        self._model = model

    def content(self) -> tuple[int, str] | None:
        """Bytes and digest of the file that was read; None without one, and where weights lie beside it."""
        data = self._model.data
        return None if data is None or external_locations(self._model.proto) else (len(data), digest_of(data))

    def declared(self) -> Signature:
        return signature_of(self._model)

    def imported(self, shapes: Shapes, dims: Mapping[str, int], constants: Mapping[str, Array]) -> ImportedModel:
        return import_model(
            self._model, shapes=shapes, dims=dims, constants=constants, options=self._options, limits=self._limits
        )

    def completed(self, found: ImportedModel, plain: Imported) -> Imported:
        results = () if _are_tensors(found.results) else _results(found.results)
        return replace(plain, results=results, vocabularies=found.vocabularies)


class HloSource(Source):
    """An HLO module. Inputs have the names of the entry's parameters, outputs those of the elements of its root."""

    def __init__(self, module: Module) -> None:
        """Raises HloError for parameters or results that are tuples themselves."""
        self.name = module.name
        self.nodes = len(module.entry.instructions())
        module = Module(module.name, _with_tuple_as_root(module.entry))
        # Passes rewrite in place and the caller keeps the module, so each import parses a copy.
        self._text = print_module(module)
        self._weights = {name: literal.array for name, literal in long_constants(module).items()}
        self._inputs = _hlo_signatures(module.entry.parameters, "input")
        self._outputs = _hlo_signatures(module.entry.root.operands, "output")

    def signature(self, dims: Mapping[str, int], shapes: Shapes) -> ModelSignature:
        return ModelSignature(tuple(map(model_tensor, self._inputs)), tuple(map(model_tensor, self._outputs)))

    def load(self, shapes: Shapes, dims: Mapping[str, int], values: Mapping[str, Array]) -> Imported:
        if shapes or dims:
            raise InputError("the shapes of an HLO module are in it; shapes= and dims= are for ONNX models")
        module = parse_module(self._text, weights=weights_from(self._weights))
        return Imported(module, self._inputs, self._outputs, {})


def needed_values(error: CompileError) -> set[str]:
    """The inputs whose values would solve every problem of `error`; empty where values do not help."""
    if not all(problem.needs_constants for problem in error.problems):
        return set()
    return {name for problem in error.problems for name in problem.needs_constants}


def with_needed_values(
    importing: Callable[[Shapes, Mapping[str, Array]], Anything],
    constants: Mapping[str, Array],
    shapes: Shapes,
    values: Mapping[str, Array],
) -> tuple[Anything, Mapping[str, Array]]:
    """What `importing` finds with `constants` and as many of `values` as decide shapes; and all of those.

    Raises the CompileError that no value helps against.
    """
    settled = dict(constants)
    while True:
        try:
            return importing({name: shape for name, shape in shapes.items() if name not in settled}, settled), settled
        except CompileError as error:
            needed = needed_values(error)
            if not needed or not needed <= values.keys() or needed <= settled.keys():
                raise
            settled |= {name: values[name].copy() for name in needed}


def may_compile_later(error: CompileError) -> bool:
    """Whether the arrays of a run can settle what `error` complains of: sizes, or values, of inputs."""
    return isinstance(error, UnboundDimensionsError) or bool(needed_values(error))


def _with_tuple_as_root(entry: Computation) -> Computation:
    """The entry with its results as a tuple, which may be what a loop or a branch gives."""
    root = entry.root
    if isinstance(root.op, Tuple):
        return entry
    results = [root]
    if isinstance(root.type, TupleType):
        results = [Instruction(GetTupleElement(k), [root]) for k in range(len(root.type.elements))]
    return Computation(entry.name, entry.parameters, Instruction(Tuple(), results))


def _hlo_signatures(instructions: Sequence[Instruction], kind: str) -> tuple[TensorSignature, ...]:
    """Signatures under the instructions' own names where those are different, else numbered."""
    names = [i.name for i in instructions]
    if len(set(names)) < len(names) or "" in names:
        names = [f"{kind}_{k}" for k in range(len(names))]
    for i in instructions:
        if not isinstance(i.type, TensorType):
            raise HloError(f"an {kind} of the module is {i.type}; inputs and outputs must be tensors")
    return tuple(tensor_signature(n, i.tensor_type) for n, i in zip(names, instructions, strict=True))


def _are_tensors(values: Sequence[Value]) -> bool:
    return all(isinstance(value, Instruction) for value in values)


def _results(values: Sequence[Value]) -> tuple[Result, ...]:
    """Values as the runtime puts them together, the tensors in them numbered from left to right."""
    numbers = itertools.count()

    def result(value: Value) -> Result:
        match value:
            case StringConstant(array):
                return TextResult(array.shape, tuple(map(str, array.reshape(-1))))
            case ChosenStrings(table=table):
                return ChosenTextResult(next(numbers), table)
            case MapsValue(keys=keys):
                return MapsResult(next(numbers), keys)
            case SequenceValue(elements):
                return SequenceResult(tuple(map(result, elements)))
            case OptionalValue(inside):
                return NothingResult() if inside is None else result(inside)
            case _:
                return TensorResult(next(numbers))

    return tuple(map(result, values))


def tensor_signature(name: str, type: TensorType) -> TensorSignature:
    return TensorSignature(name, str(type.element), type.shape)


def declared_tensor(spec: TensorSpec, dims: Mapping[str, int], shapes: Shapes) -> ModelTensor:
    shape: list[Dimension] | None = None if spec.shape is None else list(spec.shape)
    if spec.name in shapes:
        shape = [int(n) for n in shapes[spec.name]]
    elif shape is not None:
        shape = [dims.get(n, n) if isinstance(n, str) else n for n in shape]
    return ModelTensor(spec.name, onnx_type(str(spec.element)) if spec.element else spec.onnx_type, shape)
