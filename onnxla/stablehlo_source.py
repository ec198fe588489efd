"""A StableHLO program as something that can be compiled: what JAX exports."""

from collections.abc import Mapping

from onnxla.config import CompileOptions, Limits
from onnxla.errors import InputError
from onnxla.frontends.hlo.importer import ImportedHlo, import_program
from onnxla.frontends.hlo.model_file import HloModel
from onnxla.frontends.hlo.signature import signature_of
from onnxla.frontends.hlo.syntax import Program
from onnxla.frontends.signature import Signature
from onnxla.hlo.types import Array
from onnxla.sources import HloSource, OpenSource, Shapes, Source


class StableHloSource(OpenSource[ImportedHlo]):
    """A program of StableHLO."""

    def __init__(
        self, program: Program, options: CompileOptions, limits: Limits, constants: Mapping[str, Array]
    ) -> None:
        super().__init__(options, limits, constants)
        self.name = program.name
        self.nodes = sum(1 for function in program.functions.values() for _ in function.body.walk())
        self._program = program

    def declared(self) -> Signature:
        return signature_of(self._program)

    def imported(self, shapes: Shapes, dims: Mapping[str, int], constants: Mapping[str, Array]) -> ImportedHlo:
        return import_program(
            self._program, shapes=shapes, dims=dims, constants=constants, options=self._options, limits=self._limits
        )


def source_of_hlo(model: HloModel, options: CompileOptions, limits: Limits, constants: Mapping[str, Array]) -> Source:
    """HLO of either kind as the compiler takes it. Raises InputError for constants of XLA's, whose inputs are fixed."""
    if isinstance(model, Program):
        return StableHloSource(model, options, limits, constants)
    if constants:
        raise InputError("constants= is for the inputs of ONNX, TensorFlow and StableHLO models")
    return HloSource(model)
