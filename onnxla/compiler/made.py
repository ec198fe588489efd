"""What a target makes of a module, which passes have rewritten: the plan, code, weights, and texts of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from onnxla.codegen.choices import Decision, print_decisions
from onnxla.codegen.cpu.backend import compile_cpu
from onnxla.codegen.cpu.compile_llvm import assembly
from onnxla.codegen.cpu.target import Target
from onnxla.codegen.gpu.backend import compile_gpu
from onnxla.codegen.gpu.target import GpuTarget
from onnxla.codegen.kernels.ir import Kernel
from onnxla.codegen.plan import Plan
from onnxla.config import CompileOptions
from onnxla.hlo.module import Module
from onnxla.hlo.types import Array
from onnxla.inside.inside import CODE_STAGE, DECISIONS_STAGE, RESOURCES_STAGE, code_index, listed
from onnxla.inside.kernel_code import KernelCode, gpu_code, lasting_log
from onnxla.runtime.program import GPU_TRIPLE
from onnxla.runtime.thread_pool_code import assemble_thread_pool


@dataclass(frozen=True)
class Made:
    """What a target made of a module."""

    plan: Plan
    objects: tuple[bytes, ...]
    thread_pool: bytes
    weights: Array
    triple: str
    cpu: str
    features: tuple[str, ...]
    symbols: Mapping[Kernel, str]
    code: Callable[[], Mapping[str, KernelCode]]
    """The code of each kernel, by symbol."""
    dumps: Callable[[], dict[str, str]]
    """Further texts for a dump, by file name."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Further stages."""


def made_for_cpu(module: Module, target: Target, options: CompileOptions, known: Mapping[str, Decision]) -> Made:
    """Native code for a CPU; `known` decides between ways to compute a kernel."""
    code, level = compile_cpu(module, target, options, known), options.opt_level

    def dumps() -> dict[str, str]:
        """LLVM IR and assembly of each object."""
        files = {f"code-{k:02d}.ll": text for k, text in enumerate(code.code.texts)}
        return files | {f"code-{k:02d}.s": assembly(text, target, level) for k, text in enumerate(code.code.texts)}

    return Made(
        plan=code.plan,
        objects=tuple(code.objects),
        thread_pool=assemble_thread_pool(target.triple),
        weights=code.weights,
        triple=target.triple,
        cpu=target.cpu,
        features=target.features,
        symbols=code.code.symbols,
        code=lambda: listed(code.code.functions, target, level),
        dumps=dumps,
        texts={
            CODE_STAGE: code_index(code.code.functions),
            DECISIONS_STAGE: print_decisions(code.decisions),
        },
    )


def made_for_gpu(module: Module, target: GpuTarget) -> Made:
    """A launch list, and code for an NVIDIA GPU."""
    code = compile_gpu(module, target)
    return Made(
        plan=code.plan,
        objects=code.objects,
        thread_pool=b"",
        weights=code.weights,
        triple=GPU_TRIPLE,
        cpu=target.architecture,
        features=(),
        symbols=code.symbols,
        code=lambda: gpu_code(code.functions, code.ptx, code.log),
        texts={
            "cuda": code.source,
            CODE_STAGE: code_index(code.functions),
            RESOURCES_STAGE: lasting_log(code.log),
        },
        dumps=lambda: {"code.cu": code.source, "code.ptx": code.ptx, "ptxas.log": code.log},
    )
