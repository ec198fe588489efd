"""The compile cache: found by the whole key, bounded, private, and never the reason for a failure."""

import os
from pathlib import Path

import numpy as np
import pytest

from onnxla.errors import ArtifactError
from onnxla.runtime import cache as module
from onnxla.runtime.artifact import Artifact, write_artifact
from onnxla.runtime.cache import CacheKey, CompileCache
from onnxla.runtime.executable import Executable
from onnxla.runtime.signature import ModelSignature
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


def test_hits_and_misses_are_explained(cache: CompileCache) -> None:
    assert cache.explain(KEY) == "miss: the cache is empty"
    cache.put(KEY, scale_and_add(2))
    assert cache.explain(KEY) == "hit"
    other = CacheKey({**KEY.parts, "options": "fast", "target": "old"})
    assert cache.explain(other) == "miss: the nearest entry differs in options, target"


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


def test_foreign_artifacts_in_the_folder_are_not_used(cache: CompileCache) -> None:
    write_artifact(cache.folder / f"{KEY.digest}.onnxla", Artifact(ModelSignature((), ()), (scale_and_add(2),)))
    assert cache.get(KEY) is None
