"""Entries of the compile cache: found, compared and listed, whatever a file holds; a damaged one is a miss."""

import tempfile
import warnings
from functools import cache
from pathlib import Path

from onnxla.runtime.cache import CacheKey, CompileCache
from tests.hostile.fuzzers.artifact import file_of, mutate, seeds
from tests.hostile.fuzzers.atheris_main import main
from tests.hostile.fuzzers.target import Target

KEY, OTHER = CacheKey({"model": "m"}), CacheKey({"model": "other"})


@cache
def _folder() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory()


def run(data: bytes) -> None:
    """Nothing is refused here: what is wrong with a file is a warning."""
    store = CompileCache(Path(_folder().name) / "cache", 1 << 30)
    file = store.folder / (KEY.digest + ".onnxla")
    file.write_bytes(file_of(data))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nearest = store.compare(OTHER)
        assert nearest is None or not nearest.is_hit
        for entry in store.entries():
            store.about(entry)
        found = store.get(KEY)
        assert store.get(OTHER) is None
    assert len(store.entries()) == 1 or found is None
    store.clear()


TARGET = Target("cache", seeds, run, mutate)

if __name__ == "__main__":
    main(TARGET)
