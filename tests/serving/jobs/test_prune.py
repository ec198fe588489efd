"""Making room in a store, in a folder and in an object store that speaks S3, while servers use it."""

import os
import time
from pathlib import Path

import pytest

from onnxla.errors import FileError, InputError
from onnxla.runtime.cache import CacheKey
from onnxla.serving.jobs import prune
from onnxla.serving.jobs.prune import prune_store
from onnxla.serving.jobs.store import Record, Store
from tests.cli.command import onnxla as command
from tests.serving.jobs.test_store import MakeStore, make, s3

__all__ = ["make", "s3"]


def key(name: str) -> CacheKey:
    return CacheKey({"model": name})


def keep(store: Store, folder: Path, name: str, size: int = 1000) -> str:
    (folder / name).write_bytes(name.encode() * size)
    digest = store.put(folder / name)
    store.put_record("models", key(name), Record(digest, size, None))
    return digest


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """An hour after everything was written."""
    now = time.time

    class Later:
        time = staticmethod(lambda: now() + 3600)

    monkeypatch.setattr(prune, "time", Later)


def test_what_was_written_first_goes_with_its_record(make: MakeStore, tmp_path: Path, later: None) -> None:
    store = make()
    old, other = keep(store, tmp_path, "a"), keep(store, tmp_path, "b")
    time.sleep(1.1)  # an object store tells whole seconds
    new = keep(store, tmp_path, "c")
    assert prune_store(store.place, 5000, None) == prune.Pruned((), 0, 0, 3, 3000)
    gone = prune_store(store.place, 1500, None)
    assert set(gone.removed) == {old, other} and (gone.removed_bytes, gone.records) == (2000, 2)
    assert (gone.left, gone.left_bytes) == (1, 1000)
    fresh = make("another server")
    assert fresh.get(new) is not None and fresh.record("models", key("c")) is not None
    assert fresh.get(old) is None and fresh.record("models", key("a")) is None
    assert keep(store, tmp_path, "a") == old and make("a third").get(old) is not None
    assert prune_store(store.place, None, 60).left == 0


def test_what_is_new_stays_whatever_is_asked_for(make: MakeStore, tmp_path: Path) -> None:
    store = make()
    digest = keep(store, tmp_path, "a")
    assert prune_store(store.place, 0, 0) == prune.Pruned((), 0, 0, 1, 1000)
    assert make("another server").get(digest) is not None


def test_files_in_a_folder_go_by_their_use(tmp_path: Path, later: None) -> None:
    store = Store(str(tmp_path / "store"), tmp_path / "copies")
    used, unused = keep(store, tmp_path, "a"), keep(store, tmp_path, "b")
    for digest, seconds in ((used, 100), (unused, 50)):
        os.utime(tmp_path / "store" / "blobs" / digest, (time.time() - 50, time.time() - seconds))
    assert store.get(used) is not None
    assert prune_store(store.place, 1000, None).removed == (unused,)


def test_what_is_no_file_of_a_store_stays(tmp_path: Path, later: None) -> None:
    store = Store(str(tmp_path / "store"), tmp_path / "copies")
    keep(store, tmp_path, "a")
    strangers = [tmp_path / "store" / "blobs" / "notes.txt", tmp_path / "store" / "records" / "models" / "x.json"]
    for path in strangers:
        path.write_text("{}")
    damaged = tmp_path / "store" / "records" / "models" / f"{'0' * 64}.json"
    damaged.write_text("[" * 100_000)
    gone = prune_store(store.place, 0, None)
    assert (len(gone.removed), gone.records) == (1, 2)
    assert all(path.exists() for path in strangers) and not damaged.exists()


def test_places_that_are_no_store(tmp_path: Path, s3: object, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in (str(tmp_path), "s3://models/nothing"):
        with pytest.raises(InputError, match="there is no store in"):
            prune_store(place, 0, None)
    with pytest.raises(InputError, match="cannot be used"):
        prune_store("nothing://x", 0, None)
    monkeypatch.setattr(prune, "_used", lambda files, file: 1 / 0)
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs" / ("0" * 64)).touch()
    with pytest.raises(FileError, match="cannot be pruned: ZeroDivisionError"):
        prune_store(str(tmp_path), 0, None)


def test_the_command(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "store"), tmp_path / "copies")
    digest = keep(store, tmp_path, "a")
    for path in (tmp_path / "store").rglob("*"):
        os.utime(path, (time.time() - 3600, time.time() - 3600))
    ended = command("cache", "prune", "--store", store.place, "--unused-days", "1")
    assert (ended.code, ended.out) == (0, "0 files removed, 0 bytes, and 0 records; 1 file left, 1000 bytes\n")
    found = command("cache", "prune", "--store", store.place, "--to-size", "0", "--json").json
    assert (found["removed"], found["records"], found["left"]) == ([digest], 1, 0)
    for more in ((), ("--to-size", "1G", "--damaged"), ("--to-size", "1G", "--folder", tmp_path)):
        ended = command("cache", "prune", "--store", store.place, *more)
        assert ended.code == 2 and "--store goes with --to-size or --unused-days" in ended.err
