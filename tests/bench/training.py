"""Trains a network on digits with three optimizers here and in TensorFlow: `python -m tests.bench.training`.

The network and the batches are those of the tutorial (docs/tutorials/mnist-from-keras.md). TensorFlow runs in processes
of its own, in the interpreter that `--tensorflow PYTHON` names, which needs TensorFlow, Keras and scikit-learn, but not
onnxla. For each optimizer a table, a row for each setting of TensorFlow and one for onnxla: the largest relative
difference of the losses so far from TensorFlow's on one thread, the accuracy on digits that were not trained on, and
the time of a step from Python, measured in turns. docs/tensorflow.md has the figures.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import onnxla
from onnxla.hlo.types import Array

WORKER = Path(__file__).with_name("training_in_tensorflow.py")
OPTIMIZERS = ("sgd", "adagrad", "adam")
REACHES = (10, 50, 100, 200, 500)
SETTINGS: dict[str, tuple[dict[str, str], list[str]]] = {
    "TensorFlow, one thread": ({}, []),
    "TensorFlow without oneDNN": ({"TF_ENABLE_ONEDNN_OPTS": "0"}, []),
    "TensorFlow, jit_compile=True": ({}, ["--jit"]),
}
ROUNDS, STEPS_OF_ROUND = 7, 100


class InTensorFlow:
    """A process that has trained and waits to be asked for the time of more steps."""

    def __init__(self, python: str, folder: Path, optimizer: str, setting: str) -> None:
        variables, flags = SETTINGS[setting]
        command = [python, str(WORKER), "train", str(folder), optimizer, *flags]
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **variables}
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        found = self._answer()
        self.losses, self.accuracy = np.array(found["losses"]), float(found["accuracy"])

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("the process of TensorFlow ended; see its messages above")
        return json.loads(line)

    def time(self) -> float:
        """The median time of a step, in milliseconds."""
        assert self._process.stdin is not None
        print(STEPS_OF_ROUND, file=self._process.stdin, flush=True)
        return float(self._answer()["ms"])

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


class Here:
    """The same in native code."""

    def __init__(self, folder: Path, optimizer: str) -> None:
        with np.load(folder / "data.npz") as data:
            self._data: dict[str, Array] = dict(data)
        self._train = onnxla.compile(folder / optimizer, signature="train", num_threads=1)
        self.losses = np.array([self._step(batch) for batch in self._data["batches"]])
        predict = onnxla.compile(folder / optimizer, signature="predict", state=dict(self._train.state))
        answers = np.asarray(predict(self._data["images"][1500:])).argmax(1)
        self.accuracy = float((answers == self._data["labels"][1500:]).mean())

    def _step(self, batch: Array) -> float:
        feeds = {"images": self._data["images"][batch], "labels": self._data["labels"][batch]}
        return float(np.asarray(self._train.run(["loss"], feeds)[0]))

    def time(self) -> float:
        times = []
        for batch in self._data["batches"][:STEPS_OF_ROUND]:
            start = time.perf_counter()
            self._step(batch)
            times.append(time.perf_counter() - start)
        return float(np.median(times)) * 1e3


def drift(losses: Array, reference: Array) -> list[float]:
    """The largest relative difference up to each of the steps of REACHES."""
    apart = np.abs(losses - reference) / np.maximum(np.abs(reference), 1e-3)
    return [float(apart[:steps].max()) for steps in REACHES]


def compare(python: str, folder: Path, optimizer: str) -> dict[str, Any]:
    """The rows of both tables for an optimizer."""
    others = {setting: InTensorFlow(python, folder, optimizer, setting) for setting in SETTINGS}
    ours = Here(folder, optimizer)
    reference = next(iter(others.values())).losses
    runs: dict[str, InTensorFlow | Here] = {**others, "onnxla": ours}
    turns: dict[str, Callable[[], float]] = {name: run.time for name, run in runs.items() if "oneDNN" not in name}
    times: dict[str, list[float]] = {name: [] for name in turns}
    for _ in range(ROUNDS):
        for name, turn in turns.items():
            times[name].append(turn())
    for other in others.values():
        other.end()
    return {
        name: {
            "drift": drift(run.losses, reference),
            "accuracy": run.accuracy,
            "ms": float(np.median(times[name])) if name in times else None,
        }
        for name, run in runs.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tensorflow", default=sys.executable, help="a Python that has TensorFlow")
    parser.add_argument("--optimizer", choices=OPTIMIZERS, nargs="*", default=OPTIMIZERS)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    found = {}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        subprocess.run([arguments.tensorflow, str(WORKER), "export", str(folder)], check=True)
        for optimizer in arguments.optimizer:
            found[optimizer] = compare(arguments.tensorflow, folder, optimizer)
            own = found[optimizer]["onnxla"]["ms"]
            print(
                f"{optimizer:30s}" + "".join(f"{f'{steps} steps':>11s}" for steps in REACHES) + "  accuracy   ms a step"
            )
            for name, row in found[optimizer].items():
                cells = "".join(f"{value:11.1e}" for value in row["drift"])
                cost = "" if row["ms"] is None else f"{row['ms']:8.3f} ({row['ms'] / own:.2f} times onnxla's)"
                print(f"{name:30s}{cells}{row['accuracy']:10.3f}  {cost}", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
