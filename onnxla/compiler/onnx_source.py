"""An ONNX model as something that can be compiled."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

from onnxla.compiler.sources import Imported, OpenSource, Shapes
from onnxla.config import CompileOptions, Limits
from onnxla.frontends.onnx.external_data import external_locations
from onnxla.frontends.onnx.importer import ImportedModel, import_model
from onnxla.frontends.onnx.model_file import OnnxModel
from onnxla.frontends.onnx.signature import signature_of
from onnxla.frontends.onnx.values import ChosenStrings, MapsValue, OptionalValue, SequenceValue, StringConstant, Value
from onnxla.frontends.signature import Signature
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import Array
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
