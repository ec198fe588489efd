"""A TensorFlow model as something that can be compiled: one signature of a SavedModel, or a graph between two cuts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from onnxla.config import CompileOptions, Limits
from onnxla.frontends.tensorflow.effects import is_counter
from onnxla.frontends.tensorflow.importer import ImportedTensorFlow, import_tensorflow
from onnxla.frontends.tensorflow.model_file import TensorFlowModel
from onnxla.frontends.tensorflow.signature import interface_of
from onnxla.frontends.tensorflow.state import initial_values
from onnxla.hlo.types import Array, type_of
from onnxla.runtime.signature import ModelSignature
from onnxla.sources import Imported, Shapes, Source, declared_tensor, tensor_signature, with_needed_values


class TensorFlowSource(Source):
    """`constants` are the inputs whose values are fixed."""

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
        self.name = model.name
        self.nodes = model.node_count
        given = {name: value for name, value in (state or {}).items() if not is_counter(name)}
        self._model = replace(model, variables=model.variables.with_values(given)) if given else model
        self._options = options
        self._limits = limits
        self._constants = dict(constants)
        self._choice = {"signature": signature, "inputs": inputs, "outputs": outputs}
        self._interface = interface_of(model, signature, inputs, outputs)

    def signature(self, dims: Mapping[str, int], shapes: Shapes) -> ModelSignature:
        inputs = [p.spec for p in self._interface.inputs if p.spec.name not in self._constants]
        return ModelSignature(
            tuple(declared_tensor(s, dims, shapes) for s in inputs),
            tuple(declared_tensor(p.spec, dims, {}) for p in self._interface.outputs),
        )

    @cached_property
    def state(self) -> Mapping[str, Array]:
        """The variables that the graph assigns to, with their values in the checkpoint."""
        return initial_values(self._model, self._interface)

    def load(self, shapes: Shapes, dims: Mapping[str, int], values: Mapping[str, Array]) -> Imported:
        def importing(open_shapes: Shapes, constants: Mapping[str, Array]) -> ImportedTensorFlow:
            return import_tensorflow(
                self._model,
                shapes=open_shapes,
                dims=dims,
                constants=constants,
                options=self._options,
                limits=self._limits,
                **self._choice,
            )

        found, constants = with_needed_values(importing, self._constants, shapes, values)
        return Imported(
            module=found.module,
            inputs=tuple(tensor_signature(s.name, s.type) for s in found.inputs),
            outputs=tuple(tensor_signature(s.name, s.type) for s in found.outputs),
            constants=constants,
            state=tuple(tensor_signature(name, type_of(value)) for name, value in found.state.items()),
        )
