"""A TensorFlow model as something that can be compiled: one signature of a SavedModel, or a graph between two cuts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from onnxla.compiler.sources import Imported, OpenSource, Shapes, tensor_signature
from onnxla.config import CompileOptions, Limits
from onnxla.frontends.signature import Signature
from onnxla.frontends.tensorflow.effects import is_counter
from onnxla.frontends.tensorflow.importer import ImportedTensorFlow, import_tensorflow
from onnxla.frontends.tensorflow.model_file import TensorFlowModel
from onnxla.frontends.tensorflow.signature import interface_of
from onnxla.frontends.tensorflow.state import initial_values
from onnxla.hlo.types import Array, type_of


class TensorFlowSource(OpenSource[ImportedTensorFlow]):
    """A signature, or a graph between `inputs` and `outputs`."""

    def __init__(
        self,
        model: TensorFlowModel,
        options: CompileOptions,
        limits: Limits,
        constants: Mapping[str, Array],
        signature: str | None = None,
        inputs: Sequence[str] | None = None,
        outputs: Sequence[str] | None = None,
        state: Mapping[str, Array] | None = None,
    ) -> None:
        """`state` gives values of variables instead of the checkpoint's. Raises InputError for names there are not."""
        super().__init__(options, limits, constants)
        self.name = model.name
        self.nodes = model.node_count
        given = {name: value for name, value in (state or {}).items() if not is_counter(name)}
        self._model = replace(model, variables=model.variables.with_values(given)) if given else model
        self._choice = {"signature": signature, "inputs": inputs, "outputs": outputs}
        self._interface = interface_of(model, signature, inputs, outputs)

    def declared(self) -> Signature:
        return Signature(tuple(p.spec for p in self._interface.inputs), tuple(p.spec for p in self._interface.outputs))

    @cached_property
    def state(self) -> Mapping[str, Array]:
        """The variables that the graph assigns to, with their values in the checkpoint."""
        return initial_values(self._model, self._interface)

    def imported(self, shapes: Shapes, dims: Mapping[str, int], constants: Mapping[str, Array]) -> ImportedTensorFlow:
        return import_tensorflow(
            self._model,
            shapes=shapes,
            dims=dims,
            constants=constants,
            options=self._options,
            limits=self._limits,
            **self._choice,
        )

    def completed(self, found: ImportedTensorFlow, plain: Imported) -> Imported:
        return replace(plain, state=tuple(tensor_signature(n, type_of(value)) for n, value in found.state.items()))
