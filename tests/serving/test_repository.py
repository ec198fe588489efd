"""What is found in a folder of models, and that nothing else is."""

import os
from pathlib import Path

import pytest

from onnxla.serving.errors import InvalidRequestError, UnknownModelError
from onnxla.serving.repository import Repository
from tests.serving.repositories import dense, put


def test_versions_are_folders(tmp_path: Path) -> None:
    put(tmp_path, "m", dense(), 1)
    put(tmp_path, "m", dense(), 12)
    (tmp_path / "m" / "03").mkdir()
    (tmp_path / "m" / "notes").mkdir()
    (tmp_path / "m" / "4" / "model.savedmodel").mkdir(parents=True)
    found = Repository(tmp_path).read("m")
    assert {v: f.path.name for v, f in found.versions.items()} == {
        1: "model.onnx",
        12: "model.onnx",
        4: "model.savedmodel",
    }
    assert found.problems == {}


def test_a_model_without_versions_is_version_1(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "model.hlo").write_text("HloModule m")
    assert Repository(tmp_path).read("m").versions[1].path == tmp_path.resolve() / "m" / "model.hlo"


def test_versions_without_one_model_are_problems(tmp_path: Path) -> None:
    folder = put(tmp_path, "m", dense())
    (folder / "model.onnxla").write_bytes(b"")
    (tmp_path / "m" / "2").mkdir()
    found = Repository(tmp_path).read("m")
    assert found.versions == {}
    assert "has model.onnxla and model.onnx: keep one" in found.problems[1]
    assert "2 has none of model.onnxla, model.onnx" in found.problems[2]
    assert list(Repository(tmp_path).read("m", "model.onnx").versions) == [1]


@pytest.mark.parametrize("name", ["..", ".", "", "m/1", "../m", "/etc", "m\0", "é", ".hidden", "x" * 200, "nobody"])
def test_names_never_make_a_path(tmp_path: Path, name: str) -> None:
    put(tmp_path / "models", "m", dense())
    put(tmp_path, "é", dense())
    with pytest.raises(UnknownModelError):
        Repository(tmp_path / "models").read(name)


def test_links_do_not_lead_out(tmp_path: Path) -> None:
    outside = put(tmp_path, "outside", dense())
    root = tmp_path / "models"
    put(root, "m", dense())
    (root / "m" / "1" / "model.onnx").unlink()
    (root / "m" / "1" / "model.onnx").symlink_to(outside / "model.onnx")
    assert "leads out of the repository" in Repository(root).read("m").problems[1]
    (root / "whole").symlink_to(tmp_path / "outside")
    with pytest.raises(InvalidRequestError, match="whole is a link that leads out"):
        Repository(root).read("whole")
    (root / "m" / "config.pbtxt").symlink_to("/etc/hostname")
    with pytest.raises(InvalidRequestError, match="config.pbtxt is a link"):
        Repository(root).read("m")
    folder = put(root, "weights", dense())
    (folder / "weights.bin").symlink_to("/etc/hostname")
    assert "weights.bin is a link" in Repository(root).read("weights").problems[1]


def test_links_inside_are_followed(tmp_path: Path) -> None:
    put(tmp_path, "..data", dense())
    (tmp_path / "m").symlink_to("..data")
    assert list(Repository(tmp_path).read("m").versions) == [1]


def test_pipes_are_no_configuration(tmp_path: Path) -> None:
    put(tmp_path, "m", dense())
    os.mkfifo(tmp_path / "m" / "config.pbtxt")
    with pytest.raises(InvalidRequestError, match="config.pbtxt cannot be read"):
        Repository(tmp_path).read("m")


def test_other_files_are_another_stamp(tmp_path: Path) -> None:
    folder = put(tmp_path, "m", dense())
    repository = Repository(tmp_path)
    before = repository.read("m").versions[1]
    assert repository.read("m").versions[1] == before
    (folder / "weights.bin").write_bytes(b"1")
    assert repository.read("m").versions[1] != before
