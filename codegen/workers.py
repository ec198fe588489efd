"""Compile in several processes: LLVM and NVRTC are each behind one lock in a process, so threads do not help.

A worker is a module run in a fresh interpreter: nothing of the caller's program is imported again, as
`multiprocessing` would. It reads one request (JSON) from standard input and answers with length-prefixed bytes.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

from onnxla.errors import InternalError, OnnxlaError

MOST_PROCESSES = 8


def process_count(size: int, size_of_a_start: int) -> int:
    """How many processes suit work of some size, when a process takes as long to start as `size_of_a_start` takes."""
    return min(_cpus(), 1 + size // size_of_a_start, MOST_PROCESSES) if sys.executable else 1


def shared_out(
    sizes: Sequence[int],
    processes: int,
    own: Callable[[int], bytes],
    module: str,
    request: Callable[[list[int]], Any],
) -> list[bytes]:
    """The results of jobs 0, 1, ... of these sizes, in order, made by `processes` processes, this one included.

    `own(k)` does job k here. `module`, run as a worker, calls `serve` and is asked `request(jobs)`.
    Raises InternalError where a worker fails.
    """
    mine, *others = _shares(sizes, max(1, min(processes, len(sizes))))
    workers = [_start(module, request(share)) for share in others]
    try:
        results = {k: own(k) for k in mine}
        for share, worker in zip(others, workers, strict=True):
            results.update(zip(share, _answer(worker, len(share)), strict=True))
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()
    return [results[k] for k in range(len(sizes))]


def serve(work: Callable[[Any], Sequence[bytes]]) -> int:
    """A worker's whole life: answer the request on standard input. Returns the exit code."""
    try:
        results = work(json.load(sys.stdin.buffer))
    except OnnxlaError as error:
        print(error, file=sys.stderr)
        return 1
    for result in results:
        sys.stdout.buffer.write(len(result).to_bytes(8, "little") + result)
    return 0


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


def _start(module: str, request: Any) -> "subprocess.Popen[bytes]":
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    worker = subprocess.Popen(
        [sys.executable, "-m", module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    )
    assert worker.stdin is not None
    try:
        worker.stdin.write(json.dumps(request).encode())
        worker.stdin.close()
    except BrokenPipeError:
        pass  # It died; the answer will say so.
    worker.stdin = None
    return worker


def _answer(worker: "subprocess.Popen[bytes]", count: int) -> list[bytes]:
    output, errors = worker.communicate()
    if worker.returncode != 0:
        raise InternalError(f"a compile worker failed ({worker.returncode}): {errors.decode(errors='replace').strip()}")
    results = []
    for _ in range(count):
        size = int.from_bytes(output[:8], "little")
        results.append(output[8 : 8 + size])
        output = output[8 + size :]
    return results
