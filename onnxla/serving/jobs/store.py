"""The store that servers share: files by their digest, and records that say what is kept under a key.

    blobs/<sha256>                    artifacts, of whole models and of single programs
    records/<kind>/<key digest>.json  {"key": {...}, "sha256": ..., "bytes": ..., "about": ..., "mac": ...}

It lies in a folder, or in an object store that fsspec knows (`s3://bucket/prefix`), of which copies are kept in a
folder here. What is read is a program that will be run: a record counts only for the whole key that is asked for, and
only with the servers' common secret where there is one; a file only with the digest that its name says. What does not
fit counts as absent. Where the store cannot be read or written, that is a warning, and every server for itself.
"""

import hashlib
import hmac
import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fsspec
from fsspec.implementations.local import LocalFileSystem

from onnxla.errors import FileError, InputError
from onnxla.files import write_file
from onnxla.runtime.cache import CacheKey
from onnxla.runtime.cache_files import open_folder, unfit_reason
from onnxla.serving.jobs.blobs import CHUNK, DIGEST, Blobs, DamagedError

_LARGEST_RECORD = 64 << 20
_LOG = logging.getLogger("onnxla.serving")


@dataclass(frozen=True)
class Record:
    """What is kept under a key."""

    sha256: str
    bytes: int
    about: Any
    """JSON: of a whole model what came of its compile."""


class Store:
    """The store at one place. Every method may be called by any thread; none of them needs the event loop."""

    def __init__(
        self,
        place: str,
        copies: Path,
        max_bytes: int = 64 << 30,
        secret: bytes = b"",
        options: Mapping[str, Any] | None = None,
    ) -> None:
        """`place`: a folder, or a URL that fsspec knows; `options` are fsspec's for it. `copies`: a folder for copies
        of a place elsewhere. Above `max_bytes` the files on this machine used longest ago go; what is elsewhere is
        its keeper's to bound.

        Raises InputError for a place that there is not, FileError for a folder that others may write to.
        """
        self.place = place
        try:
            self._files, root = fsspec.core.url_to_fs(place, **(options or {}))
        except (ImportError, ValueError, OSError) as error:
            raise InputError(f"the store {place} cannot be used: {error}") from error
        self._root = root.rstrip("/")
        self._is_here = isinstance(self._files, LocalFileSystem)
        folder = Path(root) if self._is_here else copies
        self._records = folder / "records"
        self._blobs = Blobs(folder / "blobs", max_bytes)
        self._secret = secret
        if self._is_here:
            open_folder(self._records)

    def put(self, path: Path) -> str:
        """Keep a copy of a file; returns its digest. Raises FileError where it cannot be kept on this machine."""
        digest, kept = self._blobs.add(path)
        if not self._is_here:
            with self._warned("written"):
                remote = self._remote("blobs", digest)
                if self._size(remote) != kept.stat().st_size:
                    self._files.put_file(str(kept), remote)
        return digest

    def get(self, digest: str) -> Path | None:
        """The file of this digest on this machine, verified; None where there is none that has it."""
        found = self._blobs.get(digest)
        if found is None and not self._is_here and DIGEST.fullmatch(digest):
            with self._warned("read"):
                self._fetch(digest)
            found = self._blobs.get(digest)
        return found

    def record(self, kind: str, key: CacheKey) -> Record | None:
        """What is kept under `key`; None where nothing is, or what is cannot be trusted."""
        name = f"{key.digest}.json"
        text = None
        with self._warned("read"):
            text = self._record_here(kind, name) if self._is_here else self._record_there(kind, name)
        if text is None:
            return None
        try:
            document = json.loads(text)
            if not hmac.compare_digest(str(document.pop("mac", "")), self._mac(kind, document)):
                raise ValueError("it is not of a server with our secret")
            if document["key"] != dict(key.parts):
                raise ValueError("it is of another key")
            digest, size = document["sha256"], document["bytes"]
            if not (isinstance(digest, str) and DIGEST.fullmatch(digest) and isinstance(size, int)):
                raise ValueError("it names no file")
            return Record(digest, size, document["about"])
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            _LOG.warning("a record of the store is not used: %s/%s: %s", kind, name, error)
            return None

    def put_record(self, kind: str, key: CacheKey, record: Record) -> None:
        """From now on this is what is kept under `key`. One that is too long is not kept."""
        document = {"key": dict(key.parts), "sha256": record.sha256, "bytes": record.bytes, "about": record.about}
        text = json.dumps(document | {"mac": self._mac(kind, document)}).encode()
        if len(text) > _LARGEST_RECORD:
            return
        with self._warned("written"):
            if self._is_here:
                open_folder(self._records / kind)
                write_file(self._records / kind / f"{key.digest}.json", text)
            else:
                self._files.pipe_file(self._remote("records", kind, f"{key.digest}.json"), text)

    def _record_here(self, kind: str, name: str) -> bytes | None:
        path = self._records / kind / name
        if unfit_reason(path) != "" or path.stat().st_size > _LARGEST_RECORD:
            return None
        return path.read_bytes()

    def _record_there(self, kind: str, name: str) -> bytes | None:
        remote = self._remote("records", kind, name)
        size = self._size(remote)
        return None if size is None or size > _LARGEST_RECORD else bytes(self._files.cat_file(remote))

    def _fetch(self, digest: str) -> None:
        """Make a copy of a file elsewhere, where it is there; remove it there where it is not what its name says."""
        remote = self._remote("blobs", digest)
        size = self._size(remote)
        if size is None:
            return
        if size > self._blobs.max_bytes:
            raise FileError(f"{digest} has {size} bytes, more than are kept here")
        try:
            with self._blobs.adding(digest) as incoming, self._files.open(remote, "rb") as source:
                while chunk := source.read(CHUNK):
                    incoming.take(chunk)
        except DamagedError:
            _LOG.warning("a damaged file of the store is removed: %s", remote)
            self._files.rm_file(remote)

    def _size(self, remote: str) -> int | None:
        """None where there is no such file."""
        with suppress(FileNotFoundError):
            return int(self._files.size(remote))
        return None

    @contextmanager
    def _warned(self, what: str) -> Iterator[None]:
        """A failure of the place costs a warning: libraries of object stores raise errors of many kinds."""
        try:
            yield
        except Exception as error:
            _LOG.warning("the store %s cannot be %s: %s: %s", self.place, what, type(error).__name__, error)

    def _remote(self, *parts: str) -> str:
        return "/".join((self._root, *parts))

    def _mac(self, kind: str, document: Mapping[str, Any]) -> str:
        """The record's signature with the servers' secret; empty where they have none."""
        if not self._secret:
            return ""
        text = json.dumps([kind, document], sort_keys=True).encode()
        return hmac.new(self._secret, text, hashlib.sha256).hexdigest()
