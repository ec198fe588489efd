"""`onnxla bench --beside`: further runtimes, here fakes, take turns with ours, and their results are compared."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onnxla.errors import InputError
from onnxla.peers.runtimes import RUNTIMES, Runtime
from onnxla.runtime.tensors import Array
from tests.cli.command import onnxla, relu_model, succeed


class Fake:
    """A runtime that knows one model, Relu, and notes its timed runs."""

    version = "9"

    def __init__(self, name: str, threads: int, offset: float, log: list[str]) -> None:
        self.name, self.threads, self.offset, self.log = name, threads, offset, log

    def run(self, feeds: Mapping[str, Array], names: Sequence[str]) -> dict[str, Any]:
        return {names[0]: np.maximum(feeds["x"], 0) + np.float32(self.offset)}

    def runner(self, feeds: Mapping[str, Array]) -> Callable[[], object]:
        return lambda: self.log.append(f"{self.name} on {self.threads}")


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Two fakes are there: `twin` computes the same as onnxla, `other` something else."""
    found: list[str] = []

    def load_twin(model: Path, threads: int, feeds: Mapping[str, Array]) -> Fake:
        return Fake("twin", threads, 0.0, found)

    def load_other(model: Path, threads: int, feeds: Mapping[str, Array]) -> Fake:
        return Fake("other", threads, 1.0, found)

    monkeypatch.setitem(RUNTIMES, "twin", Runtime("twin", "numpy", load_twin))
    monkeypatch.setitem(RUNTIMES, "other", Runtime("other", "numpy", load_other))
    return found


def test_all_take_turns_on_the_same_threads(tmp_path: Path, log: list[str]) -> None:
    model = relu_model(tmp_path / "m.onnx")
    asked = ("--beside", "twin", "--beside", "other", "--threads", 2, "--rounds", 2, "--burst", 0)
    document = succeed("bench", model, *asked, "--json").json
    warm_up, one_round = ["twin on 2"] * 3 + ["other on 2"] * 3, ["twin on 2"] * 4 + ["other on 2"] * 4
    assert log == warm_up + 2 * one_round
    assert [t["name"] for t in document["timings"]] == ["onnxla", "onnxruntime", "twin", "other"]
    assert [t["runs"] for t in document["timings"]] == [6, 6, 6, 6]
    peers = document["peers"]
    assert list(peers) == ["onnxruntime", "twin", "other"] and peers["twin"]["version"] == "9"
    assert document["ratio"] == peers["onnxruntime"]["ratio"] > 0


def test_results_of_each_are_compared_and_onnxruntime_is_the_judge(tmp_path: Path, log: list[str]) -> None:
    model = relu_model(tmp_path / "m.onnx")
    ended = succeed("bench", model, "--beside", "other", "--beside", "twin", "--rounds", 1, "--burst", 0)
    assert "the results of other differ in y" in ended.out and "of twin differ" not in ended.out
    assert "times as fast as onnxruntime" in ended.out and "times as fast as other" in ended.out
    document = succeed("bench", model, "--beside", "other", "--rounds", 1, "--burst", 0, "--json").json
    assert document["differing"] == [] and document["peers"]["other"]["differing"] == ["y"]


def test_a_model_that_one_of_them_refuses_is_an_error(
    tmp_path: Path, log: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(model: Path, threads: int, feeds: Mapping[str, Array]) -> Fake:
        raise InputError("picky 9 cannot load the model: no Relu")

    monkeypatch.setitem(RUNTIMES, "picky", Runtime("picky", "numpy", refuse))
    ended = onnxla("bench", relu_model(tmp_path / "m.onnx"), "--beside", "twin", "--beside", "picky")
    assert (ended.code, ended.out) == (2, "") and "picky 9 cannot load the model: no Relu" in ended.err
    assert log == []


def test_a_missing_runtime_is_found_before_anything_is_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RUNTIMES, "gone", Runtime("gone", "no_such_package", RUNTIMES["onnxruntime"].load))
    ended = onnxla("bench", tmp_path / "not there.onnx", "--beside", "gone")
    assert ended.code == 2 and "gone is not installed\n  hint   pip install no_such_package" in ended.err
