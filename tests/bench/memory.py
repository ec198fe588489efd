"""Prints what memory the models of a folder take, beside onnxruntime: `python -m tests.bench.memory DIR`.

Each runtime loads a model (`NAME.onnx`, or `NAME/model.onnx`) and runs it three times in a process of its own, ours
from the artifact that was compiled before (with `ONNXLA_CACHE_DIR`: once). The figure is the process's peak resident
set, less that of a process which only imported numpy: code, weights, arena and whatever the runtime keeps. Pages of a
mapped file that were read count too. `--into tests/bench/figures` adds the figures to the history of this CPU, and says
what has grown since the last entry.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import onnxla
from onnxla.cli.feeds import feeds_for, read_inputs
from onnxla.errors import OnnxlaError
from tests.bench.history import keep, new_entry
from tests.bench.models import Model, models_of

_COMMON = """
import re, sys
import numpy as np
def peak():
    with open("/proc/self/status") as status:
        return int(re.search(r"VmHWM:\\s+(\\d+) kB", status.read())[1]) * 1024
feeds = dict(np.load(sys.argv[2]))
before = peak()
"""
_OURS = """
from onnxla.runtime.loading import load_compiled
model = load_compiled(sys.argv[1], num_threads=int(sys.argv[3]))
for _ in range(3):
    model.run(None, feeds)
print(peak() - before)
"""
_THEIRS = """
import onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = int(sys.argv[3])
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
for _ in range(3):
    session.run(None, feeds)
print(peak() - before)
"""


def peak(script: str, model: Path, feeds: Path, threads: int) -> int:
    """Bytes that a fresh process took at most for loading and running a model."""
    command = [sys.executable, "-c", _COMMON + script, str(model), str(feeds), str(threads)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def measure(model: Model, folder: Path, threads: int) -> dict[str, Any]:
    """Bytes of both, and of our arena and weights; `error` where it cannot be compiled or run."""
    artifact, feeds = folder / "model.onnxla", folder / "feeds.npz"
    given = read_inputs(None if model.inputs is None else [str(model.inputs)])
    row: dict[str, Any] = {"arithmetic": model.arithmetic()}
    try:
        compiled = onnxla.compile(model.path, shapes={name: array.shape for name, array in given.named.items()})
        drawn = feeds_for(compiled.get_inputs(), compiled.get_outputs(), given, 0, {})
        if not compiled.programs:  # values of inputs decide shapes
            compiled.run(None, drawn.arrays)
        compiled.save(artifact)
        memory = compiled.memory()
    except OnnxlaError as error:
        return {**row, "error": str(error).splitlines()[0]}
    np.savez(feeds, allow_pickle=False, **drawn.arrays)
    return {
        **row,
        "onnxla": peak(_OURS, artifact, feeds, threads),
        "onnxruntime": peak(_THEIRS, model.path, feeds, threads),
        "arena": memory.arena,
        "intermediates": memory.intermediates,
        "weights": memory.weights,
    }


def line(name: str, row: dict[str, Any]) -> str:
    """A row of the table."""
    if "error" in row:
        return f"| {name} | {row['error']} | | | | |"
    ours, theirs, arena, all_of_them = (
        f"{row[key] / 1e6:.1f} MB" for key in ("onnxla", "onnxruntime", "arena", "intermediates")
    )
    return f"| {name} | {ours} | {theirs} | {row['onnxla'] / row['onnxruntime']:.2f} | {arena} | {all_of_them} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", nargs="+", metavar="MODEL")
    parser.add_argument("--into", type=Path, metavar="FOLDER")
    arguments = parser.parse_args()
    entry = new_entry(arguments.threads)
    print("| model | onnxla | onnxruntime | ratio | arena | all intermediates |\n| --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for model in models_of(arguments.folder, arguments.only):
            found = entry.models[model.name] = measure(model, Path(folder), arguments.threads)
            print(line(model.name, found), flush=True)
    if arguments.into is not None:
        found_worse = keep(arguments.into, "memory", entry)
        print("\n".join(["larger than in the last entry:", *found_worse] if found_worse else ["nothing has grown"]))


if __name__ == "__main__":
    main()
