"""A server under load while models are loaded again and workers are killed.

    python -m tests.bench.serving_soak --seconds 600 --clients 32 --rate 1000

Clients of Triton, over HTTP and gRPC, ask two models for odd numbers of rows, and compare every answer with numpy's.
Each waits for its answer before it asks again; with a rate they begin by the clock, and latencies count from the time
at which a request was due. Once a second or so an artifact of other weights takes a model's place and is loaded, and a
worker gets SIGKILL. Answers must be right for the weights of one of the two artifacts, and none may be missing: the
exit code is 1 otherwise. A line a minute; at the end rates, latencies, loads, workers killed, and the server's memory.
"""

import argparse
import asyncio
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import tritonclient.grpc.aio as triton_grpc
import tritonclient.http.aio as triton_http
import uvloop

from tests.serving.repositories import batched_artifact, put_artifact, random_rows

MODELS = ("one", "two")
FACTORS = (1.0, 2.0)
W = np.arange(12, dtype=np.float32).reshape(4, 3)
CONFIG = "max_batch_size: 4 dynamic_batching {}"
_START_SECONDS = 120


@dataclass
class Found:
    """What happened."""

    answers: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    failed: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    killed: int = 0
    loads: int = 0
    memory: list[tuple[float, float]] = field(default_factory=list)
    """Seconds since the begin, and MB."""


async def client(kind: str, address: str, seed: int, end: float, every: float, found: Found) -> None:
    """Ask one thing after the other until `end`, a request `every` so many seconds if answers come in time."""
    module: Any = triton_http if kind == "http" else triton_grpc
    dice = random.Random(seed)
    async with module.InferenceServerClient(address) as connection:
        turn = 0
        due = time.monotonic() + dice.random() * every
        while time.monotonic() < end:
            turn += 1
            x = random_rows(dice.randint(1, 4), seed=seed * 1_000_003 + turn % 1000)
            given = module.InferInput("x", list(x.shape), "FP32")
            given.set_data_from_numpy(x)
            await asyncio.sleep(due - time.monotonic() if every else 0)
            start = due if every else time.monotonic()
            due += every
            try:
                answer = await connection.infer(dice.choice(MODELS), [given])
            except Exception as error:
                found.failed[re.sub(r"\d+", "N", f"{kind}: {error}")[:200]] += 1
                continue
            found.seconds.append(time.monotonic() - start)
            found.answers[kind] += 1
            y = answer.as_numpy("y")
            if not any(y.shape == (len(x), 3) and np.allclose(y, x @ W * f, rtol=1e-4, atol=1e-4) for f in FACTORS):
                found.wrong.append(f"{kind} seed {seed} turn {turn}")


async def disturb(server: int, address: str, root: Path, artifacts: list[Path], end: float, found: Found) -> None:
    """Load models again, and kill workers, every second or so."""
    dice = random.Random(0)
    async with triton_http.InferenceServerClient(address) as connection:
        while time.monotonic() < end - 1:
            await asyncio.sleep(0.5)
            model = dice.choice(MODELS)
            put_artifact(root, model, dice.choice(artifacts))
            try:
                await connection.load_model(model)
                found.loads += 1
            except Exception as error:
                found.failed[f"load: {error}"[:200]] += 1
            await asyncio.sleep(0.5)
            workers = workers_of(server)
            if workers:
                with suppress(ProcessLookupError):
                    os.kill(dice.choice(workers), signal.SIGKILL)
                    found.killed += 1


async def watch(server: int, begin: float, end: float, found: Found) -> None:
    """The server's own memory, once a second; once a minute a line of how it goes."""
    told = 0
    while (now := time.monotonic()) < end:
        if now - begin > 60 * (told + 1):
            told += 1
            print(
                f"minute {told}: {sum(found.answers.values())} answers, {found.loads} loads, {found.killed} killed, "
                f"{len(found.wrong)} wrong, {sum(found.failed.values())} failed, {found.memory[-1][1]:.0f} MB",
                flush=True,
            )
        text = Path(f"/proc/{server}/status").read_text()
        found.memory.append((time.monotonic() - begin, int(re.search(r"VmRSS:\s+(\d+)", text)[1]) / 1024))  # type: ignore[index]
        await asyncio.sleep(1)


def workers_of(server: int) -> list[int]:
    children: list[int] = []
    for thread in Path(f"/proc/{server}/task").iterdir():
        with suppress(OSError):
            children += map(int, (thread / "children").read_text().split())
    found = []
    for pid in children:
        with suppress(OSError):
            if b"onnxla.serving.worker" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found


def start_server(root: Path, workers: int) -> tuple["subprocess.Popen[str]", str, str]:
    """The process, and its addresses for HTTP and gRPC."""
    command = [sys.executable, "-m", "onnxla", "serve", "-r", str(root), "--control", "explicit", "--no-jobs"]
    command += ["--http-port", "0", "--grpc-port", "0", "--workers", str(workers)]
    command += [part for model in MODELS for part in ("--load", model)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    places: dict[str, str] = {}
    end = time.monotonic() + _START_SECONDS
    while len(places) < 2 and time.monotonic() < end:
        line = process.stderr.readline()
        if not line:
            break
        places |= dict(re.findall(r"(http|grpc)=\w+://([\d.:]+)", line))
    if len(places) < 2:
        process.kill()
        raise SystemExit("the server did not start")
    return process, places["http"], places["grpc"]


async def soak(seconds: float, clients: int, rate: float, workers: int, folder: Path) -> Found:
    artifacts = [batched_artifact(folder / f"{factor}.onnxla", factor) for factor in FACTORS]
    root = folder / "models"
    for model in MODELS:
        put_artifact(root, model, artifacts[0])
        (root / model / "config.pbtxt").write_text(CONFIG)
    process, http, grpc = start_server(root, workers)
    found = Found()
    log = asyncio.create_task(asyncio.to_thread(process.stderr.read))  # type: ignore[union-attr]
    try:
        async with triton_http.InferenceServerClient(http) as connection:
            until = time.monotonic() + _START_SECONDS
            while not all([await connection.is_model_ready(m) for m in MODELS]):
                if time.monotonic() > until:
                    raise SystemExit("the models are not ready")
                await asyncio.sleep(0.2)
        begin = time.monotonic()
        end = begin + seconds
        every = clients / rate if rate else 0.0
        kinds = [("http", http) if k % 2 else ("grpc", grpc) for k in range(clients)]
        await asyncio.gather(
            *(client(kind, address, k, end, every, found) for k, (kind, address) in enumerate(kinds)),
            disturb(process.pid, http, root, artifacts, end, found),
            watch(process.pid, begin, end, found),
        )
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
        text = await log
        if process.returncode:
            print(f"the server ended with {process.returncode}:\n{text[-3000:]}")
    return found


def report(found: Found, seconds: float) -> bool:
    total = sum(found.answers.values())
    print(f"{total} answers in {seconds:g} s ({total / seconds:.0f}/s): {dict(found.answers)}")
    print(f"{found.loads} loads, {found.killed} workers killed")
    if found.seconds:
        cuts = statistics.quantiles(found.seconds, n=1000)
        print(
            f"seen by clients: p50 {cuts[499] * 1e3:.2f} ms, p99 {cuts[989] * 1e3:.2f} ms, "
            f"p99.9 {cuts[998] * 1e3:.2f} ms"
        )
    print(f"wrong: {len(found.wrong)} {found.wrong[:5]}; failed: {dict(found.failed)}")
    tenth = max(1, len(found.memory) // 10)
    for name, part in (
        ("first", found.memory[:tenth]),
        ("middle", found.memory[5 * tenth : 6 * tenth]),
        ("last", found.memory[-tenth:]),
    ):
        if part:
            print(f"memory of the server, {name} tenth: {statistics.mean(mb for _, mb in part):.1f} MB")
    return total > 0 and not found.wrong and not found.failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--rate", type=float, default=0.0, help="requests a second of all clients; 0: as they can")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = uvloop.run(soak(given.seconds, given.clients, given.rate, given.workers, Path(folder)))
    return 0 if report(found, given.seconds) else 1


if __name__ == "__main__":
    sys.exit(main())
