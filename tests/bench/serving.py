"""`python -m tests.bench.serving [MODEL ...]`: what a request costs, and onnxruntime in the same server.

    overhead    one client, one request after the other: its time without that of the engine, and the server's CPU time
    rate        several connections at once, compiled code and onnxruntime in turns

Both servers are processes of their own; the client is this one. Times are medians over the rounds. Without models:
`examples/digits.onnx`.
"""

import argparse
import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import uvloop

from onnxla.serving.code import load_code
from onnxla.serving.engine import ServingEngine
from onnxla.serving.server import Server
from onnxla.serving.server_settings import ServerSettings
from onnxla.serving.settings import EngineSettings
from onnxla.serving.tensors import DTYPES
from tests.bench.load import Arrays, Load, grpc_load, grpc_request, http_load, http_request
from tests.bench.serving_onnxruntime import load_in_onnxruntime

ROOT = Path(__file__).parents[2]
ENGINES = {"onnxla": load_code, "onnxruntime": load_in_onnxruntime}


class Child:
    """A server in a process of its own, with one of the engines."""

    def __init__(self, engine: str, repository: Path, workers: int = 0) -> None:
        command = [sys.executable, "-m", "tests.bench.serving", "--child", engine, str(repository), str(workers)]
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.http, self.grpc = json.loads(self.process.stdout.readline())

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.http}{path}", timeout=60) as answer:
            return json.loads(answer.read())

    def cpu(self) -> float:
        """Seconds of CPU time so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def in_engine(self, model: str) -> tuple[int, float]:
        """Requests and seconds that the engine has counted."""
        counts = self.get(f"/v2/models/{model}/stats")["model_stats"][0]["inference_stats"]["success"]
        return counts["count"], counts["ns"] / 1e9


async def serve(engine: str, repository: Path, workers: int) -> None:
    made = ServingEngine(
        EngineSettings(
            repository,
            control="explicit",
            load_at_start=tuple(os.listdir(repository)),
            workers=workers,
            cache_dir=str(repository.parent / "cache"),
        ),
        ENGINES[engine],
    )
    server = Server(made, ServerSettings(http_port=0, grpc_port=0, max_connections=20_000))
    await server.start()
    await made.start()
    print(json.dumps([server.http_port, server.grpc_port]), flush=True)
    await server.serve()


@contextmanager
def children(models: list[Path], batch: int, delay: int) -> Iterator[dict[str, Child]]:
    with tempfile.TemporaryDirectory() as folder:
        for model in models:
            place = Path(folder) / "models" / model.stem / "1"
            place.mkdir(parents=True)
            shutil.copy(model, place / "model.onnx")
            if batch:
                (place.parent / "config.pbtxt").write_text(
                    f"max_batch_size: {batch} dynamic_batching {{ max_queue_delay_microseconds: {delay} }} "
                    'parameters { key: "assume_independent_rows" value { string_value: "true" } }'
                )
        found: dict[str, Child] = {}
        try:
            for engine in ENGINES:
                found[engine] = Child(engine, Path(folder) / "models")
            yield found
        finally:
            for child in found.values():
                child.process.terminate()
                child.process.wait(60)


def random_arrays(inputs: list[dict[str, Any]], size: int, seed: int = 0) -> dict[str, Any]:
    """Random arrays for the inputs of a model's metadata; open dimensions but the first have `size`."""
    rng = np.random.default_rng(seed)
    arrays: dict[str, Any] = {}
    for tensor in inputs:
        shape = [n if n >= 0 else (1 if place == 0 else size) for place, n in enumerate(tensor["shape"])]
        dtype = DTYPES[tensor["datatype"]]
        arrays[tensor["name"]] = (rng.random(shape) * (2 if dtype.kind in "iu" else 1)).astype(dtype)
    return arrays


def overhead(child: Child, model: str, arrays: Arrays, seconds: float) -> None:
    """Print what a request costs beyond the engine, for each protocol."""
    loads: dict[str, Callable[[], Load]] = {
        "HTTP": lambda: http_load(child.http, http_request(model, arrays), 1, seconds),
        "gRPC": lambda: grpc_load(child.grpc, grpc_request(model, arrays), 1, seconds),
    }
    for name, load in loads.items():
        load()  # it warms up
        before, cpu = child.in_engine(model), child.cpu()
        measured = load()
        after, spent = child.in_engine(model), child.cpu() - cpu
        if measured.wrong:
            raise SystemExit(f"{name}: {measured.wrong} requests had no answer")
        engine = (after[1] - before[1]) / max(1, after[0] - before[0])
        whole = measured.quantile(0.5)
        print(
            f"  {name}: p50 {whole * 1e6:.0f} us, p99 {measured.quantile(0.99) * 1e6:.0f} us, in the engine "
            f"{engine * 1e6:.0f} us: overhead {(whole - engine) * 1e6:.0f} us; CPU of the server "
            f"{spent / len(measured.seconds) * 1e6:.0f} us a request"
        )


def side_by_side(found: dict[str, Child], model: str, arrays: Arrays, connections: int, arguments: Any) -> None:
    """Print rates and latencies of both engines, measured in turns."""
    for protocol in ("HTTP", "gRPC"):
        rounds: dict[str, list[Load]] = {name: [] for name in found}
        for turn in range(arguments.rounds + 1):
            for name, child in found.items():
                if protocol == "HTTP":
                    load = http_load(child.http, http_request(model, arrays), connections, arguments.seconds)
                else:
                    load = grpc_load(child.grpc, grpc_request(model, arrays), connections, arguments.seconds)
                if load.wrong:
                    raise SystemExit(f"{name}: {load.wrong} requests had no answer")
                if turn:
                    rounds[name].append(load)
        rates = {name: median(load.rate for load in loads) for name, loads in rounds.items()}
        for name, loads in rounds.items():
            p50, p99 = (median(load.quantile(share) for load in loads) * 1e3 for share in (0.5, 0.99))
            print(f"  {protocol} x{connections} {name:<12} {rates[name]:8.0f}/s  p50 {p50:.2f} ms  p99 {p99:.2f} ms")
        ratios = [a.rate / b.rate for a, b in zip(rounds["onnxla"], rounds["onnxruntime"], strict=True)]
        print(f"  {protocol} x{connections} rate of onnxla / onnxruntime {median(ratios):.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path, default=[ROOT / "examples" / "digits.onnx"])
    parser.add_argument("--connections", type=int, nargs="*", default=[1, 16])
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch", type=int, default=0, help="max_batch_size")
    parser.add_argument("--delay", type=int, default=0, help="microseconds that a request may wait for others")
    parser.add_argument("--size", type=int, default=64, help="of open dimensions")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        logging.basicConfig(level=logging.ERROR)
        uvloop.run(serve(arguments.child[0], Path(arguments.child[1]), int(arguments.child[2])))
        return
    with children(arguments.models, arguments.batch, arguments.delay) as found:
        for path in arguments.models:
            model = path.stem
            arrays = random_arrays(found["onnxruntime"].get(f"/v2/models/{model}")["inputs"], arguments.size)
            print(f"{model}: {', '.join(f'{n} {a.dtype}{list(a.shape)}' for n, a in arrays.items())}")
            begin = time.perf_counter()
            http_load(found["onnxla"].http, http_request(model, arrays), 1, 0.01)
            print(f"  first answer after {time.perf_counter() - begin:.1f} s", flush=True)
            overhead(found["onnxla"], model, arrays, arguments.seconds)
            for connections in arguments.connections:
                side_by_side(found, model, arrays, connections, arguments)


if __name__ == "__main__":
    main()
