"""All that the page shows of a program: its HLO, its plan, and the code of each distinct kernel.

A dump has it at hand. An artifact has the HLO, from which the plan and the kernels' code follow: they are made again,
weights apart, and code is shown only where its digest is that of the code in the artifact.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from onnxla.codegen.choices import Choices, read_decisions
from onnxla.codegen.cost import Machine
from onnxla.codegen.cpu.compile_parallel import assemble_modules
from onnxla.codegen.cpu.emit_llvm import emitter
from onnxla.codegen.cpu.generate import distinct_functions
from onnxla.codegen.cpu.target import Target, parse_target
from onnxla.codegen.gpu import backend as gpu_backend
from onnxla.codegen.gpu import schedule as gpu_schedule
from onnxla.codegen.gpu.target import GpuTarget
from onnxla.codegen.kernels.ir import Kernel
from onnxla.codegen.kernels.schedule import lower
from onnxla.codegen.plan import Plan
from onnxla.codegen.planner import make_plan
from onnxla.codegen.weights import WeightsImage
from onnxla.errors import ArtifactError, OnnxlaError
from onnxla.hlo.module import Module
from onnxla.hlo.parser import parse_module, zero_weights
from onnxla.inside.kernel_code import KernelCode, cpu_code, gpu_code
from onnxla.runtime.device import read_objects
from onnxla.runtime.digest import digest_of
from onnxla.runtime.program import GPU_TRIPLE, Program

CODE_STAGE = "code"
"""The stage of a program that lists its kernels: symbol and digest of the LLVM IR or CUDA C++."""
RESOURCES_STAGE = "resources"
DECISIONS_STAGE = "decisions"
"""Where there were several ways to compute a kernel: what was predicted, measured and chosen."""


@dataclass(frozen=True)
class Inside:
    """What the compiler made of one module, on its way to a program."""

    module: Module
    """After the passes. Where it was read back, weights are zeros."""
    plan: Plan
    symbols: Mapping[Kernel, str]
    code: Mapping[str, KernelCode]
    """By symbol."""
    notes: tuple[str, ...] = ()
    """What is missing, and why."""


def code_index(functions: Mapping[str, str]) -> str:
    """The text of CODE_STAGE."""
    return "".join(f"{symbol}  {digest_of(text.encode())}\n" for symbol, text in functions.items())


def listed(functions: Mapping[str, str], target: Target, level: int) -> dict[str, KernelCode]:
    """The code of kernels for a CPU: their LLVM IR, and the assembly made of it as objects are, each on its own."""
    head = f'target triple = "{target.triple}"\n\n'
    assemblies = assemble_modules([(head + text, level) for text in functions.values()], target)
    return {symbol: cpu_code(text, made) for (symbol, text), made in zip(functions.items(), assemblies, strict=True)}


def inside_of(program: Program, about: Mapping[str, Any]) -> Inside:
    """What is inside a program, from its HLO. `about` says for what it was made. Raises ArtifactError without HLO."""
    texts = program.texts
    if "optimized_hlo" not in texts or CODE_STAGE not in texts:
        raise ArtifactError("the compiled model holds no HLO to look at; compile it again")
    try:
        module = parse_module(texts["optimized_hlo"], weights=zero_weights)
        options = dict(about.get("options", {}))
        if program.triple == GPU_TRIPLE:
            tf32, kept = options.get("precision") == "tf32", options.get("keep_f32", ())
            made_for = str(options.get("target_gpu", about["target"]))
            return _of_gpu(program, module, GpuTarget.named(made_for, tf32, kept))
        return _of_cpu(program, module, parse_target(str(about["target"])), options)
    except (OnnxlaError, KeyError, ValueError) as error:
        raise ArtifactError(f"the HLO in the compiled model cannot be read back: {error}") from error


def _of_cpu(program: Program, module: Module, target: Target, options: Mapping[str, Any]) -> Inside:
    direct_only = options.get("precision") == "highest"
    choices = Choices(Machine.stated(target), read_decisions(program.texts.get(DECISIONS_STAGE, "")))
    plan = make_plan(module, lambda i: lower(i, target, direct_only=direct_only, choices=choices), WeightsImage())
    symbols, functions = distinct_functions(plan, emitter(target))
    known, notes = _verified(program, functions)
    return Inside(module, plan, symbols, listed(known, target, int(options.get("opt_level", 2))), notes)


def _of_gpu(program: Program, module: Module, target: GpuTarget) -> Inside:
    plan = make_plan(module, lambda i: gpu_schedule.lower(i, target.of(i)), WeightsImage())
    symbols, functions = gpu_backend.distinct_functions(plan)
    known, notes = _verified(program, functions)
    modules, _ = read_objects(program.objects)
    ptx = "\n".join(code.ptx for code in modules)
    return Inside(module, plan, symbols, gpu_code(known, ptx, program.texts.get(RESOURCES_STAGE, "")), notes)


def _verified(program: Program, functions: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """The functions that the program has, by their digests."""
    index = dict(line.split("  ") for line in program.texts[CODE_STAGE].splitlines())
    known = {symbol: text for symbol, text in functions.items() if index.get(symbol) == digest_of(text.encode())}
    missing = len(index) - len(known)
    if not missing:
        return known, ()
    return known, (f"this onnxla makes other code than the artifact holds for {missing} of {len(index)} kernels",)
