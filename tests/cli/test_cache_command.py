"""`onnxla cache list | explain | prune | clear`."""

import os
from pathlib import Path

import pytest

from tests.cli.command import onnxla, relu_model, succeed


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model whose code is in the cache."""
    monkeypatch.setenv("ONNXLA_CACHE_DIR", str(tmp_path / "cache"))
    path = relu_model(tmp_path / "m.onnx")
    assert "miss: the cache is empty" in succeed("cache", "explain", path).out
    succeed("compile", path, "-o", tmp_path / "m.onnxla")
    return path


def test_entries_are_listed_with_what_they_are_for(model: Path) -> None:
    (row,) = succeed("cache", "list", "--json").json["entries"]
    assert (row["model"], row["inputs"], row["problem"]) == ("m.onnx", "x f32[4]", "")
    text = succeed("cache", "list").out
    assert "m.onnx" in text and "x f32[4]" in text and "1 entry," in text


def test_a_hit_and_a_miss_are_explained_part_by_part(model: Path) -> None:
    hit = succeed("cache", "explain", model, "--json").json
    assert hit["hit"] and hit["model"] == "m.onnx" and all(part["same"] for part in hit["parts"])
    miss = succeed("cache", "explain", model, "--option", "fast_math=true", "--json").json
    assert [p for p in miss["parts"] if not p["same"]] == [
        {"name": "option fast_math", "same": False, "wanted": "True", "stored": "False"}
    ]
    text = succeed("cache", "explain", model, "--option", "fast_math=true").out
    assert "miss: the nearest entry differs in option fast_math" in text
    assert {p["name"] for p in hit["parts"]} >= {"program", "weights", "shapes", "target", "version", "compiler"}


def test_pruning_and_clearing(model: Path, tmp_path: Path) -> None:
    other = relu_model(tmp_path / "o.onnx", "other")
    succeed("compile", other, "-o", tmp_path / "o.onnxla")
    rows = succeed("cache", "list", "--json").json["entries"]
    assert sorted(r["model"] for r in rows) == ["m.onnx", "o.onnx"]
    assert succeed("cache", "prune", "--json").json["removed"] == []
    oldest = next(tmp_path / "cache" / r["name"] for r in rows if r["model"] == "m.onnx")
    os.utime(oldest, (0, 0))
    assert succeed("cache", "prune", "--unused-days", 1, "--json").json["removed"] == [oldest.name]
    (left,) = (tmp_path / "cache").iterdir()
    left.write_bytes(b"damaged")
    (row,) = succeed("cache", "list", "--json").json["entries"]
    assert row["problem"] == "cannot be read"
    assert succeed("cache", "prune", "--damaged", "--json").json["removed"] == [left.name]
    succeed("compile", other, "-o", tmp_path / "o.onnxla")
    assert len(succeed("cache", "prune", "--to-size", "1K", "--json").json["removed"]) == 1
    succeed("compile", other, "-o", tmp_path / "o.onnxla")
    assert "1 file removed" in succeed("cache", "clear").out
    assert succeed("cache", "clear", "--json").json["left_bytes"] == 0


def test_wrong_usage(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("ONNXLA_CACHE_DIR", raising=False)
    assert "set ONNXLA_CACHE_DIR" in onnxla("cache", "list").err
    assert onnxla("cache", "clear").code == 2
    wrong = onnxla("cache", "prune", "--folder", tmp_path, "--to-size", "much")
    assert wrong.code == 2 and "write it as 500M or 2G" in wrong.err
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    assert onnxla("cache", "list", "--folder", shared).code == 2
