"""`python -m tests.fuzz.run --count N --seed S`: check N random models.

Each failure prints a small model and the command that repeats it. The models run in a process of their own, which is
started again behind a model that crashed or hung; `--guard` puts tensors between forbidden pages (tests/fuzz/guard.py).
"""

import argparse
import faulthandler
import os
import selectors
import subprocess
import sys
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field

from tests.fuzz.check import check_seed, describe, guard_seed

_HUNG_AFTER = 120.0
"""Seconds for one model, shrinking left aside."""


@dataclass
class Tally:
    """What the worker has said so far."""

    done: int = 0
    with_onnxruntime: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    current: int = 0


def work(first: int, last: int, guard: bool, trace: bool) -> None:
    """Check seeds, and say on standard output which one is next and how it went."""
    faulthandler.enable(file=sys.stdout)
    for seed in range(first, last):
        print(f"@seed {seed}", flush=True)
        faulthandler.dump_traceback_later(0.75 * _HUNG_AFTER, file=sys.stdout)
        try:
            witnesses = guard_seed(seed) if guard else check_seed(seed)
        except Exception as error:
            faulthandler.cancel_dump_traceback_later()
            print(f"@shrink {type(error).__name__}", flush=True)
            print(f"--- seed {seed}\n{describe(seed, error)}", flush=True)
            if trace:
                traceback.print_exception(error, file=sys.stdout)
            continue
        print(f"@done {witnesses}", flush=True)


def supervise(first: int, last: int, guard: bool, trace: bool) -> Tally:
    """Run workers until all seeds are done; count crashes and hangs as failures."""
    tally = Tally(current=first)
    while tally.current < last:
        command = [sys.executable, "-m", "tests.fuzz.run", "--worker", "--seed", str(tally.current)]
        command += ["--count", str(last - tally.current)] + ["--guard"] * guard + ["--traceback"] * trace
        worker = subprocess.Popen(command, stdout=subprocess.PIPE)
        ended = _listen(worker, tally)
        worker.kill()
        code = worker.wait()
        if ended and code == 0:
            break
        kind = "hang" if not ended else f"crash ({code})"
        tally.failures[kind] += 1
        print(f"--- seed {tally.current}: {kind}\n  {_command(tally.current, guard)}", flush=True)
        tally.current += 1
    return tally


def _listen(worker: "subprocess.Popen[bytes]", tally: Tally) -> bool:
    """Follow a worker to its end; False where it says nothing for too long."""
    assert worker.stdout is not None
    descriptor = worker.stdout.fileno()
    selector = selectors.DefaultSelector()
    selector.register(descriptor, selectors.EVENT_READ)
    rest = b""
    patience = _HUNG_AFTER
    while selector.select(patience):
        data = os.read(descriptor, 1 << 16)
        if not data:
            return True
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            patience = _HUNG_AFTER
            match line.decode(errors="replace").split(" ", 1):
                case ["@seed", number]:
                    tally.current = int(number)
                case ["@done", witnesses]:
                    tally.done += 1
                    tally.with_onnxruntime += witnesses == "3"
                case ["@shrink", kind]:
                    tally.failures[kind] += 1
                    tally.done += 1
                    patience = 10 * _HUNG_AFTER
                case _:
                    print(line.decode(errors="replace"), flush=True)
    return False


def _command(seed: int, guard: bool) -> str:
    return f"python -m tests.fuzz.run --count 1 --seed {seed}{' --guard' * guard}"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--guard", action="store_true", help="put tensors between pages that cannot be touched")
    parser.add_argument("--traceback", action="store_true")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    last = given.seed + given.count
    if given.worker:
        work(given.seed, last, given.guard, given.traceback)
        return 0
    start = time.monotonic()
    tally = supervise(given.seed, last, given.guard, given.traceback)
    seconds = time.monotonic() - start
    failures = sum(tally.failures.values())
    print(
        f"seeds {given.seed} to {last - 1}: {failures} failures {dict(tally.failures)}, "
        f"{given.count / seconds:.1f} models/s, {tally.with_onnxruntime} with a third witness"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
