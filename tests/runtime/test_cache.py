"""The compile cache: found by the whole key, bounded, private, and never the reason for a failure."""

import os
import resource
import warnings
from pathlib import Path

import numpy as np
import pytest

from onnxla.errors import ArtifactError
from onnxla.runtime import cache as module
from onnxla.runtime.artifact import Artifact
from onnxla.runtime.artifact_reading import read_artifact
from onnxla.runtime.artifact_writing import write_artifact
from onnxla.runtime.cache import CacheKey, CompileCache, PartComparison
from onnxla.runtime.executable import Executable
from onnxla.runtime.signature import ModelSignature
from onnxla.tuning.memory import TuningMemory
from tests.runtime.hand_written import expected, scale_and_add

KEY = CacheKey({"model": "m", "options": "o", "target": "t"})
X = np.ones((2, 16), np.float32)


@pytest.fixture
def cache(tmp_path: Path) -> CompileCache:
    return CompileCache(tmp_path / "cache", 1 << 30)


def test_what_was_put_is_found_and_runs(cache: CompileCache) -> None:
    assert cache.get(KEY) is None
    cache.put(KEY, scale_and_add(2))
    found = cache.get(KEY)
    assert found is not None
    np.testing.assert_array_equal(Executable(found).run([X], 1)[0], expected(X, 2))


def test_every_part_of_the_key_counts(cache: CompileCache) -> None:
    cache.put(KEY, scale_and_add(2))
    for part in KEY.parts:
        assert cache.get(CacheKey({**KEY.parts, part: "other"})) is None
    assert cache.get(CacheKey({**KEY.parts, "more": ""})) is None


def test_equal_digests_of_different_keys_are_not_confused(cache: CompileCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "digest_of_all", lambda parts: "collision")
    cache.put(CacheKey(dict(KEY.parts)), scale_and_add(2))
    assert cache.get(CacheKey({"model": "another"})) is None
    assert cache.get(CacheKey(dict(KEY.parts))) is not None


def test_a_key_is_compared_with_the_nearest_entry_part_by_part(cache: CompileCache) -> None:
    assert cache.compare(KEY) is None
    cache.put(KEY, scale_and_add(2), "scale")
    cache.put(CacheKey({"model": "x", "options": "y", "target": "z"}), scale_and_add(2), "far away")
    found = cache.compare(KEY)
    assert found is not None and found.is_hit and found.model == "scale"
    found = cache.compare(CacheKey({**KEY.parts, "options": "fast", "more": "n"}))
    assert found is not None and not found.is_hit and found.model == "scale"
    assert found.differing == (PartComparison("options", "fast", "o"), PartComparison("more", "n", None))
    assert [p.name for p in found.parts if p.is_same] == ["model", "target"]


def test_the_entries_used_longest_ago_go_first(cache: CompileCache) -> None:
    keys = [CacheKey({"model": str(k)}) for k in range(4)]
    for age, key in enumerate(keys):
        cache.put(key, scale_and_add(2))
        os.utime(cache.entries()[0].path, (age, age))
    assert cache.get(keys[0]) is not None  # now the newest
    cache.max_bytes = 2 * cache.entries()[0].bytes
    cache.trim()
    assert [cache.get(key) is not None for key in keys] == [True, False, False, True]
    cache.clear()
    assert cache.entries() == []


def test_a_damaged_entry_is_removed(cache: CompileCache) -> None:
    cache.put(KEY, scale_and_add(2))
    (entry,) = cache.entries()
    entry.path.write_bytes(entry.path.read_bytes()[:-7])
    with pytest.warns(UserWarning, match="a damaged entry"):
        assert cache.get(KEY) is None
    assert cache.entries() == []


def test_a_failed_write_is_a_warning(cache: CompileCache, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, artifact: Artifact) -> int:
        raise ArtifactError("No space left on device")

    monkeypatch.setattr(module, "write_artifact", full)
    with pytest.warns(UserWarning, match="the compile cache is not written: No space left on device"):
        cache.put(KEY, scale_and_add(2))


def test_the_folder_is_private(tmp_path: Path) -> None:
    CompileCache(tmp_path / "new" / "cache", 1)
    assert (tmp_path / "new" / "cache").stat().st_mode & 0o077 == 0
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    with pytest.raises(ArtifactError, match="is open to, another user"):
        CompileCache(shared, 1)


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ArtifactError, match="cannot use the cache folder"):
        CompileCache(tmp_path / "file" / "cache", 1)


def test_a_program_that_is_not_what_its_key_says_is_removed(cache: CompileCache) -> None:
    cache.put(KEY, scale_and_add(2))
    with pytest.warns(UserWarning, match="is not what its key says"):
        assert cache.get(KEY, lambda program: program.inputs[0].shape == (3, 16)) is None
    assert cache.entries() == []


def test_entries_that_others_may_have_written_are_not_read(cache: CompileCache, tmp_path: Path) -> None:
    cache.put(KEY, scale_and_add(2))
    (entry,) = cache.entries()
    entry.path.chmod(0o666)
    with pytest.warns(UserWarning, match="is not used: .* belongs to, or is open to, another user"):
        assert cache.get(KEY) is None
    assert entry.path.exists() and cache.about(entry) is None
    entry.path.chmod(0o600)
    entry.path.rename(tmp_path / "elsewhere")
    entry.path.symlink_to(tmp_path / "elsewhere")
    with pytest.warns(UserWarning, match="it is no regular file"):
        assert cache.get(KEY) is None
    entry.path.unlink()
    os.mkfifo(entry.path)  # reading it would wait for ever
    with pytest.warns(UserWarning, match="it is no regular file"):
        assert cache.get(KEY) is None
    assert cache.entries() == []


@pytest.mark.skipif(os.getuid() != 0, reason="files of another user take an administrator")
def test_entries_and_folders_of_another_user_are_not_read(cache: CompileCache) -> None:
    cache.put(KEY, scale_and_add(2))
    (entry,) = cache.entries()
    os.chown(entry.path, 12345, -1)
    with pytest.warns(UserWarning, match="belongs to, or is open to, another user"):
        assert cache.get(KEY) is None
    os.chown(cache.folder, 12345, -1)
    with pytest.raises(ArtifactError, match="belongs to, or is open to, another user"):
        CompileCache(cache.folder, 1)


def test_an_entry_that_another_process_removes_meanwhile_is_absent(
    cache: CompileCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.put(KEY, scale_and_add(2))

    def gone(path: Path, **options: object) -> Artifact:
        path.unlink()
        return read_artifact(path)

    monkeypatch.setattr(module, "read_artifact", gone)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cache.get(KEY) is None
    monkeypatch.undo()
    cache.put(KEY, scale_and_add(2))

    def removed_after_reading(path: Path, **options: object) -> Artifact:
        artifact = read_artifact(path)
        path.unlink()
        return artifact

    monkeypatch.setattr(module, "read_artifact", removed_after_reading)
    found = cache.get(KEY)
    assert found is not None
    np.testing.assert_array_equal(Executable(found).run([X], 1)[0], expected(X, 2))


def test_a_full_disk_is_a_warning_and_leaves_nothing(cache: CompileCache) -> None:
    """The system itself refuses to write more than some bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, before[1]))
    try:
        with pytest.warns(UserWarning, match="the compile cache is not written: cannot write"):
            cache.put(KEY, scale_and_add(2))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(cache.folder.iterdir()) == []


def test_files_of_writers_that_were_killed_go_when_they_are_old(cache: CompileCache) -> None:
    new, old = (cache.folder / f".{KEY.digest}.onnxla.{name}" for name in ("new", "old"))
    for path in (new, old):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    cache.put(KEY, scale_and_add(2))
    assert new.exists() and not old.exists() and len(cache.entries()) == 1


def test_pruning_by_age_and_by_wish(cache: CompileCache) -> None:
    keys = [CacheKey({"model": str(k)}) for k in range(3)]
    for key in keys:
        cache.put(key, scale_and_add(2), key.parts["model"])
    first = cache.folder / f"{keys[0].digest}.onnxla"
    os.utime(first, (0, 0))
    assert [e.path for e in cache.prune(unused_seconds=1000)] == [first]
    gone = cache.prune(unwanted=lambda entry: (cache.about(entry) or ({},))[0].get("model") == "1")
    assert [e.path.stem for e in gone] == [keys[1].digest]
    assert cache.get(keys[2]) is not None


def test_measurements_of_tuning_go_by_age_and_size_and_when_all_does(cache: CompileCache) -> None:
    memory = TuningMemory(cache.folder, "this machine")
    for site in ("old", "used", "new"):
        memory.put(site, {"way": 1.0})
    old, used, new = (memory.folder / memory._path(site).name for site in ("old", "used", "new"))
    for path in (old, used):
        os.utime(path, (0, 0))
    assert memory.get("used") == {"way": 1.0}  # and is no longer old
    assert [e.path for e in cache.prune(unused_seconds=1000)] == [old]
    assert cache.prune(unwanted=lambda entry: True) == []  # wishes are about entries
    cache.put(KEY, scale_and_add(2))
    os.utime(cache.folder / f"{KEY.digest}.onnxla", (2**31, 2**31))
    assert {e.path for e in cache.prune(max_bytes=cache.entries()[0].bytes)} == {used, new}
    memory.put("new", {"way": 1.0})
    assert len(cache.clear()) == 2
    assert not cache.entries() and not new.exists()


def test_foreign_artifacts_in_the_folder_are_not_used(cache: CompileCache) -> None:
    write_artifact(cache.folder / f"{KEY.digest}.onnxla", Artifact(ModelSignature((), ()), (scale_and_add(2),)))
    assert cache.get(KEY) is None
