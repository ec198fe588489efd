"""The GPU target, from an optimised module to what the runtime needs: launch list, PTX and machine code, weights.

Kernels whose CUDA text is equal up to the name are one kernel, and one NVRTC run compiles them all. No GPU is needed.
"""

from dataclasses import dataclass, field

from onnxla.codegen.gpu.compile_nvrtc import compile_cuda
from onnxla.codegen.gpu.emit_cuda import emit_cuda
from onnxla.codegen.gpu.launch_list import emit_launch_list
from onnxla.codegen.gpu.schedule import lower
from onnxla.codegen.gpu.target import GpuTarget
from onnxla.codegen.kernels.ir import Kernel
from onnxla.codegen.plan import Plan
from onnxla.codegen.planner import make_plan
from onnxla.codegen.weights import WeightsImage
from onnxla.hlo.module import Module
from onnxla.hlo.names import safe_name
from onnxla.hlo.types import Array

_PLACEHOLDER = "onnxla_kernel"


@dataclass(frozen=True)
class GpuCode:
    """The code of one module."""

    objects: tuple[bytes, ...]
    """Launch list, PTX of the first architecture, machine code of each."""
    weights: Array = field(repr=False)
    plan: Plan = field(repr=False)
    source: str = field(repr=False)
    """The CUDA C++ it was made from."""
    log: str = field(repr=False)
    """What the compiler says about registers and spills."""
    kernel_count: int


def compile_gpu(module: Module, target: GpuTarget) -> GpuCode:
    """Code for an optimised module. Where no kernel computes an instruction, the error names it and its node.

    Raises DeviceError where NVRTC is missing.
    """
    image = WeightsImage()
    plan = make_plan(module, lambda instruction: lower(instruction, target), image)
    symbols, functions = _functions(plan)
    source = "\n".join(functions)
    compiled = {a: compile_cuda(source, a) for a in target.architectures} if functions else {}
    ptx = compiled[target.architecture].ptx if functions else ""
    cubins = [c.cubin for c in compiled.values()]
    launch_list = emit_launch_list(plan, symbols.__getitem__, list(compiled))
    return GpuCode(
        objects=(launch_list, ptx.encode(), *cubins),
        weights=image.finish(),
        plan=plan,
        source=source,
        log="".join(c.log for c in compiled.values()),
        kernel_count=len(functions),
    )


def _functions(plan: Plan) -> tuple[dict[Kernel, str], list[str]]:
    """A symbol for every kernel, and the text of every distinct one."""
    symbols: dict[Kernel, str] = {}
    known: dict[str, str] = {}
    functions = []
    for kernel in plan.kernels():
        text = emit_cuda(kernel, _PLACEHOLDER)
        if text not in known:
            known[text] = f"onnxla_{len(known)}_{safe_name(kernel.name).replace('-', '_')}"
            functions.append(text.replace(f" {_PLACEHOLDER}(", f" {known[text]}(", 1))
        symbols[kernel] = known[text]
    return symbols, functions
