"""Make room in a store of artifacts, wherever it lies: `onnxla cache prune --store s3://bucket/place`.

Files go by their last use where it is known, in folders; an object store only says when they were written. Servers that
use the store meanwhile lose nothing but time: what is gone is compiled again.
"""

import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import fsspec
from fsspec.implementations.local import LocalFileSystem

from onnxla.errors import FileError, InputError
from onnxla.serving.jobs.blobs import DIGEST

_IN_USE = 600.0
"""Seconds within which nothing is removed: a server may be reading a file, or writing the record of a new one."""
_AT_ONCE = 64
"""Records that are read together."""


@dataclass(frozen=True)
class Pruned:
    removed: tuple[str, ...]
    """Digests of files."""
    removed_bytes: int
    records: int
    """Those that said what was kept in files which are gone."""
    left: int
    left_bytes: int


@dataclass(frozen=True)
class _File:
    path: str
    digest: str
    bytes: int
    written: float
    """In seconds since 1970."""


def prune_store(place: str, most_bytes: int | None, unused_seconds: float | None) -> Pruned:
    """Remove files that were not used for so long, and those used longest ago until the rest fits; then their records.

    None for no bound. Raises InputError for a place that there is not, or that is no store, FileError where it cannot
    be read or written.
    """
    try:
        files, root = fsspec.core.url_to_fs(place)
    except (ImportError, ValueError, OSError) as error:
        raise InputError(f"the store {place} cannot be used: {error}") from error
    try:
        return _prune(files, root.rstrip("/"), place, most_bytes, unused_seconds)
    except InputError:
        raise
    except Exception as error:  # libraries of object stores raise errors of many kinds
        raise FileError(f"the store {place} cannot be pruned: {type(error).__name__}: {error}") from error


def _prune(files: Any, root: str, place: str, most_bytes: int | None, unused_seconds: float | None) -> Pruned:
    now = time.time()
    files.invalidate_cache()
    try:
        used = {file: _used(files, file) for file in _files(files, f"{root}/blobs", "")}
    except FileNotFoundError:
        raise InputError(f"there is no store in {place}: it would have a folder blobs") from None
    left = sum(file.bytes for file in used)
    gone = []
    for file in sorted(used, key=used.__getitem__):
        is_unused = unused_seconds is not None and now - used[file] > unused_seconds
        is_too_much = most_bytes is not None and left > most_bytes
        if (is_unused or is_too_much) and now - used[file] > _IN_USE:
            gone.append(file)
            left -= file.bytes
    if gone:
        files.rm([file.path for file in gone])
    kept = {file.digest for file in used} - {file.digest for file in gone}
    lost = list(_lost_records(files, root, kept, now))
    if lost:
        files.rm(lost)
    digests = tuple(file.digest for file in gone)
    return Pruned(digests, sum(file.bytes for file in gone), len(lost), len(kept), left)


def _files(files: Any, folder: str, suffix: str) -> Iterator[_File]:
    """The files in a folder whose names are a digest and a suffix: others are not a store's."""
    for row in files.ls(folder, detail=True):
        path = str(row["name"])
        digest = path.rpartition("/")[2].removesuffix(suffix)
        if row["type"] == "file" and DIGEST.fullmatch(digest):
            yield _File(path, digest, int(row["size"] or 0), files.modified(path).timestamp())


def _used(files: Any, file: _File) -> float:
    """When it was read or written last, as far as that is known."""
    return max(file.written, os.stat(file.path).st_atime) if isinstance(files, LocalFileSystem) else file.written


def _lost_records(files: Any, root: str, kept: set[str], now: float) -> Iterator[str]:
    """Records of files that are not there, and those that nobody could read."""
    with suppress(FileNotFoundError):
        for row in files.ls(f"{root}/records", detail=True):
            if row["type"] != "directory":
                continue
            old = [r.path for r in _files(files, str(row["name"]), ".json") if now - r.written > _IN_USE]
            for begin in range(0, len(old), _AT_ONCE):
                for path, text in files.cat(old[begin : begin + _AT_ONCE], on_error="omit").items():
                    if _digest_in(text) not in kept:
                        yield path


def _digest_in(text: bytes) -> str:
    """Of the file that a record is for; empty where it is no record."""
    try:
        return str(json.loads(text)["sha256"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
