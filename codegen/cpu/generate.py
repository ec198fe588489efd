"""From a plan to object code: each distinct kernel once, kernels in batches, and the plan's own function.

Kernels whose LLVM text is equal up to the name are one function, so the twenty distinct convolutions of a network are
compiled twenty times, not fifty.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from onnxla import watch
from onnxla.codegen.cpu.compile_llvm import LAUNCH_LEVEL
from onnxla.codegen.cpu.compile_parallel import compile_modules
from onnxla.codegen.cpu.emit_plan import emit_plan
from onnxla.codegen.cpu.target import Target
from onnxla.codegen.kernels.ir import Kernel
from onnxla.codegen.plan import Plan
from onnxla.hlo.names import safe_name

Emit = Callable[[Kernel, str], str]
"""Prints a kernel as LLVM text under a symbol."""

_BATCH_LINES = 4000
_PLACEHOLDER = "onnxla_kernel"


@dataclass(frozen=True)
class NativeCode:
    """Objects, one of which defines the entry, and the LLVM IR they were made from."""

    objects: tuple[bytes, ...]
    texts: tuple[str, ...]
    """LLVM IR of each object, before optimisation; the last is the plan's."""
    symbols: Mapping[Kernel, str]
    functions: Mapping[str, str]
    """The LLVM IR of every distinct kernel, by symbol."""


def generate_code(
    plan: Plan, target: Target, emit: Emit, opt_level: int = 2, processes: int | None = None
) -> NativeCode:
    """The native code of a plan. Deterministic: equal plans give equal bytes."""
    with watch.span("kernels: LLVM IR", 0.0, 0.1):
        symbols, functions = distinct_functions(plan, emit)
    texts = kernel_modules(list(functions.values()), target)
    texts.append(emit_plan(plan, symbols.__getitem__, target.triple))
    # The plan only stores pointers and calls; optimising thousands of launches would take seconds for nothing.
    levels = [opt_level] * (len(texts) - 1) + [LAUNCH_LEVEL]
    with watch.span("kernels: machine code", 0.1, 1.0):
        objects = compile_modules(list(zip(texts, levels, strict=True)), target, processes)
    return NativeCode(tuple(objects), tuple(texts), symbols, functions)


def kernel_modules(functions: list[str], target: Target) -> list[str]:
    """LLVM modules of some functions each, which make about as much work."""
    head = f'target triple = "{target.triple}"\n\n'
    return [head + "\n".join(batch) for batch in _batches(functions)]


def distinct_functions(plan: Plan, emit: Emit) -> tuple[dict[Kernel, str], dict[str, str]]:
    """A symbol for every kernel, and the text of every distinct one by symbol."""
    symbols: dict[Kernel, str] = {}
    known: dict[str, str] = {}
    functions: dict[str, str] = {}
    kernels = plan.kernels()
    for done, kernel in enumerate(kernels):
        watch.part_done(done / len(kernels))
        text = emit(kernel, _PLACEHOLDER)
        if text not in known:
            known[text] = f"onnxla_{len(known)}_{safe_name(kernel.name).replace('-', '_')}"
            functions[known[text]] = text.replace(f"@{_PLACEHOLDER}(", f"@{known[text]}(", 1)
        symbols[kernel] = known[text]
    return symbols, functions


def _batches(functions: list[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    lines = 0
    for function in functions:
        size = function.count("\n")
        if batch and lines + size > _BATCH_LINES:
            yield batch
            batch, lines = [], 0
        batch.append(function)
        lines += size
    if batch:
        yield batch
