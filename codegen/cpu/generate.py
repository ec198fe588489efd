"""From a plan to object code: each distinct kernel once, kernels in batches, and the plan's own function.

Kernels whose LLVM text is equal up to the name are one function, so the twenty distinct convolutions of a network are
compiled twenty times, not fifty.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

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
    kernel_count: int
    """Distinct kernels."""


def generate_code(
    plan: Plan, target: Target, emit: Emit, opt_level: int = 2, processes: int | None = None
) -> NativeCode:
    """The native code of a plan. Deterministic: equal plans give equal bytes."""
    symbols, functions = _functions(plan, emit)
    head = f'target triple = "{target.triple}"\n\n'
    texts = [head + "\n".join(batch) for batch in _batches(functions)]
    texts.append(emit_plan(plan, symbols.__getitem__, target.triple))
    # The plan only stores pointers and calls; optimising thousands of launches would take seconds for nothing.
    levels = [opt_level] * (len(texts) - 1) + [LAUNCH_LEVEL]
    objects = compile_modules(list(zip(texts, levels, strict=True)), target, processes)
    return NativeCode(tuple(objects), tuple(texts), len(functions))


def _functions(plan: Plan, emit: Emit) -> tuple[dict[Kernel, str], list[str]]:
    """A symbol for every kernel, and the text of every distinct one."""
    symbols: dict[Kernel, str] = {}
    known: dict[str, str] = {}
    functions = []
    for kernel in plan.kernels():
        text = emit(kernel, _PLACEHOLDER)
        if text not in known:
            known[text] = f"onnxla_{len(known)}_{safe_name(kernel.name).replace('-', '_')}"
            functions.append(text.replace(f"@{_PLACEHOLDER}(", f"@{known[text]}(", 1))
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
