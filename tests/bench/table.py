"""Prints the speed of all ONNX models of a folder against other runtimes': `python -m tests.bench.table DIR`.

Each model (`NAME.onnx`, or `NAME/model.onnx`) runs in a process of its own through `onnxla bench`, with `--threads` as
given, against onnxruntime and those of `--beside`. Inputs come from the .npz file beside the model where there is one,
and are random elsewhere. `--into tests/bench/figures` adds the figures to the history of this CPU, and says what has
become slower since the last entry.
"""

import argparse
import json
import math
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.bench.history import Entry, keep, new_entry
from tests.bench.models import Model, models_of

_LONGEST = 200
"""Characters of an error that are kept."""


def bench(model: Model, threads: int, rounds: int, beside: Sequence[str]) -> dict[str, Any]:
    """What `onnxla bench --json` prints for one model; `error` where it fails."""
    command = [sys.executable, "-m", "onnxla", "bench", str(model.path), "--json"]
    command += ["--threads", str(threads), "--rounds", str(rounds)]
    command += [text for name in beside for text in ("--beside", name)]
    if model.inputs is not None:
        command += ["--input", str(model.inputs)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        found: dict[str, Any] = json.loads(done.stdout)
    except json.JSONDecodeError:
        return {"error": (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]}
    return {"error": " ".join(found["error"]["message"].split())[:_LONGEST]} if "error" in found else found


def measure(model: Model, entry: Entry, rounds: int, beside: Sequence[str]) -> None:
    """Time one model into an entry. One that a runtime of `beside` refuses is timed against onnxruntime alone."""
    refused: dict[str, str] = {}
    found = bench(model, entry.threads, rounds, beside)
    if "error" in found and beside:
        refused = {", ".join(beside): found["error"]}
        found = bench(model, entry.threads, rounds, ())
    row = entry.models[model.name] = {"arithmetic": model.arithmetic()}
    if "error" in found:
        row["error"] = found["error"]
        return
    peers = found["peers"]
    entry.versions |= {name: peer["version"] for name, peer in peers.items()}
    row["seconds"] = {timing["name"]: _rounded(timing["median"]) for timing in found["timings"]}
    row["ratio"] = {name: _rounded(peer["ratio"]) for name, peer in peers.items()}
    row["differing"] = [name for name, peer in peers.items() if peer["differing"]]
    row["refused"] = refused


def _rounded(number: float) -> float:
    return float(f"{number:.4g}")


def line(name: str, row: dict[str, Any], runtimes: Sequence[str]) -> str:
    """A row of the table: our time, then time and ratio of each runtime."""
    if "error" in row:
        return f"| {name} | {row['error']} |" + " | |" * len(runtimes)
    cells = [name, _milliseconds(row["seconds"]["onnxla"])]
    for runtime in runtimes:
        if runtime in row["ratio"]:
            note = " (results differ)" if runtime in row["differing"] else ""
            cells += [_milliseconds(row["seconds"][runtime]), f"{row['ratio'][runtime]:.2f}{note}"]
        else:
            cells += ["refused", ""]
    return f"| {' | '.join(cells)} |"


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms"


def means(entry: Entry) -> str:
    """The geometric means, and how many models are slower."""
    parts = []
    for runtime in entry.versions:
        ratios = [row["ratio"][runtime] for row in entry.models.values() if runtime in row.get("ratio", {})]
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        slower = sum(ratio < 1 for ratio in ratios)
        parts.append(f"{mean:.2f} times {runtime} over {len(ratios)} models, slower in {slower}")
    return f"geometric means on {entry.threads} threads: {'; '.join(parts)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--beside", action="append", default=[], metavar="RUNTIME")
    parser.add_argument("--only", nargs="+", metavar="MODEL")
    parser.add_argument("--into", type=Path, metavar="FOLDER")
    arguments = parser.parse_args()
    runtimes = ["onnxruntime", *arguments.beside]
    entry = new_entry(arguments.threads)
    print(f"| model | onnxla |{''.join(f' {name} | ratio |' for name in runtimes)}")
    print(f"| --- | --- |{' --- | --- |' * len(runtimes)}")
    for model in models_of(arguments.folder, arguments.only):
        measure(model, entry, arguments.rounds, arguments.beside)
        print(line(model.name, entry.models[model.name], runtimes), flush=True)
    print(f"\n{means(entry)}")
    if arguments.into is not None:
        found = keep(arguments.into, "speed", entry)
        print("\n".join(["slower than in the last entry:", *found] if found else ["nothing is slower"]))


if __name__ == "__main__":
    main()
