"""Archives of strangers: names, links, devices, bombs, damage; and which file in them is the model."""

import gzip
import io
import json
import struct
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

import onnxla
from onnxla.errors import InputError, ModelFormatError, OnnxlaError, ResourceLimitError
from onnxla.serving.jobs.unpack import Unpacked, is_archive, unpack
from tests.serving.jobs import models
from tests.serving.jobs.running import JobServer

ROOM = {"most_bytes": 1 << 20, "most_files": 100}


def zipped(files: Mapping[str, bytes]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return data.getvalue()


def tarred(files: Mapping[str, bytes], mode: str = "w") -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return data.getvalue()


def tar_of(kind: bytes, target: str = "") -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        info = tarfile.TarInfo("model.onnx")
        info.type, info.linkname = kind, target
        archive.addfile(info)
    return data.getvalue()


def unpacked(tmp_path: Path, data: bytes, **room: int) -> Unpacked:
    (tmp_path / "archive").write_bytes(data)
    assert is_archive(tmp_path / "archive")
    return unpack(tmp_path / "archive", tmp_path / "out", **{**ROOM, **room})


@pytest.mark.parametrize("pack", [zipped, tarred, lambda files: tarred(files, "w:gz")], ids=["zip", "tar", "tar.gz"])
def test_a_model_with_its_files(pack: object, tmp_path: Path) -> None:
    data = pack({"net/model.onnx": b"m", "net/weights.bin": b"w", "net/more/x.bin": b"x"})  # type: ignore[operator]
    found = unpacked(tmp_path, data)
    assert found.model == tmp_path / "out" / "net" / "model.onnx" and found.options is None
    assert (found.model.parent / "more" / "x.bin").read_bytes() == b"x"


def test_a_saved_model_is_its_folder(tmp_path: Path) -> None:
    files = {"m/saved_model.pb": b"", "m/variables/variables.index": b"", "m/assets/words.txt": b""}
    assert unpacked(tmp_path, zipped(files)).model == tmp_path / "out" / "m"


def test_the_archive_says_which_model_and_how(tmp_path: Path) -> None:
    said = {"model": "b.onnx", "compile": {"dims": {"batch": [1]}}}
    found = unpacked(tmp_path, zipped({"a.onnx": b"", "b.onnx": b"", "onnxla.json": json.dumps(said).encode()}))
    assert found.model.name == "b.onnx" and found.options == {"dims": {"batch": [1]}}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a.onnx": b"", "b.onnx": b""}, "not one model but a.onnx, b.onnx: name it in onnxla.json"),
        ({"readme": b""}, "not one model but none"),
        ({"onnxla.json": b"{"}, "is no JSON"),
        ({"onnxla.json": b"[" * 100_000}, "is no JSON"),
        ({"onnxla.json": b'{"mode": 1}'}, "an object with the fields model and compile"),
        ({"onnxla.json": b'{"model": "x.onnx"}'}, "names x.onnx, which is not in it"),
        ({"manifest.json": b"", "code/x86_64/0.o": b""}, "this is compiled already"),
    ],
)
def test_archives_without_one_model(files: dict[str, bytes], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        unpacked(tmp_path, zipped(files))


NAMES = ["../x", "/etc/x", "a/../../x", "a\\..\\x", "a" * 2000, "/".join("a" * 40), "..", "C:\\x"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("pack", [zipped, tarred], ids=["zip", "tar"])
def test_names_that_lead_elsewhere_are_refused(name: str, pack: object, tmp_path: Path) -> None:
    with pytest.raises(ModelFormatError, match="is no name of a file in an archive"):
        unpacked(tmp_path, pack({name: b"evil"}))  # type: ignore[operator]
    assert {path.name for path in tmp_path.iterdir()} <= {"archive", "out"}


def test_a_model_elsewhere_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelFormatError, match="is no name"):
        unpacked(tmp_path, zipped({"onnxla.json": b'{"model": "../../../etc/passwd"}'}))


KINDS = [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE]


@pytest.mark.parametrize("kind", KINDS)
def test_links_and_devices_are_refused(kind: bytes, tmp_path: Path) -> None:
    with pytest.raises(ModelFormatError, match="is a link or a device"):
        unpacked(tmp_path, tar_of(kind, "/etc/passwd"))


def test_links_in_a_zip_are_refused(tmp_path: Path) -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        info = zipfile.ZipInfo("model.onnx")
        info.create_system, info.external_attr = 3, 0o120777 << 16
        archive.writestr(info, "/etc/passwd")
    with pytest.raises(ModelFormatError, match="is a link or a device"):
        unpacked(tmp_path, data.getvalue())


def test_bombs_end_at_the_bound(tmp_path: Path) -> None:
    bomb = zipped({"model.onnx": bytes(64 << 20)})
    assert len(bomb) < 100_000
    with pytest.raises(ResourceLimitError, match="more than 1048576 bytes"):
        unpacked(tmp_path, bomb)
    assert sum(path.stat().st_size for path in (tmp_path / "out").iterdir()) <= 1 << 20


def test_a_tar_in_gzip_is_no_way_around(tmp_path: Path) -> None:
    with pytest.raises(ResourceLimitError, match="more than 1048576 bytes"):
        unpacked(tmp_path, gzip.compress(tarred({"model.onnx": bytes(8 << 20)})))


def test_many_files_end_at_the_bound(tmp_path: Path) -> None:
    with pytest.raises(ResourceLimitError, match="more than 100 files"):
        unpacked(tmp_path, zipped({f"{k}.onnx": b"" for k in range(101)}))


def test_a_file_twice_and_a_file_that_is_a_folder(tmp_path: Path) -> None:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for content in (b"a", b"b"):
            info = tarfile.TarInfo("model.onnx")
            info.size = 1
            archive.addfile(info, io.BytesIO(content))
    with pytest.raises(ModelFormatError, match="has model.onnx twice"):
        unpacked(tmp_path, data.getvalue())
    (tmp_path / "more").mkdir()
    with pytest.raises(ModelFormatError, match="as a file and as a folder|twice"):
        unpacked(tmp_path / "more", tarred({"a": b"", "a/b": b""}))


def test_damaged_archives_are_errors(tmp_path: Path) -> None:
    """A byte changed at each of many places, and cuts: an error of ours, or an archive."""
    random = np.random.default_rng(5)
    for number, whole in enumerate([zipped({"m.onnx": b"x" * 300}), tarred({"m.onnx": b"x" * 300}, "w:gz")]):
        for k in range(150):
            data = bytearray(whole)
            if k % 3:
                data[int(random.integers(4, len(data)))] = int(random.integers(256))
            else:
                del data[int(random.integers(4, len(data))) :]
            (tmp_path / "archive").write_bytes(data)
            try:
                unpack(tmp_path / "archive", tmp_path / f"out-{number}-{k}", **ROOM)
            except OnnxlaError:
                pass


def test_a_zip_that_lies_about_its_sizes(tmp_path: Path) -> None:
    data = bytearray(zipped({"model.onnx": bytes(4 << 20)}))
    place = data.rindex(b"PK\x01\x02") + 24
    data[place : place + 4] = struct.pack("<I", 10)
    with pytest.raises(OnnxlaError, match="damaged|more than 1048576 bytes"):
        unpacked(tmp_path, bytes(data))


def test_archives_compile_over_http_and_bombs_fail_alone(tmp_path: Path) -> None:
    model = models.with_external_data(tmp_path / "model.onnx", 4096)
    weights = np.arange(1024, dtype=np.float32)
    said = {"compile": {"options": {"opt_level": 1}}}
    files = {"model.onnx": model.read_bytes(), "weights.bin": weights.tobytes()}
    with JobServer(folder=tmp_path / "jobs", unpacked_bytes=1 << 20) as server:
        bomb = server.submit(zipped({"model.onnx": bytes(64 << 20)}))
        done = server.finished(server.submit(tarred({**files, "onnxla.json": json.dumps(said).encode()}, "w:gz")))
        assert done["state"] == "SUCCEEDED", done
        (tmp_path / "a.onnxla").write_bytes(server.ask("GET", done["artifact"]["url"])[2])
        bomb = server.finished(bomb)
        assert bomb["state"] == "FAILED" and bomb["error"]["kind"] == "ResourceLimitError"
        assert "more than 1048576 bytes" in bomb["error"]["message"]
    (y,) = onnxla.load_compiled(tmp_path / "a.onnxla").run(None, {"x": np.ones(1, np.float32)})
    assert np.array_equal(y, weights + 1)
