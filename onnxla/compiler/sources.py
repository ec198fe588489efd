"""What can be compiled: a model of any format, behind one small interface for the compiler."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeAlias, TypeVar

from onnxla.config import CompileOptions, Limits
from onnxla.errors import CompileError, UnboundDimensionsError
from onnxla.frontends.signature import Signature, TensorSpec
from onnxla.hlo.module import Module
from onnxla.hlo.types import Array, TensorType
from onnxla.runtime.results import Result
from onnxla.runtime.signature import Dimension, ModelSignature, ModelTensor
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


def tensor_signature(name: str, type: TensorType) -> TensorSignature:
    return TensorSignature(name, str(type.element), type.shape)


def declared_tensor(spec: TensorSpec, dims: Mapping[str, int], shapes: Shapes) -> ModelTensor:
    shape: list[Dimension] | None = None if spec.shape is None else list(spec.shape)
    if spec.name in shapes:
        shape = [int(n) for n in shapes[spec.name]]
    elif shape is not None:
        shape = [dims.get(n, n) if isinstance(n, str) else n for n in shape]
    return ModelTensor(spec.name, onnx_type(str(spec.element)) if spec.element else spec.onnx_type, shape)
