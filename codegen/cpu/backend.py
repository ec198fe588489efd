"""The CPU target, from an optimised module to what the runtime needs: objects, weights, sizes and the plan."""

from dataclasses import dataclass, field

from onnxla import watch
from onnxla.codegen.cpu.emit_llvm import emit_kernel
from onnxla.codegen.cpu.generate import NativeCode, generate_code
from onnxla.codegen.cpu.target import Target
from onnxla.codegen.kernels.schedule import lower
from onnxla.codegen.plan import Plan
from onnxla.codegen.planner import make_plan
from onnxla.codegen.weights import WeightsImage
from onnxla.config import CompileOptions
from onnxla.hlo.module import Module
from onnxla.hlo.types import Array, TensorType


@dataclass(frozen=True)
class CompiledCode:
    """Native code of one module, not yet linked."""

    objects: tuple[bytes, ...]
    """Object files; one defines `onnxla_run`."""
    weights: Array = field(repr=False)
    """Read-only uint8, the base page-aligned, mapped from a temporary file that vanishes with it."""
    arena_bytes: int
    inputs: tuple[TensorType, ...]
    outputs: tuple[TensorType, ...]
    plan: Plan = field(repr=False)
    code: NativeCode = field(repr=False)
    """The LLVM IR it was made from, for dumps."""
    target: Target


def compile_cpu(module: Module, target: Target, options: CompileOptions) -> CompiledCode:
    """Code for an optimised module. Where no kernel computes an instruction, the error names it and its node."""
    image = WeightsImage()
    direct_only = options.precision == "highest"
    with watch.span("kernels: planning", 0.0, 0.25):
        plan = make_plan(module, lambda instruction: lower(instruction, target, direct_only=direct_only), image)
    with watch.span("kernels", 0.25, 1.0):
        code = generate_code(plan, target, emit_kernel, options.opt_level)
    return CompiledCode(
        objects=code.objects,
        weights=image.finish(),
        arena_bytes=plan.arena_bytes,
        inputs=plan.inputs,
        outputs=plan.outputs,
        plan=plan,
        code=code,
        target=target,
    )
