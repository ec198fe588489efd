"""The store that servers share: in a folder, and in an object store that speaks S3. What is wrong in it is not used."""

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from onnxla.errors import FileError, InputError
from onnxla.runtime.cache import CacheKey
from onnxla.serving.jobs.blobs import Blobs
from onnxla.serving.jobs.settings import JobSettings
from onnxla.serving.jobs.store import Record, Store
from tests.serving.jobs import models
from tests.serving.jobs.running import JobServer

KEY = CacheKey({"model": "a", "version": "1"})
MakeStore = Callable[..., Store]


@pytest.fixture(scope="module")
def s3() -> Iterator[Any]:
    """A server of S3 on this machine, and the file system that speaks to it."""
    import s3fs
    from moto.server import ThreadedMotoServer

    variables = {
        "AWS_ACCESS_KEY_ID": "anybody",
        "AWS_SECRET_ACCESS_KEY": "anything",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**variables, "AWS_ENDPOINT_URL": f"http://{host}:{port}"}.items():
            patch.setenv(name, value)
        s3fs.S3FileSystem.clear_instance_cache()
        files = s3fs.S3FileSystem()
        files.makedirs("models", exist_ok=True)  # moto keeps its buckets, also for the next server of this process
        yield files
        s3fs.S3FileSystem.clear_instance_cache()
    server.stop()


@pytest.fixture(params=["folder", "s3"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> MakeStore:
    """Makes stores at one place, each of a server of its own."""
    place = str(tmp_path / "store")
    if request.param == "s3":
        request.getfixturevalue("s3")
        place = f"s3://models/{tmp_path.name}"

    def made(server: str = "one", **more: Any) -> Store:
        return Store(place, tmp_path / server, **more)

    return made


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "file").write_bytes(b"an artifact" * 1000)
    return tmp_path / "file"


def keep(store: Store, file: Path, about: object = None) -> str:
    digest = store.put(file)
    store.put_record("models", KEY, Record(digest, file.stat().st_size, about))
    return digest


def damage(store: Store, digest: str, s3: Any = None) -> None:
    """Other bytes under this digest, where all servers look."""
    if s3 is not None:
        s3.pipe_file(f"{store.place}/blobs/{digest}", b"another program")
    else:
        Path(store.place, "blobs", digest).write_bytes(b"another program")


def test_what_one_server_keeps_the_others_have(make: MakeStore, file: Path) -> None:
    digest = keep(make("one"), file, {"programs": 1})
    other = make("two")
    record = other.record("models", KEY)
    assert record == Record(digest, file.stat().st_size, {"programs": 1})
    found = other.get(digest)
    assert found is not None and found.read_bytes() == file.read_bytes()
    assert other.get(digest) == found and other.put(file) == digest


def test_what_nobody_has(make: MakeStore) -> None:
    store = make()
    assert store.get("0" * 64) is None and store.record("models", KEY) is None
    assert store.get("../" * 10 + "etc/passwd") is None


def test_a_record_of_another_key_or_kind_is_none(make: MakeStore, file: Path) -> None:
    store = make()
    keep(store, file)
    assert store.record("programs", KEY) is None
    assert store.record("models", CacheKey({"model": "b", "version": "1"})) is None


def test_a_server_without_the_secret_is_not_believed(make: MakeStore, file: Path) -> None:
    keep(make("stranger"), file)
    keep(make("liar", secret=b"a guess of somebody"), file)
    ours = make("ours", secret=b"what we servers share")
    assert ours.record("models", KEY) is None
    keep(ours, file)
    assert make("two", secret=b"what we servers share").record("models", KEY) is not None
    assert make("stranger").record("models", KEY) is None


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"{", b"null", b'{"sha256": 7}', b'{"mac": 1}', b"[" * 100_000, b"\xff\xfe", b'{"key": {}}']
)
def test_a_damaged_record_is_none(text: bytes, tmp_path: Path, file: Path) -> None:
    store = Store(str(tmp_path / "store"), tmp_path)
    keep(store, file)
    (tmp_path / "store" / "records" / "models" / f"{KEY.digest}.json").write_bytes(text)
    assert store.record("models", KEY) is None


def test_a_record_that_names_no_file_is_none(tmp_path: Path, file: Path) -> None:
    store = Store(str(tmp_path / "store"), tmp_path)
    keep(store, file)
    path = tmp_path / "store" / "records" / "models" / f"{KEY.digest}.json"
    document = json.loads(path.read_text())
    for digest in ("../../../etc/passwd", "", None, 7, "0" * 63):
        path.write_text(json.dumps(document | {"sha256": digest}))
        assert store.record("models", KEY) is None


def test_damage_in_a_folder_is_found_and_removed(tmp_path: Path, file: Path) -> None:
    store = Store(str(tmp_path / "store"), tmp_path)
    digest = keep(store, file)
    assert store.get(digest) is not None
    damage(store, digest)
    assert store.get(digest) is None and not (tmp_path / "store" / "blobs" / digest).exists()
    assert keep(store, file) == digest and store.get(digest) is not None


def test_damage_in_an_object_store_is_found_and_removed(s3: Any, tmp_path: Path, file: Path) -> None:
    one = Store(f"s3://models/{tmp_path.name}", tmp_path / "one")
    digest = keep(one, file)
    damage(one, digest, s3)
    other = Store(one.place, tmp_path / "two")
    assert other.get(digest) is None and not s3.exists(f"{one.place}/blobs/{digest}")
    assert not [path for path in (tmp_path / "two" / "blobs").iterdir()]
    assert keep(other, file) == digest and Store(one.place, tmp_path / "three").get(digest) is not None


def test_an_object_store_that_is_not_there_costs_a_warning(
    tmp_path: Path, file: Path, s3: Any, caplog: pytest.LogCaptureFixture
) -> None:
    away = {"client_kwargs": {"endpoint_url": "http://127.0.0.1:9"}, "config_kwargs": {"retries": {"max_attempts": 0}}}
    store = Store("s3://models/x", tmp_path / "here", options=away)
    digest = keep(store, file)
    assert "cannot be written" in caplog.text
    assert store.get(digest) is not None and store.record("models", KEY) is None
    assert "cannot be read" in caplog.text


def test_places_that_there_are_not(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the store nowhere://x cannot be used"):
        Store("nowhere://x", tmp_path)
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "open" / "blobs").mkdir()
    (tmp_path / "open" / "blobs").chmod(0o777)
    with pytest.raises(FileError, match="is open to, another user"):
        Store(str(tmp_path / "open"), tmp_path)


def test_files_that_others_may_have_written_are_not_used(tmp_path: Path, file: Path) -> None:
    blobs = Blobs(tmp_path / "blobs", 1 << 30)
    digest, kept = blobs.add(file)
    kept.chmod(0o666)
    assert blobs.get(digest) is None
    kept.unlink()
    kept.symlink_to(file)
    assert blobs.get(digest) is None


def test_the_files_used_longest_ago_make_room(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path / "blobs", 2500)
    digests = []
    for k in range(3):
        (tmp_path / "file").write_bytes(bytes([k]) * 1000)
        digests.append(blobs.add(tmp_path / "file")[0])
    for k, digest in enumerate(digests):
        old = time.time() - 10_000 + k
        os.utime(tmp_path / "blobs" / digest, (old, old))
    assert blobs.get(digests[0]) is not None  # used now
    half_written = tmp_path / "blobs" / f".{digests[0]}.0123"
    half_written.write_bytes(b"x")
    os.utime(half_written, (0, 0))
    blobs.make_room("")
    assert [blobs.get(digest) is not None for digest in digests] == [True, False, True]
    assert not half_written.exists()
    blobs.max_bytes = 0
    blobs.make_room("")
    assert blobs.get(digests[0]) is not None  # somebody may be reading it


def test_a_secret_is_long_enough(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        JobSettings(store_secret_file=tmp_path / "none").secret()
    (tmp_path / "secret").write_text("short\n")
    with pytest.raises(InputError, match="fewer than 16 characters"):
        JobSettings(store_secret_file=tmp_path / "secret").secret()
    (tmp_path / "secret").write_text("long enough for everybody\n")
    assert JobSettings(store_secret_file=tmp_path / "secret").secret() == b"long enough for everybody"


def test_two_servers_compile_a_model_once(s3: Any, tmp_path: Path) -> None:
    model = models.small(tmp_path / "model.onnx", rows="batch")
    place = f"s3://models/{tmp_path.name}"
    with JobServer(store=place, folder=tmp_path / "one") as one, JobServer(store=place, folder=tmp_path / "two") as two:
        first = one.finished(one.submit(model, "?dim=batch=1,4"))
        assert first["state"] == "SUCCEEDED" and first["cached"] is False
        again = two.submit(model, "?dim=batch=1,4")
        assert again["state"] == "SUCCEEDED" and again["cached"] is True and again["artifact"] == first["artifact"]
        assert two.ask("GET", again["artifact"]["url"])[2] == one.ask("GET", first["artifact"]["url"])[2]
        assert two.json("GET", f"/v2/compile/{again['id']}/result")["programs"] == 2
        # of another list of sizes the code for each of them is there, too
        part = two.finished(two.submit(model, "?dim=batch=4"))
        (report,) = two.json("GET", f"/v2/compile/{part['id']}/result")["reports"]
        assert part["cached"] is False and report["from_cache"] is True


def test_a_damaged_artifact_is_compiled_again_and_never_served(s3: Any, tmp_path: Path) -> None:
    model = models.small(tmp_path / "model.onnx")
    place = f"s3://models/{tmp_path.name}"
    with JobServer(store=place, folder=tmp_path / "one") as one:
        first = one.finished(one.submit(model))
    for path in s3.ls(f"{place}/blobs"):
        s3.pipe_file(path, b"another program")
    with JobServer(store=place, folder=tmp_path / "two") as two:
        assert two.ask("GET", first["artifact"]["url"])[0] == 404
        again = two.finished(two.submit(model))
        assert again["state"] == "SUCCEEDED" and again["cached"] is False
        assert again["artifact"] == first["artifact"] and two.ask("GET", first["artifact"]["url"])[0] == 200
