"""Files by their SHA-256 digest in a folder of this user's: verified before anybody gets them, the oldest removed.

Several servers may share a folder. A file is read once to verify it, and again when it has changed since.
"""

import hashlib
import logging
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from onnxla.errors import FileError
from onnxla.files import open_file, writing
from onnxla.runtime.cache_files import open_folder, unfit_reason

DIGEST = re.compile(r"[0-9a-f]{64}")
CHUNK = 1 << 20
_IN_USE = 600.0
"""Seconds since its last use within which a file is not removed to make room: somebody may be reading it."""
_ABANDONED = 3600.0
"""Seconds after which a file that was never finished is taken for one whose writer was killed."""
_LOG = logging.getLogger("onnxla.serving")


class Blobs:
    """The files in one folder. Any thread may call any method."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        """Above `max_bytes` the files used longest ago go. Raises FileError for a folder that others may write to."""
        self._folder = folder
        self.max_bytes = max_bytes
        self._verified: dict[str, tuple[int, int, int]] = {}
        open_folder(folder)

    def get(self, digest: str) -> Path | None:
        """The file of this digest; None where there is none. One that is something else is removed."""
        path = self._folder / digest
        if not DIGEST.fullmatch(digest) or unfit_reason(path) != "":
            return None
        try:
            status = path.stat()
            seen = status.st_ino, status.st_size, status.st_mtime_ns
            if self._verified.get(digest) != seen:
                if digest_of_file(path) != digest:
                    _LOG.warning("a damaged file of the store is removed: %s", path)
                    path.unlink(missing_ok=True)
                    return None
                self._verified[digest] = seen
            os.utime(path, ns=(time.time_ns(), status.st_mtime_ns))  # used now, changed then
        except OSError:
            return None  # somebody has removed it
        return path

    def add(self, path: Path) -> tuple[str, Path]:
        """Keep a copy of a file: its digest, and where it is. Raises FileError."""
        try:
            digest = digest_of_file(path)
            kept = self.get(digest)
            if kept is None:
                kept = self._folder / digest
                with open_file(path) as source, writing(kept) as target:
                    shutil.copyfileobj(source, target, CHUNK)
        except OSError as error:
            raise FileError(f"cannot keep {path.name} in {self._folder}: {error.strerror or error}") from error
        self.make_room(digest)
        return digest, kept

    @contextmanager
    def adding(self, digest: str) -> Iterator["Incoming"]:
        """A file that is kept when the block ends, if its digest is this one. Raises OSError, DamagedError."""
        with writing(self._folder / digest) as target:
            incoming = Incoming(target.write)
            yield incoming
            if incoming.digest.hexdigest() != digest:
                raise DamagedError
        self.make_room(digest)

    def make_room(self, newest: str) -> None:
        """Remove what was never finished and the files that were used longest ago, until the rest fits."""
        now = time.time()
        entries = []
        for path in self._folder.iterdir():
            with suppress(OSError):
                status = path.lstat()
                entries.append((max(status.st_atime, status.st_mtime), path, status.st_size))
        total = sum(size for _, _, size in entries)
        for used, path, size in sorted(entries):
            is_abandoned = path.name.startswith(".") and now - used > _ABANDONED
            is_old = total > self.max_bytes and now - used > _IN_USE and path.name != newest
            if is_abandoned or is_old:
                with suppress(OSError):
                    path.unlink(missing_ok=True)
                    total -= size


class Incoming:
    """A file on its way in."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self.digest = hashlib.sha256()
        self._write = write

    def take(self, data: bytes) -> None:
        self.digest.update(data)
        self._write(data)


class DamagedError(Exception):
    """The bytes are not those that the name says."""


def digest_of_file(path: Path) -> str:
    """SHA-256, as `sha256sum` prints it. Raises OSError."""
    found = hashlib.sha256()
    with open_file(path) as file:
        while chunk := file.read(CHUNK):
            found.update(chunk)
    return found.hexdigest()
