"""The CPU target, from an optimised module to what the runtime needs: objects, weights, sizes and the plan."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from onnxla import watch
from onnxla.codegen.choices import Choices, Decision
from onnxla.codegen.cost import Machine
from onnxla.codegen.cpu.emit_llvm import emitter
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
    decisions: tuple[Decision, ...]
    """Where there were several ways to compute something, and which was taken."""


def compile_cpu(
    module: Module, target: Target, options: CompileOptions, known: Mapping[str, Decision] | None = None
) -> CompiledCode:
    """Code for an optimised module. Where no kernel computes an instruction, the error names it and its node.

    `known` are decisions that were measured, by site.
    """
    image = WeightsImage()
    direct_only = options.precision == "highest"
    choices = Choices(Machine.stated(target), known)
    with watch.span("kernels: planning", 0.0, 0.25):
        plan = make_plan(
            module, lambda instruction: lower(instruction, target, direct_only=direct_only, choices=choices), image
        )
    with watch.span("kernels", 0.25, 1.0):
        code = generate_code(plan, target, emitter(target), options.opt_level)
    return CompiledCode(
        objects=code.objects,
        weights=image.finish(),
        arena_bytes=plan.arena_bytes,
        inputs=plan.inputs,
        outputs=plan.outputs,
        plan=plan,
        code=code,
        target=target,
        decisions=tuple(choices.decisions.values()),
    )
