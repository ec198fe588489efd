"""The kernels of a model compiled for GPUs: their text, the instructions they compute, and what ptxas reports."""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from onnxla.codegen.gpu.backend import _modules, distinct_functions
from onnxla.codegen.gpu.compile_nvrtc import compile_cuda
from onnxla.codegen.gpu.schedule import lower
from onnxla.codegen.gpu.target import GpuTarget
from onnxla.codegen.kernels.ir import Kernel
from onnxla.codegen.lowering import Lowering
from onnxla.codegen.plan import Launch
from onnxla.codegen.planner import make_plan
from onnxla.codegen.weights import WeightsImage
from onnxla.compiler.onnx_source import OnnxSource
from onnxla.config import CompileOptions, Limits
from onnxla.frontends.onnx.model_file import read_model
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import Array
from onnxla.passes.pipelines import optimize
from tests.gpu.ptx_text import PtxKernel, parse_ptx


@dataclass(frozen=True)
class Resources:
    """What ptxas reports of a kernel."""

    registers: int
    spilled: int
    """Bytes stored and loaded."""
    shared: int


@dataclass
class ModelKernels:
    """What the plan of a model holds. Kernels go by a digest of their text without the name."""

    launches: int
    functions: dict[str, str]
    """CUDA C++ of each distinct kernel, by symbol."""
    digests: dict[str, str]
    """By symbol."""
    lowered: list[tuple[Instruction, Lowering]]
    symbols: dict[Kernel, str]

    def symbols_of(self, lowering: Lowering) -> list[str]:
        return [self.symbols[call.kernel] for call in lowering.calls]


@dataclass
class Compiled:
    """Kernels of all models so far, by digest."""

    resources: dict[tuple[str, str], Resources] = field(default_factory=dict)
    """By digest and architecture."""
    ptx: dict[str, PtxKernel] = field(default_factory=dict)


def planned(path: Path, inputs: Mapping[str, Array], target: GpuTarget, options: CompileOptions) -> ModelKernels:
    """Nothing is compiled. Raises an OnnxlaError for what does not lower."""
    source = OnnxSource(read_model(path), options, Limits.from_environment(), {})
    module = source.load({name: value.shape for name, value in inputs.items()}, {}, inputs).module
    optimize(module, "gpu", options)
    lowered: list[tuple[Instruction, Lowering]] = []

    def lowering(instruction: Instruction) -> Lowering:
        found = lower(instruction, target)
        lowered.append((instruction, found))
        return found

    plan = make_plan(module, lowering, WeightsImage())
    symbols, functions = distinct_functions(plan)
    digests = {symbol: _digest(text) for symbol, text in functions.items()}
    return ModelKernels(sum(isinstance(s, Launch) for s in plan.steps), functions, digests, lowered, symbols)


def _digest(function: str) -> str:
    """Of its text from the parameters on."""
    body = function[function.index("(", function.index("__launch_bounds__") + 20) :]
    return hashlib.sha256(body.encode()).hexdigest()[:16]


def compile_kernels(model: ModelKernels, architectures: Sequence[str], known: Compiled) -> None:
    """Add what `known` lacks: the resources of every kernel, and its PTX for the first architecture."""
    for architecture in architectures:
        fresh = {s: f for s, f in model.functions.items() if (model.digests[s], architecture) not in known.resources}
        for names in _modules(fresh):
            made = compile_cuda("\n".join(fresh[name] for name in names), architecture)
            for name, resources in resources_of(made.log):
                known.resources[model.digests[name], architecture] = resources
            if architecture == architectures[0]:
                kernels = parse_ptx(made.ptx)
                known.ptx |= {model.digests[name]: kernels[name] for name in names}


def resources_of(log: str) -> Iterator[tuple[str, Resources]]:
    """Of each kernel that ptxas speaks of."""
    for part in log.split("Compiling entry function '")[1:]:
        registers = re.search(r"Used (\d+) registers", part)
        assert registers, part
        shared = re.search(r"(\d+) bytes smem", part)
        spilled = sum(int(n) for n in re.findall(r"(\d+) bytes spill", part))
        yield part[: part.index("'")], Resources(int(registers[1]), spilled, int(shared[1]) if shared else 0)
