"""Single programs in the store: the compile cache of child processes, shared by all servers of the store."""

import logging
import os
import shutil
from pathlib import Path

from onnxla.errors import OnnxlaError
from onnxla.runtime.cache import CacheKey
from onnxla.serving.jobs.store import Record, Store

_KIND = "programs"
_LOG = logging.getLogger("onnxla.serving")


class StoredPrograms:
    """Programs by the digests of their keys. The compiler compares the keys themselves, in what it is given."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def fetch(self, digest: str, path: Path) -> bool:
        """Put the program there; gives whether the store has it."""
        record = self._store.record(_KIND, _key(digest))
        kept = None if record is None else self._store.get(record.sha256)
        if kept is None:
            return False
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                os.link(kept, path)  # the child replaces and removes names, it writes into no entry
            except OSError:
                shutil.copyfile(kept, path)
        except OSError as error:
            _LOG.warning("a program of the store cannot be used: %s", error)
            return False
        return True

    def keep(self, digest: str, path: Path) -> None:
        """The program at `path` is what was made for this key."""
        try:
            size = path.stat().st_size
            self._store.put_record(_KIND, _key(digest), Record(self._store.put(path), size, None))
        except (OSError, OnnxlaError) as error:
            _LOG.warning("a program is not kept in the store: %s", error)


def _key(digest: str) -> CacheKey:
    return CacheKey({"program": digest})
