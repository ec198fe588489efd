"""Compile in several processes: LLVM and NVRTC are each behind one lock in a process, so threads do not help.

A worker is a module run in a fresh interpreter: nothing of the caller's program is imported again, as
`multiprocessing` would. It reads one request (JSON) from standard input and answers with length-prefixed bytes, one
answer when each job is done. Workers end with whoever started them: they are killed when the work ends early, for
whatever reason, and by the system (Linux) should their parent vanish.
"""

import ctypes
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any, TypeAlias

from onnxla import watch
from onnxla.errors import InternalError, OnnxlaError

MOST_PROCESSES = 8
_PR_SET_PDEATHSIG = 1
_PATIENCE = 0.5
"""Seconds between two looks at the time."""


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

    `own(k)` does job k here. `module`, run as a worker, calls `serve` and is asked `request(jobs)`. Where the time is
    limited, workers do everything: they can be stopped in the middle of a job. Raises InternalError where one fails.
    """
    mine, *others = _shares(sizes, max(1, min(processes, len(sizes))))
    if watch.seconds_left() is not None and sys.executable:
        mine, others = [], [share for share in [mine, *others] if share]
    whole = max(1, sum(sizes))
    results: dict[int, bytes] = {}
    answers: queue.SimpleQueue[_Answer] = queue.SimpleQueue()
    workers: list[_Worker] = []

    def take(answer: _Answer) -> None:
        if isinstance(answer, _Worker):
            raise answer.failure()
        results.update([answer])
        watch.part_done(sum(sizes[k] for k in results) / whole)

    try:
        for share in others:
            workers.append(_Worker(module, request(share), share, answers))
        for worker in workers:
            worker.start()
        for k in mine:
            take((k, own(k)))
            while not answers.empty():
                take(answers.get())
        while len(results) < len(sizes):
            try:
                take(answers.get(timeout=_PATIENCE))
            except queue.Empty:
                watch.check()
    finally:
        for worker in workers:
            worker.kill()
        for worker in workers:
            worker.end()
    return [results[k] for k in range(len(sizes))]


def serve(work: Callable[[Any], Iterator[bytes]]) -> int:
    """A worker's whole life: answer the request on standard input. Returns the exit code."""
    die_with_parent()
    try:
        for result in work(json.load(sys.stdin.buffer)):
            sys.stdout.buffer.write(len(result).to_bytes(8, "little") + result)
            sys.stdout.buffer.flush()
    except OnnxlaError as error:
        print(error, file=sys.stderr)
        return 1
    except BrokenPipeError:  # nobody wants the answer any more
        os._exit(1)
    return 0


def die_with_parent() -> None:
    """This process, a worker, ends with the one that started it from now on; at once where the parent, whose number is
    the first argument of the command, has gone already."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if sys.argv[1:2] != [str(os.getppid())]:
            os._exit(1)


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


class _Worker:
    """One process, and a thread that starts it and reads its answers into a queue.

    The thread starts it because Ctrl-C interrupts the main thread only, and there anywhere: a process that has just
    been started could be lost.
    """

    def __init__(self, module: str, request: Any, jobs: Sequence[int], answers: "queue.SimpleQueue[_Answer]") -> None:
        self._command = [sys.executable, "-m", module, str(os.getpid())]
        self._request = request
        self._jobs = jobs
        self._answers = answers
        self._errors = tempfile.TemporaryFile(prefix="onnxla-worker-")  # noqa: SIM115
        self._process: subprocess.Popen[bytes] | None = None
        self._problem = ""
        self._is_started = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Start the process; its answers, or the worker itself where it fails, come through the queue."""
        self._thread.start()

    def kill(self) -> None:
        """Stop the process at once."""
        if self._thread.ident is not None:
            self._is_started.wait()
            if self._process is not None:
                self._process.kill()

    def end(self) -> None:
        """Nothing of the process is left afterwards."""
        self.kill()
        if self._thread.ident is not None:
            self._thread.join()
        self._errors.close()

    def failure(self) -> InternalError:
        """What became of a process that ended before it had answered."""
        if self._process is None:
            return InternalError(f"no compile worker can be started: {self._problem}")
        code = self._process.wait()
        self._errors.seek(0)
        text = self._errors.read().decode(errors="replace").strip()
        return InternalError(f"a compile worker failed ({code}): {text}")

    def _run(self) -> None:
        try:
            process = self._process = self._started()
        except OSError as error:
            self._problem = str(error)
            self._answers.put(self)
            return
        finally:
            self._is_started.set()
        self._talk(process)
        process.wait()

    def _started(self) -> "subprocess.Popen[bytes]":
        # In a group of its own, so that Ctrl-C in a terminal reaches the parent alone, which ends its workers.
        return subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
            process_group=0,
        )

    def _talk(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdin is not None and process.stdout is not None
        with process.stdout as output:
            try:
                with process.stdin as requests:
                    requests.write(json.dumps(self._request).encode())
            except BrokenPipeError:
                pass  # It died; the missing answers will say so.
            for job in self._jobs:
                result = _read(output)
                if result is None:
                    self._answers.put(self)
                    return
                self._answers.put((job, result))


_Answer: TypeAlias = "tuple[int, bytes] | _Worker"
"""A job and its result, or a worker that failed."""


def _read(output: IO[bytes]) -> bytes | None:
    """One answer; None where the worker ended before it."""
    head = output.read(8)
    size = int.from_bytes(head, "little")
    body = output.read(size) if len(head) == 8 else b""
    return body if len(head) == 8 and len(body) == size else None
