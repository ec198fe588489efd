"""The GPU target, from an optimised module to what the runtime needs: launch list, PTX and machine code, weights.

Kernels whose CUDA text is equal up to the name are one kernel. Some kernels are compiled together, as one module, and
modules in several processes at once. No GPU is needed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from onnxla import watch
from onnxla.codegen.gpu.compile_parallel import compile_sources
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
_MODULE_CHARACTERS = 50_000
"""CUDA C++ of a module: each costs NVRTC a tenth of a second, and only modules are compiled side by side."""


@dataclass(frozen=True)
class GpuCode:
    """The code of one module."""

    objects: tuple[bytes, ...]
    """Launch list; then of each module PTX of the first architecture and machine code of each."""
    weights: Array = field(repr=False)
    plan: Plan = field(repr=False)
    source: str = field(repr=False)
    """The CUDA C++ it was made from."""
    ptx: str = field(repr=False)
    """Of all modules, for the first architecture."""
    log: str = field(repr=False)
    """What the compiler says about registers and spills."""
    symbols: Mapping[Kernel, str]
    functions: Mapping[str, str]
    """The CUDA C++ of every distinct kernel, by symbol."""


def compile_gpu(module: Module, target: GpuTarget) -> GpuCode:
    """Code for an optimised module. Where no kernel computes an instruction, the error names it and its node.

    Raises DeviceError where NVRTC is missing.
    """
    image = WeightsImage()
    with watch.span("kernels: planning", 0.0, 0.2):
        plan = make_plan(module, lambda instruction: lower(instruction, target.of(instruction)), image)
    symbols, functions = distinct_functions(plan)
    parts = _modules(functions)
    sources = ["\n".join(functions[name] for name in part) for part in parts]
    architectures = target.architectures
    with watch.span("kernels", 0.2, 1.0):
        compiled = compile_sources([(source, a) for source in sources for a in architectures])
    objects = [emit_launch_list(plan, symbols.__getitem__, architectures if parts else (), parts)]
    for k in range(0, len(compiled), len(architectures)):
        objects += [compiled[k].ptx.encode(), *(c.cubin for c in compiled[k : k + len(architectures)])]
    return GpuCode(
        objects=tuple(objects),
        weights=image.finish(),
        plan=plan,
        source="\n".join(sources),
        ptx="\n".join(c.ptx for c in compiled[:: len(architectures)]),
        log="".join(c.log for c in compiled),
        symbols=symbols,
        functions=functions,
    )


def _modules(functions: dict[str, str]) -> list[list[str]]:
    """Names of kernels in their order, in lists of about _MODULE_CHARACTERS of text. How many CPUs there are does not
    matter: equal models give equal artifacts."""
    parts: list[list[str]] = []
    size = 0
    for name, text in functions.items():
        if not parts or size + len(text) > _MODULE_CHARACTERS:
            parts.append([])
            size = 0
        parts[-1].append(name)
        size += len(text)
    return parts


def distinct_functions(plan: Plan) -> tuple[dict[Kernel, str], dict[str, str]]:
    """A symbol for every kernel, and the text of every distinct one by symbol."""
    symbols: dict[Kernel, str] = {}
    known: dict[str, str] = {}
    functions = {}
    for kernel in plan.kernels():
        text = emit_cuda(kernel, _PLACEHOLDER)
        if text not in known:
            known[text] = f"onnxla_{len(known)}_{safe_name(kernel.name).replace('-', '_')}"
            functions[known[text]] = text.replace(f" {_PLACEHOLDER}(", f" {known[text]}(", 1)
        symbols[kernel] = known[text]
    return symbols, functions
