"""Prints the speed of all ONNX models of a folder against onnxruntime's: `python -m tests.bench.table DIR`.

Each model runs in a process of its own through `onnxla bench`, with `--threads` as given. Inputs come from `MODEL.npz`
beside `MODEL.onnx` where there is one, and are random elsewhere. `--json FILE` keeps the figures.
"""

import argparse
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any


def measure(model: Path, threads: int, rounds: int) -> dict[str, Any]:
    """What `onnxla bench --json` prints for one model; `error` where it prints nothing."""
    command = [sys.executable, "-m", "onnxla", "bench", str(model), "--json"]
    command += ["--threads", str(threads), "--rounds", str(rounds)]
    inputs = model.with_suffix(".npz")
    if inputs.exists():
        command += ["--input", str(inputs)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        found: dict[str, Any] = json.loads(done.stdout)
    except json.JSONDecodeError:
        return {"error": done.stderr.strip().splitlines()[-1:] or [f"exit {done.returncode}"]}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    figures = {}
    print("| model | onnxla | onnxruntime | ratio |\n| --- | --- | --- | --- |")
    for model in sorted(arguments.folder.glob("*.onnx")):
        found = figures[model.stem] = measure(model, arguments.threads, arguments.rounds)
        if "error" in found:
            print(f"| {model.stem} | {found['error'][0]} | | |", flush=True)
            continue
        ours, theirs = (t["median"] * 1e3 for t in found["timings"])
        note = " (results differ)" if found["differing"] else ""
        print(f"| {model.stem} | {ours:.3g} ms | {theirs:.3g} ms | {found['ratio']:.2f}{note} |", flush=True)
    ratios = [f["ratio"] for f in figures.values() if "ratio" in f]
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"\ngeometric mean {mean:.2f} over {len(ratios)} models, {arguments.threads} threads")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
