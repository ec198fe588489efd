"""`explain`: what an import would say about HLO, as data and without raising."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from onnxla.config import CompileOptions, Limits
from onnxla.frontends.hlo.importer import try_import
from onnxla.frontends.hlo.model_file import HloModel
from onnxla.frontends.hlo.signature import signature_of
from onnxla.frontends.model_report import ModelReport
from onnxla.frontends.signature import Signature, TensorSpec
from onnxla.hlo.module import Instruction, Module
from onnxla.hlo.ops.structural import Tuple
from onnxla.hlo.types import Array


@dataclass(frozen=True)
class Report(ModelReport):
    """A program; its operations include those of functions and regions."""

    language: str
    """`HLO`, whose operations are all known once the text reads, or `StableHLO`."""

    def heading(self) -> str:
        return f"{self.name}: {self.language}, {self.total} operations of {len(self.operators)} kinds"

    def facts(self) -> Mapping[str, object]:
        return {"language": self.language}


def explain(
    model: HloModel,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    dims: Mapping[str, int] | None = None,
    constants: Mapping[str, Array] | None = None,
    options: CompileOptions | None = None,
    limits: Limits | None = None,
) -> Report:
    """Import the program and report every problem. Raises InputError for names that there are not."""
    if isinstance(model, Module):
        return _of_module(model)
    operations = [o.name for function in model.functions.values() for o in function.body.walk()]
    problems = try_import(model, shapes=shapes, dims=dims, constants=constants, options=options, limits=limits)
    return Report(model.name, signature_of(model), dict(Counter(operations).most_common()), problems, "StableHLO")


def _of_module(module: Module) -> Report:
    root = module.entry.root
    results = root.operands if isinstance(root.op, Tuple) else (root,)
    opcodes = [i.op.opcode for c in module.computations() for i in c.instructions()]
    signature = Signature(tuple(map(_of_instruction, module.entry.parameters)), tuple(map(_of_instruction, results)))
    return Report(module.name, signature, dict(Counter(opcodes).most_common()), (), "HLO")


def _of_instruction(instruction: Instruction) -> TensorSpec:
    type = instruction.tensor_type
    return TensorSpec(instruction.name, type.element, type.shape, str(type))
