"""Prints what memory the models of a folder take, beside onnxruntime: `python -m tests.bench.memory DIR`.

Each runtime loads a model and runs it three times in a process of its own, ours from the artifact that was compiled
before (with `ONNXLA_CACHE_DIR`: once). The figure is the process's peak resident set, less that of a process which only
imported numpy: code, weights, arena and whatever the runtime keeps. Pages of a mapped file that were read count too.
`--json FILE` keeps the figures.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import onnxla
from onnxla.cli.feeds import feeds_for, read_inputs

_COMMON = """
import re, sys
import numpy as np
def peak():
    with open("/proc/self/status") as status:
        return int(re.search(r"VmHWM:\s+(\d+) kB", status.read())[1]) * 1024
feeds = dict(np.load(sys.argv[2]))
before = peak()
"""
_OURS = """
from onnxla.runtime.model import load_compiled
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


KEYS = ("onnxla", "onnxruntime", "arena", "intermediates")


def peak(script: str, model: Path, feeds: Path, threads: int) -> int:
    """Bytes that a fresh process took at most for loading and running a model."""
    command = [sys.executable, "-c", _COMMON + script, str(model), str(feeds), str(threads)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def measure(model: Path, folder: Path, threads: int) -> dict[str, int]:
    """Bytes of both, and of our arena and weights."""
    compiled = onnxla.compile(model)
    artifact, feeds = folder / "model.onnxla", folder / "feeds.npz"
    compiled.save(artifact)
    drawn = feeds_for(compiled.get_inputs(), compiled.get_outputs(), read_inputs(None), 0, {})
    np.savez(feeds, allow_pickle=False, **drawn.arrays)
    memory = compiled.memory()
    return {
        "onnxla": peak(_OURS, artifact, feeds, threads),
        "onnxruntime": peak(_THEIRS, model, feeds, threads),
        "arena": memory.arena,
        "intermediates": memory.intermediates,
        "weights": memory.weights,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    figures = {}
    print("| model | onnxla | onnxruntime | ratio | arena | all intermediates |\n| --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for model in sorted(arguments.folder.glob("*.onnx")):
            found = figures[model.stem] = measure(model, Path(folder), arguments.threads)
            ours, theirs = found["onnxla"], found["onnxruntime"]
            sizes = [f"{found[k] / 1e6:.1f} MB" for k in ("onnxla", "onnxruntime", "arena", "intermediates")]
            print(
                f"| {model.stem} | {sizes[0]} | {sizes[1]} | {ours / theirs:.2f} | {sizes[2]} | {sizes[3]} |",
                flush=True,
            )
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
