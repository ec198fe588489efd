"""Worker processes: answers in order and as they come, failures, and an end in time that leaves nothing behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

import pytest

from onnxla.codegen.workers import shared_out
from onnxla.errors import InternalError, ResourceLimitError
from onnxla.watch import watching


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list["subprocess.Popen[bytes]"]]:
    """The processes that a test starts; all must have ended when it ends."""
    processes: list[subprocess.Popen[bytes]] = []
    start = subprocess.Popen

    def recorded(*arguments: object, **options: object) -> "subprocess.Popen[bytes]":
        processes.append(start(*arguments, **options))  # type: ignore[call-overload]
        return processes[-1]

    monkeypatch.setattr(subprocess, "Popen", recorded)
    yield processes
    assert processes and all(p.returncode is not None for p in processes)
    assert not any(os.path.exists(f"/proc/{p.pid}") for p in processes)


def squares(numbers: Sequence[int], processes: int) -> list[bytes]:
    return shared_out(
        [max(1, n) for n in numbers],
        processes,
        lambda k: str(numbers[k] ** 2).encode(),
        "tests.codegen.slow_worker",
        lambda jobs: [numbers[k] for k in jobs],
    )


def test_answers_come_in_order_and_progress_with_them(started: list[object]) -> None:
    parts: list[float] = []
    with watching(lambda name, part: parts.append(part)) as watch, watch.span("squares", 0.0, 1.0):
        assert squares([1, 2, 3, 4, 5], 3) == [b"1", b"4", b"9", b"16", b"25"]
    assert len(started) == 2
    assert parts == sorted(parts) and len(parts) == 7 and parts[0] == 0.0 and parts[-1] == 1.0


def test_a_worker_that_fails_is_named_with_its_reason(started: list[object]) -> None:
    with pytest.raises(InternalError, match=r"a compile worker failed \(1\): no square of -7"):
        squares([100, -7], 2)


def test_a_worker_that_dies_is_an_error(started: list["subprocess.Popen[bytes]"]) -> None:
    def own(k: int) -> bytes:
        while not started:
            time.sleep(0.01)
        started[0].send_signal(signal.SIGKILL)
        return b""

    with pytest.raises(InternalError, match=r"a compile worker failed \(-9\)"):
        shared_out([2, 1], 2, own, "tests.codegen.slow_worker", lambda jobs: [0])


def test_work_that_takes_too_long_is_stopped_in_the_middle(started: list[object]) -> None:
    """Also the share that this process would do itself: workers get all of it."""
    start = time.monotonic()
    with pytest.raises(ResourceLimitError, match="longer than compile_timeout=0.5 seconds"), watching(None, 0.5):
        squares([0, 0], 2)
    assert len(started) == 2
    assert time.monotonic() - start < 60


def test_an_error_here_ends_the_workers(started: list[object]) -> None:
    def own(k: int) -> bytes:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        shared_out([2, 1], 2, own, "tests.codegen.slow_worker", lambda jobs: [0])


@pytest.mark.skipif(sys.platform != "linux", reason="the system ends children on Linux only")
def test_workers_end_with_a_parent_that_is_killed() -> None:
    program = (
        "import subprocess, os, signal, threading, time\n"
        "from onnxla.codegen import workers\n"
        "start = subprocess.Popen\n"
        "def recorded(*a, **k):\n"
        "    p = start(*a, **k); print(p.pid, flush=True); return p\n"
        "workers.subprocess.Popen = recorded\n"
        "workers.shared_out([2, 1], 2, lambda k: time.sleep(600), 'tests.codegen.slow_worker', lambda jobs: [0])\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    worker = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()
    for _ in range(300):
        if not os.path.exists(f"/proc/{worker}") or _is_zombie(worker):
            return
        time.sleep(0.1)
    os.kill(worker, signal.SIGKILL)
    raise AssertionError("the worker outlived its parent")


def _is_zombie(process: int) -> bool:
    try:
        with open(f"/proc/{process}/stat") as status:
            return status.read().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True
