"""Compile several LLVM modules at once. LLVM is behind one lock in a process, so only processes work side by side.

A worker is this file run as a module in a fresh interpreter: nothing of the caller's program is imported again, as
`multiprocessing` would. It reads one request (JSON) from standard input and answers with length-prefixed objects. The
objects are the same bytes however the work is shared.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence

from onnxla.codegen.cpu.compile_llvm import compile_module
from onnxla.codegen.cpu.target import Target, parse_target
from onnxla.errors import InternalError, OnnxlaError

_WORKER_LINES = 8_000
"""Lines of IR that compile in about the time it takes a worker to start."""
_MOST_WORKERS = 8


def compile_modules(modules: Sequence[tuple[str, int]], target: Target, processes: int | None = None) -> list[bytes]:
    """The object code of several modules (LLVM IR and the level to optimise it at), in order.

    `processes` is how many to use, this one included; None decides by the amount of text and the CPUs at hand.
    """
    if processes is None:
        lines = sum(text.count("\n") for text, _ in modules)
        processes = min(_cpus(), 1 + lines // _WORKER_LINES, _MOST_WORKERS) if sys.executable else 1
    own, *shares = _shares([len(text) for text, _ in modules], max(1, min(processes, len(modules))))
    workers = [_start([modules[k] for k in share], target) for share in shares]
    try:
        objects = {k: compile_module(modules[k][0], target, modules[k][1]) for k in own}
        for share, worker in zip(shares, workers, strict=True):
            objects.update(zip(share, _answer(worker, len(share)), strict=True))
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()
    return [objects[k] for k in range(len(modules))]


def _cpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _shares(sizes: Sequence[int], count: int) -> list[list[int]]:
    """The indices of `sizes` in `count` lists of about equal sum: the largest first, each to the least loaded."""
    shares: list[list[int]] = [[] for _ in range(count)]
    load = [0] * count
    for k in sorted(range(len(sizes)), key=lambda k: (-sizes[k], k)):
        least = load.index(min(load))
        shares[least].append(k)
        load[least] += sizes[k]
    return shares


def _start(modules: Sequence[tuple[str, int]], target: Target) -> "subprocess.Popen[bytes]":
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    worker = subprocess.Popen(
        [sys.executable, "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    )
    assert worker.stdin is not None
    try:
        worker.stdin.write(json.dumps({"modules": modules, "target": str(target)}).encode())
        worker.stdin.close()
    except BrokenPipeError:
        pass  # It died; the answer will say so.
    worker.stdin = None
    return worker


def _answer(worker: "subprocess.Popen[bytes]", count: int) -> list[bytes]:
    output, errors = worker.communicate()
    if worker.returncode != 0:
        raise InternalError(f"a compile worker failed ({worker.returncode}): {errors.decode(errors='replace').strip()}")
    objects = []
    for _ in range(count):
        size = int.from_bytes(output[:8], "little")
        objects.append(output[8 : 8 + size])
        output = output[8 + size :]
    return objects


def _serve() -> int:
    request = json.load(sys.stdin.buffer)
    target = parse_target(request["target"])
    try:
        objects = [compile_module(text, target, level) for text, level in request["modules"]]
    except OnnxlaError as error:
        print(error, file=sys.stderr)
        return 1
    for code in objects:
        sys.stdout.buffer.write(len(code).to_bytes(8, "little") + code)
    return 0


if __name__ == "__main__":
    sys.exit(_serve())
