"""A StableHLO program as something that can be compiled: what JAX exports."""

from collections.abc import Mapping

from onnxla.config import CompileOptions, Limits
from onnxla.errors import InputError
from onnxla.frontends.hlo.importer import ImportedHlo, import_program
from onnxla.frontends.hlo.model_file import HloModel
from onnxla.frontends.hlo.signature import NamedForm, inputs_of, outputs_of
from onnxla.frontends.hlo.syntax import Program, TensorForm
from onnxla.hlo.types import Array
from onnxla.runtime.program import onnx_type
from onnxla.runtime.signature import Dimension, ModelSignature, ModelTensor
from onnxla.sources import HloSource, Imported, Shapes, Source, tensor_signature, with_needed_values


class StableHloSource(Source):
    """`constants` are the inputs whose values are fixed."""

    def __init__(
        self, program: Program, options: CompileOptions, limits: Limits, constants: Mapping[str, Array]
    ) -> None:
        self.name = program.name
        self.nodes = sum(1 for function in program.functions.values() for _ in function.body.walk())
        self._program = program
        self._options = options
        self._limits = limits
        self._constants = dict(constants)

    def signature(self, dims: Mapping[str, int], shapes: Shapes) -> ModelSignature:
        inputs = [i for i in inputs_of(self._program) if i.name not in self._constants]
        return ModelSignature(
            tuple(_tensor(i, dims, shapes) for i in inputs),
            tuple(_tensor(o, dims, {}) for o in outputs_of(self._program)),
        )

    def load(self, shapes: Shapes, dims: Mapping[str, int], values: Mapping[str, Array]) -> Imported:
        def importing(open_shapes: Shapes, constants: Mapping[str, Array]) -> ImportedHlo:
            return import_program(
                self._program,
                shapes=open_shapes,
                dims=dims,
                constants=constants,
                options=self._options,
                limits=self._limits,
            )

        found, constants = with_needed_values(importing, self._constants, shapes, values)
        return Imported(
            module=found.module,
            inputs=tuple(tensor_signature(i.name, i.type) for i in found.inputs),
            outputs=tuple(tensor_signature(o.name, o.type) for o in found.outputs),
            constants=constants,
        )


def source_of_hlo(model: HloModel, options: CompileOptions, limits: Limits, constants: Mapping[str, Array]) -> Source:
    """HLO of either kind as the compiler takes it. Raises InputError for constants of XLA's, whose inputs are fixed."""
    if isinstance(model, Program):
        return StableHloSource(model, options, limits, constants)
    if constants:
        raise InputError("constants= is for the inputs of ONNX, TensorFlow and StableHLO models")
    return HloSource(model)


def _tensor(named: NamedForm, dims: Mapping[str, int], shapes: Shapes) -> ModelTensor:
    if not isinstance(named.form, TensorForm):
        return ModelTensor(named.name, str(named.form), None)
    shape: list[Dimension] = [dims.get(d, d) if isinstance(d, str) else d for d in named.dimensions]
    if named.name in shapes:
        shape = [int(n) for n in shapes[named.name]]
    return ModelTensor(named.name, onnx_type(str(named.form.element)), shape)
