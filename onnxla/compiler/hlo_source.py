"""HLO as something that can be compiled: a module of XLA's, or a StableHLO program, which is what JAX exports."""

from collections.abc import Mapping, Sequence

from onnxla.compiler.sources import Imported, OpenSource, Shapes, Source, tensor_signature
from onnxla.config import CompileOptions, Limits
from onnxla.errors import HloError, InputError
from onnxla.frontends.hlo.importer import ImportedHlo, import_program
from onnxla.frontends.hlo.model_file import HloModel
from onnxla.frontends.hlo.signature import signature_of
from onnxla.frontends.hlo.syntax import Program
from onnxla.frontends.signature import Signature
from onnxla.hlo.module import Computation, Instruction, Module
from onnxla.hlo.ops.structural import GetTupleElement, Tuple
from onnxla.hlo.parser import parse_module, weights_from
from onnxla.hlo.printer import long_constants, print_module
from onnxla.hlo.types import Array, TensorType, TupleType
from onnxla.runtime.signature import ModelSignature, model_tensor
from onnxla.runtime.tensors import TensorSignature


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
