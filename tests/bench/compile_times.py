"""Prints how long the models of a folder take to compile: `python -m tests.bench.compile_times DIR`.

Each figure is of one call of `onnxla.compile` with a file in a new process, imports included: cold with an empty cache,
which is filled, and warm with that cache; the median of `--rounds`. `--into tests/bench/figures` adds the figures to
the history of this CPU, and says what has become slower since the last entry.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.bench.history import keep, new_entry
from tests.bench.models import Model, models_of

_SCRIPT = """
import sys, time
start = time.perf_counter()
import numpy as np, onnxla
shapes = {name: array.shape for name, array in np.load(sys.argv[3]).items()} if len(sys.argv) > 3 else None
model = onnxla.compile(sys.argv[1], shapes=shapes, options={"cache_dir": sys.argv[2]})
if model.report is None:
    sys.exit("dimensions without a size, and no .npz file beside the model that gives them")
print(time.perf_counter() - start, model.report.from_cache)
"""


def seconds(model: Model, cache: Path, environment: Mapping[str, str]) -> tuple[float, bool]:
    """The time of one call in a new process, and whether the code came from the cache. Raises CalledProcessError."""
    command = [sys.executable, "-c", _SCRIPT, str(model.path), str(cache), *map(str, filter(None, [model.inputs]))]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    time, cached = done.stdout.split()
    return float(time), cached == "True"


def measure(model: Model, rounds: int, environment: Mapping[str, str]) -> dict[str, Any]:
    """Seconds, cold and warm; `error` where it cannot be compiled."""
    row: dict[str, Any] = {"arithmetic": model.arithmetic()}
    cold, warm = [], []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(prefix="onnxla-cold-") as folder:
            try:
                found = [seconds(model, Path(folder) / "cache", environment) for _ in range(2)]
            except subprocess.CalledProcessError as error:
                return {**row, "error": error.stderr.strip().splitlines()[-1]}
        if [cached for _, cached in found] != [False, True]:
            return {**row, "error": "the second call did not find what the first has made"}
        cold.append(found[0][0])
        warm.append(found[1][0])
    return {**row, "cold": round(statistics.median(cold), 3), "warm": round(statistics.median(warm), 3)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", metavar="MODEL")
    parser.add_argument("--into", type=Path, metavar="FOLDER")
    arguments = parser.parse_args()
    models = models_of(arguments.folder, arguments.only)
    entry = new_entry(threads=0)
    bytecode = Path(tempfile.mkdtemp(prefix="onnxla-bytecode-"))  # as where onnxla is installed
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(bytecode)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    measure(models[0], 1, environment)
    print("| model | cold | warm |\n| --- | --- | --- |")
    for model in models:
        row = entry.models[model.name] = measure(model, arguments.rounds, environment)
        cells = f"{row['error']} | |" if "error" in row else f"{row['cold']:.2f} s | {row['warm']:.2f} s |"
        print(f"| {model.name} | {cells}", flush=True)
    shutil.rmtree(bytecode)
    if arguments.into is not None:
        found = keep(arguments.into, "compiling", entry)
        print("\n".join(["slower than in the last entry:", *found] if found else ["nothing is slower"]))


if __name__ == "__main__":
    main()
