"""Compile several CUDA sources at once, in processes: `codegen/workers.py` says why."""

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from onnxla.codegen.gpu.compile_nvrtc import CompiledKernel, compile_cuda, require_architecture
from onnxla.codegen.workers import process_count, serve, shared_out

_WORKER_CHARACTERS = 40_000
"""CUDA C++ that compiles in about the time it takes a worker to start."""


def compile_sources(jobs: Sequence[tuple[str, str]], processes: int | None = None) -> list[CompiledKernel]:
    """What NVRTC makes of each source for its architecture, in order; the errors are those of `compile_cuda`.

    `processes` is how many to use, this one included; None decides by the amount of text and the CPUs at hand.
    """
    for architecture in dict.fromkeys(architecture for _, architecture in jobs):
        require_architecture(architecture)
    sizes = [len(source) for source, _ in jobs]
    if processes is None:
        processes = process_count(sum(sizes), _WORKER_CHARACTERS)
    packed = shared_out(
        sizes,
        processes,
        lambda k: compile_cuda(*jobs[k]).pack(),
        "onnxla.codegen.gpu.compile_parallel",
        lambda share: [jobs[k] for k in share],
    )
    return [CompiledKernel.unpack(data) for data in packed]


def _work(request: Any) -> Iterator[bytes]:
    for source, architecture in request:
        yield compile_cuda(source, architecture).pack()


if __name__ == "__main__":
    sys.exit(serve(_work))
