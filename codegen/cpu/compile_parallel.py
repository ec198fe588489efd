"""Compile several LLVM modules at once, in processes: `codegen/workers.py` says why.

The objects are the same bytes however the work is shared.
"""

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from onnxla.codegen.cpu.compile_llvm import assembly, compile_module
from onnxla.codegen.cpu.target import Target, parse_target
from onnxla.codegen.workers import process_count, serve, shared_out

_WORKER_LINES = 8_000
"""Lines of IR that compile in about the time it takes a worker to start."""


def compile_modules(modules: Sequence[tuple[str, int]], target: Target, processes: int | None = None) -> list[bytes]:
    """The object code of several modules (LLVM IR and the level to optimise it at), in order.

    `processes` is how many to use, this one included; None decides by the amount of text and the CPUs at hand.
    """
    if processes is None:
        processes = process_count(sum(text.count("\n") for text, _ in modules), _WORKER_LINES)
    return shared_out(
        [len(text) for text, _ in modules],
        processes,
        lambda k: compile_module(modules[k][0], target, modules[k][1]),
        "onnxla.codegen.cpu.compile_parallel",
        lambda share: {"modules": [modules[k] for k in share], "target": str(target)},
    )


def assemble_modules(modules: Sequence[tuple[str, int]], target: Target, processes: int | None = None) -> list[str]:
    """The assembly of several modules, as `compile_modules` makes objects of them."""
    if processes is None:
        processes = process_count(sum(text.count("\n") for text, _ in modules), _WORKER_LINES)
    texts = shared_out(
        [len(text) for text, _ in modules],
        processes,
        lambda k: assembly(modules[k][0], target, modules[k][1]).encode(),
        "onnxla.codegen.cpu.compile_parallel",
        lambda share: {"modules": [modules[k] for k in share], "target": str(target), "assembly": True},
    )
    return [text.decode() for text in texts]


def _work(request: Any) -> Iterator[bytes]:
    target = parse_target(request["target"])
    for text, level in request["modules"]:
        if request.get("assembly"):
            yield assembly(text, target, level).encode()
        else:
            yield compile_module(text, target, level)


if __name__ == "__main__":
    sys.exit(serve(_work))
