"""`python -m tests.bench.soak --seconds 600`: many clients while the model is reloaded and its workers are killed.

Every answer is compared with the one that the model gave first. Prints what was lost, wrong or refused, the
quantiles and the server's memory, minute by minute; ends with 1 where anything was lost or wrong.
"""

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import tritonclient.grpc as triton_grpc
import tritonclient.http as triton_http
from tritonclient.utils import InferenceServerException

from tests.bench.serving import ROOT, Child


class Soak:
    """Clients in threads, each with a client of its own, until the time is over."""

    def __init__(self, child: Child, images: Any) -> None:
        self.child, self.images = child, images
        self.end = 0.0
        self.seconds: list[float] = []
        self.problems: dict[str, int] = {}
        self.refused = self.reloads = self.reloads_ended = self.killed = 0
        self.lock = threading.Lock()
        self.expected: Any = None

    def client(self, number: int) -> None:
        module = triton_grpc if number % 2 else triton_http
        port = self.child.grpc if number % 2 else self.child.http
        rng = random.Random(number)
        with module.InferenceServerClient(f"127.0.0.1:{port}") as client:
            while (begin := time.perf_counter()) < self.end:
                place, rows = rng.randrange(8), rng.randrange(1, 3)
                image = module.InferInput("image", [rows, 1, 8, 8], "FP32")
                image.set_data_from_numpy(self.images[place : place + rows])
                try:
                    found = client.infer("digits", [image]).as_numpy("probabilities")
                except InferenceServerException as error:
                    with self.lock:
                        if error.status() in ("429", "StatusCode.RESOURCE_EXHAUSTED"):
                            self.refused += 1
                        else:
                            self.note(f"{error.status()} {error.message()}")
                    continue
                except Exception as error:
                    with self.lock:
                        self.note(f"{type(error).__name__}: {error}")
                    continue
                same = np.allclose(found, self.expected[place : place + rows], rtol=1e-4, atol=1e-6)
                with self.lock:
                    self.seconds.append(time.perf_counter() - begin)
                    if not same:
                        self.note("WRONG ANSWER")

    def note(self, text: str) -> None:
        self.problems[text[:200]] = self.problems.get(text[:200], 0) + 1

    def reload(self) -> None:
        """Load the model again, for as long as there are three seconds left."""
        with triton_http.InferenceServerClient(f"127.0.0.1:{self.child.http}", network_timeout=300) as client:
            while time.perf_counter() < self.end - 3:
                time.sleep(1.0)
                try:
                    client.load_model("digits")
                    self.reloads += 1
                except InferenceServerException as error:
                    if "the worker ended while it loaded" in str(error):
                        self.reloads_ended += 1  # killed by us: what was loaded before stays
                        continue
                    with self.lock:
                        self.note(f"load: {error}")

    def kill(self) -> None:
        """Kill a worker every five seconds."""
        while time.perf_counter() < self.end - 8:
            time.sleep(5.0)
            if workers := self.workers():
                os.kill(random.choice(workers), signal.SIGKILL)
                self.killed += 1

    def workers(self) -> list[int]:
        """The processes that hold the model."""
        tasks = Path(f"/proc/{self.child.process.pid}/task").glob("*/children")
        found = b" ".join(map(read, tasks)).decode().split()
        return [int(pid) for pid in found if b"worker" in read(Path(f"/proc/{pid}/cmdline"))]

    def memory(self) -> float:
        return int(Path(f"/proc/{self.child.process.pid}/statm").read_text().split()[1]) * 4096 / 2**20


def read(path: Path) -> bytes:
    """What is there, if it still is."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def run(seconds: float, clients: int, workers: int) -> int:
    """Problems."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "models" / "digits" / "1"
        place.mkdir(parents=True)
        shutil.copy(ROOT / "examples" / "digits.onnx", place / "model.onnx")
        (place.parent / "config.pbtxt").write_text("max_batch_size: 8 dynamic_batching { }")
        child = Child("onnxla", Path(folder) / "models", workers)
        try:
            soak = Soak(child, np.load(ROOT / "examples" / "digits.npz")["image"])
            with triton_http.InferenceServerClient(f"127.0.0.1:{child.http}", network_timeout=120) as client:
                image = triton_http.InferInput("image", [8, 1, 8, 8], "FP32")
                image.set_data_from_numpy(soak.images[:8])
                first = client.infer("digits", [image]).as_numpy("probabilities")
                image.set_data_from_numpy(soak.images[-8:])
                soak.expected = np.concatenate([first, client.infer("digits", [image]).as_numpy("probabilities")[-2:]])
            soak.end = time.perf_counter() + seconds
            threads = [threading.Thread(target=soak.client, args=(n,)) for n in range(clients)]
            threads += [threading.Thread(target=soak.reload), threading.Thread(target=soak.kill)]
            for thread in threads:
                thread.start()
            counted = 0
            while any(thread.is_alive() for thread in threads):
                threads[0].join(min(60.0, max(1.0, soak.end - time.perf_counter())))
                times = sorted(soak.seconds[counted:])
                counted += len(times)
                if times:
                    p50, p99 = times[len(times) // 2] * 1e3, times[len(times) * 99 // 100] * 1e3
                    print(
                        f"{counted} answers, p50 {p50:.2f} ms, p99 {p99:.2f} ms, {soak.refused} told to come later, "
                        f"{soak.reloads} reloads, {soak.killed} workers killed, {soak.memory():.0f} MiB: "
                        f"{soak.problems or 'no problems'}",
                        flush=True,
                    )
            return sum(soak.problems.values())
        finally:
            child.process.terminate()
            child.process.wait(60)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    sys.exit(min(1, run(arguments.seconds, arguments.clients, arguments.workers)))


if __name__ == "__main__":
    main()
