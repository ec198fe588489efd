"""`--fallback onnxruntime` of the commands."""

from pathlib import Path

import onnx

from tests.cli.command import DIGITS, onnxla, succeed
from tests.fallback.models import detector


def detector_file(folder: Path) -> Path:
    path = folder / "detector.onnx"
    onnx.save(detector(), path)
    return path


def test_explain_shows_clusters_and_ends_well(tmp_path: Path) -> None:
    path = detector_file(tmp_path)
    assert onnxla("explain", path).code == 3
    text = succeed("explain", path, "--fallback", "onnxruntime").out
    assert "1 compiled: 10 nodes" in text
    assert "2 onnxruntime: 3 nodes (Gather 2, NonMaxSuppression 1)" in text
    document = succeed("explain", path, "--fallback", "onnxruntime", "--dim", "N=2", "--json").json
    assert document["compiles"] is False
    assert [(c["compiled"], len(c["nodes"])) for c in document["clusters"]] == [(True, 10), (False, 3)]


def test_run_validate_and_bench(tmp_path: Path) -> None:
    path = detector_file(tmp_path)
    ended = onnxla("run", path, "--dim", "N=1")
    assert ended.code == 3 and "--fallback onnxruntime" in ended.err
    wanted = (path, "--dim", "N=1", "--fallback", "onnxruntime")
    assert "2 onnxruntime: 3 nodes" in succeed("run", *wanted).out
    assert "every output agrees" in succeed("validate", *wanted).out
    document = succeed("bench", *wanted, "--rounds", 1, "--burst", 0, "--json").json
    assert document["differing"] == [] and len(document["clusters"]) == 2


def test_what_it_does_not_go_with(tmp_path: Path) -> None:
    path = detector_file(tmp_path)
    assert onnxla("validate", path, "--fallback", "onnxruntime", "--layers").code == 2
    assert onnxla("run", path, "--fallback", "tvm", "--dim", "N=1").code == 2
    succeed("compile", DIGITS, "--dim", "batch=1", "-o", tmp_path / "digits.onnxla")
    ended = onnxla("run", tmp_path / "digits.onnxla", "--fallback", "onnxruntime")
    assert ended.code == 2 and "--fallback is for models" in ended.err
