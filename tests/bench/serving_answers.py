"""`python -m tests.bench.serving_answers MODEL ...`: answers by Triton's clients, against onnxruntime's own.

Each model is asked by four threads that share one client, with random inputs, over both protocols, as binary data.
"""

import argparse
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import tritonclient.grpc as triton_grpc
import tritonclient.http as triton_http

from onnxla.serving.engine import ServingEngine
from onnxla.serving.settings import EngineSettings
from onnxla.serving.tensors import datatype_of
from tests.bench.serving import random_arrays
from tests.serving.running import Running

THREADS, TURNS = 4, 3


def ask(client: Any, module: Any, model: str, arrays: dict[str, Any]) -> dict[str, Any]:
    inputs = []
    for name, array in arrays.items():
        one = module.InferInput(name, list(array.shape), datatype_of(array.dtype))
        one.set_data_from_numpy(array)
        inputs.append(one)
    result = client.infer(model, inputs)
    response = result.get_response()
    names = (
        [o["name"] for o in response["outputs"]] if isinstance(response, dict) else [o.name for o in response.outputs]
    )
    return {name: result.as_numpy(name) for name in names}


def largest_difference(ours: dict[str, Any], theirs: dict[str, Any]) -> float:
    """Relative to the largest number of an output; infinite where shapes or texts differ."""
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
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_outputs()]
    worst = 0.0
    with (
        triton_http.InferenceServerClient(server.http, concurrency=THREADS, network_timeout=600) as http,
        triton_grpc.InferenceServerClient(server.grpc) as grpc,
        ThreadPoolExecutor(THREADS) as threads,
    ):
        about = http.get_model_metadata(model)["inputs"]
        cases = [random_arrays(about, size, seed) for seed in range(THREADS * TURNS)]
        expected = [dict(zip(names, session.run(None, arrays), strict=True)) for arrays in cases]
        calls = [(grpc, triton_grpc, arrays) for arrays in cases]
        answers = list(threads.map(lambda call: ask(call[0], call[1], model, call[2]), calls))
        answers += [ask(http, triton_http, model, arrays) for arrays in cases]  # gevent: one thread
        for ours, theirs in zip(answers, expected * 2, strict=True):
            worst = max(worst, largest_difference(ours, theirs))
    return worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--size", type=int, default=16, help="of open dimensions but the first")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for path in arguments.models:
            place = Path(folder) / (path.parent.name if path.stem == "model" else path.stem) / "1"
            place.mkdir(parents=True)
            shutil.copy(path, place / "model.onnx")
        settings = EngineSettings(Path(folder), control="explicit")
        with Running(lambda: ServingEngine(settings), body_seconds=600, drain_seconds=5) as server:
            for path in arguments.models:
                model = path.parent.name if path.stem == "model" else path.stem
                try:
                    server.do(server.engine.load(model))
                    worst = compare(server, model, path, arguments.size)
                    print(f"{model:<24} largest difference {worst:.2g}", flush=True)
                except Exception as error:
                    print(f"{model:<24} {type(error).__name__}: {str(error)[:200]}", flush=True)


if __name__ == "__main__":
    main()
