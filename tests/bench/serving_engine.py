"""What the engine itself takes of a request, without a protocol: `python -m tests.bench.serving_engine`.

For a small model, one request after the other, in three ways: on the event loop's own thread, on an instance's thread
and in a worker process. Beside it the same model by `run_in_order`, in turns, so that all have the same machine.
Then throughput with many clients at once, with batching and without.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from onnxla.serving.engine import ServingEngine
from onnxla.serving.requests import InferRequest
from onnxla.serving.settings import EngineSettings
from tests.serving.repositories import batched_artifact, put_artifact


async def one_by_one(engine: ServingEngine, request: InferRequest, count: int) -> float:
    """Seconds of one request."""
    start = time.perf_counter()
    for _ in range(count):
        await engine.infer(request)
    return (time.perf_counter() - start) / count


def alone(run: Any, arrays: list[Any], count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        run(arrays)
    return (time.perf_counter() - start) / count


async def at_once(engine: ServingEngine, request: InferRequest, clients: int, seconds: float) -> float:
    """Requests per second."""
    end, done = time.perf_counter() + seconds, 0

    async def client() -> None:
        nonlocal done
        while time.perf_counter() < end:
            await engine.infer(request)
            done += 1

    start = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    return done / (time.perf_counter() - start)


async def measure(root: Path, rounds: int, count: int) -> None:
    ways = {
        "inline": EngineSettings(root / "plain", inline_seconds=1.0),
        "thread": EngineSettings(root / "plain", inline_seconds=0.0),
        "worker": EngineSettings(root / "plain", workers=1),
        "batched": EngineSettings(root / "batched", inline_seconds=0.0),
    }
    engines = {name: ServingEngine(settings) for name, settings in ways.items()}
    for engine in engines.values():
        await engine.start()
    served = engines["inline"]._models["m"].newest
    assert served is not None
    model = served.code.variants()[0].model
    request = InferRequest("m", {"x": np.ones((1, 4), np.float32)})
    arrays = [request.inputs["x"]]
    times: dict[str, list[float]] = {name: [] for name in ("run", *engines)}
    for _ in range(rounds):
        times["run"].append(alone(model.run_in_order, arrays, count))
        for name, engine in engines.items():
            times[name].append(await one_by_one(engine, request, count))
    base = statistics.median(times["run"])
    print(f"{'way':10} {'us':>8} {'us beside run':>14}   medians of {rounds} rounds of {count} requests")
    for name, found in times.items():
        middle = statistics.median(found)
        print(f"{name:10} {middle * 1e6:8.1f} {(middle - base) * 1e6:14.1f}")
    for name, engine in engines.items():
        rate = statistics.median([await at_once(engine, request, 32, 0.3) for _ in range(rounds)])
        print(f"{name:10} {rate:8.0f} requests/s with 32 clients")
    for engine in engines.values():
        await engine.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--count", type=int, default=1000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        artifact = batched_artifact(root / "m.onnxla")
        for name, config in (("plain", "max_batch_size: 4"), ("batched", "max_batch_size: 4 dynamic_batching {}")):
            put_artifact(root / name, "m", artifact)
            (root / name / "m" / "config.pbtxt").write_text(config)
        try:
            import uvloop

            uvloop.run(measure(root, given.rounds, given.count))
        except ImportError:
            asyncio.run(measure(root, given.rounds, given.count))


if __name__ == "__main__":
    main()
