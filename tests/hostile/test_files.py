"""Files that change, or are not what they seem, while they are read or written."""

import os
from pathlib import Path

import numpy as np
import pytest

import onnxla
from onnxla.ahead.library import write_library
from onnxla.errors import ArtifactError, ModelFormatError
from onnxla.files import write_file
from onnxla.frontends.onnx import external_data
from onnxla.frontends.onnx.importer import import_model
from onnxla.frontends.onnx.model_file import read_model
from onnxla.hlo.parser import parse_module
from onnxla.hlo.weight_files import weights_beside, write_weights
from tests.hostile.models import with_weights

SIZE = 4096


# Reading


def test_a_model_that_is_cut_short_after_it_was_read_compiles(tmp_path: Path) -> None:
    """A map of the file would end the process (SIGBUS)."""
    path = tmp_path / "model.onnx"
    path.write_bytes(with_weights(SIZE).SerializeToString())
    model = read_model(path)
    os.truncate(path, 0)
    (y,) = import_model(model).module.entry.evaluate(np.ones(1, np.float32))
    np.testing.assert_array_equal(y, np.arange(SIZE, dtype=np.float32))


def test_external_data_that_are_cut_short_after_they_were_read_stay(tmp_path: Path) -> None:
    proto = with_weights(SIZE)
    (weight,) = proto.graph.initializer
    (tmp_path / "w.bin").write_bytes(weight.raw_data)
    weight.ClearField("raw_data")
    weight.data_location = weight.EXTERNAL
    weight.external_data.add(key="location", value="w.bin")
    model = read_model(proto.SerializeToString(), folder=tmp_path)
    array = model.initializer(0)
    os.truncate(tmp_path / "w.bin", 0)
    np.testing.assert_array_equal(array, np.arange(SIZE, dtype=np.float32))


def test_a_file_that_is_cut_short_while_it_is_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(bytes(100))
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with pytest.raises(ModelFormatError, match="model.onnx was cut short while it was read"):
            external_data._read(descriptor, 0, 200, "model.onnx")
    finally:
        os.close(descriptor)


def test_weights_of_a_dump_that_are_cut_short_stay(tmp_path: Path) -> None:
    """They are asked for when the text is parsed, and used long after."""
    text = "ENTRY e {{ x = f32[64] parameter(0)\n c = f32[64] constant({0})\n ROOT y = f32[64] add(x, c) }}"
    values = np.arange(64, dtype=np.float32)
    module = parse_module(text.format("{" + ", ".join(map(str, values)) + "}"))
    write_weights(tmp_path / "e.hlo", module)
    again = parse_module(text.format("{...}"), weights=weights_beside(tmp_path / "e.hlo"))
    for file in (tmp_path / "weights").iterdir():
        os.truncate(file, 0)
    np.testing.assert_array_equal(again.entry.evaluate(values), 2 * values)


@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
def test_what_is_no_file_is_refused_at_once_as_a_model(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "model.onnx"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path = Path("/dev/zero")
    with pytest.raises(ModelFormatError, match="not a regular file"):
        read_model(path)


def test_what_is_no_file_is_refused_at_once_as_an_artifact(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.onnxla")
    for path in (tmp_path / "model.onnxla", tmp_path, Path("/dev/zero")):
        with pytest.raises(ArtifactError):
            onnxla.load_compiled(path)


# Writing


@pytest.mark.parametrize("link", ["symbolic", "hard"])
def test_links_are_replaced_and_what_they_lead_to_stays(tmp_path: Path, link: str) -> None:
    other, path = tmp_path / "precious", tmp_path / "out"
    other.write_text("precious")
    if link == "symbolic":
        path.symlink_to(other)
    else:
        os.link(other, path)
    write_file(path, "new")
    assert (path.read_text(), other.read_text()) == ("new", "precious")
    assert not path.is_symlink() and other.stat().st_nlink == 1


def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    before = sorted(os.listdir(tmp_path))
    for path in (tmp_path / "pipe", tmp_path / "folder"):
        with pytest.raises(OSError):
            write_file(path, "new")
    model = onnxla.compile(with_weights().SerializeToString())
    with pytest.raises(ArtifactError, match="pipe: there is something that is no file"):
        model.save(tmp_path / "pipe")
    assert sorted(os.listdir(tmp_path)) == before
    assert (tmp_path / "pipe").is_fifo()


def test_dumps_libraries_and_artifacts_follow_no_links(tmp_path: Path) -> None:
    """In a folder where somebody else has put links under the names that will be written."""
    folder, precious = tmp_path / "out", tmp_path / "precious"
    model = onnxla.compile(with_weights().SerializeToString(), options={"dump_to": folder / "first"})
    write_library(model, folder / "first", "net")
    model.save(folder / "first" / "net.onnxla")
    names = [path.relative_to(folder / "first") for path in (folder / "first").rglob("*") if path.is_file()]
    assert len(names) > 8
    precious.write_text("precious")
    for name in names:
        (folder / "second" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "second" / name).symlink_to(precious)
    model = onnxla.compile(with_weights().SerializeToString(), options={"dump_to": folder / "second"})
    write_library(model, folder / "second", "net")
    model.save(folder / "second" / "net.onnxla")
    assert precious.read_text() == "precious"
    weights = [name for name in names if name.parts[0] == "weights"]  # named by their digest: those there are kept
    assert [n for n in names if (folder / "second" / n).is_symlink() and n not in weights] == []
