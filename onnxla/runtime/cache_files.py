"""The folder and the files of the compile cache: whose they must be, since what is loaded from them is run."""

import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from onnxla.errors import FileError

SUFFIX = ".onnxla"
MEASUREMENTS, MEASUREMENT_SUFFIX = "tuning", ".json"
"""The folder in that of the entries, and the files in it, where tuning keeps what it has measured."""
RECOLLECTIONS, RECOLLECTION_SUFFIX = "recalled", ".json"
"""The same for what files were compiled to (`onnxla/recollection.py`)."""
_ADMINISTRATOR = 0
_ABANDONED = 3600.0
"""Seconds after which a file that was never finished is taken for one whose writer was killed."""


@dataclass(frozen=True)
class CacheEntry:
    """A file of the cache."""

    path: Path
    bytes: int
    used: float
    """When it was last read or written, in seconds since 1970."""


def open_folder(folder: Path) -> None:
    """Make the folder, for this user only. Raises ArtifactError for one that others may write to."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except OSError as error:
        raise FileError(f"cannot use the cache folder {folder}: {error.strerror}") from error
    if not _is_ours(status):
        raise FileError(
            f"the cache folder {folder} belongs to, or is open to, another user; its code would be run. "
            "Give it to yourself alone (chmod 700), or name another one in ONNXLA_CACHE_DIR"
        )


def unfit_reason(path: Path) -> str | None:
    """Why the file may not be read as an entry; empty where it may, None where there is no file."""
    try:
        status = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not stat.S_ISREG(status.st_mode):
        return "it is no regular file"
    if not _is_ours(status):
        return "it belongs to, or is open to, another user"
    return ""


def entries_in(folder: Path) -> list[CacheEntry]:
    """Every entry, those used last first. Other processes may add and remove some meanwhile."""
    return _files(folder, f"*{SUFFIX}")


def measurements_in(folder: Path) -> list[CacheEntry]:
    """The same of what tuning has measured."""
    return _files(folder / MEASUREMENTS, f"*{MEASUREMENT_SUFFIX}")


def recollections_in(folder: Path) -> list[CacheEntry]:
    """The same of which entries a file led to."""
    return _files(folder / RECOLLECTIONS, f"*{RECOLLECTION_SUFFIX}")


def abandoned_files(folder: Path, now: float) -> list[CacheEntry]:
    """Files that somebody began to write long ago: they are called `.<entry>.<random>` until they are done."""
    begun = _files(folder, f".*{SUFFIX}.*")
    begun += _files(folder / MEASUREMENTS, f".*{MEASUREMENT_SUFFIX}.*")
    begun += _files(folder / RECOLLECTIONS, f".*{RECOLLECTION_SUFFIX}.*")
    return [file for file in begun if now - file.used > _ABANDONED]


def _files(folder: Path, pattern: str) -> list[CacheEntry]:
    found = []
    for path in folder.glob(pattern):
        with suppress(FileNotFoundError):
            status = path.lstat()
            if stat.S_ISREG(status.st_mode):
                found.append(CacheEntry(path, status.st_size, status.st_mtime))
    return sorted(found, key=lambda entry: (-entry.used, entry.path.name))


def note_use(path: Path) -> None:
    """The entry was used now. Where the folder is read-only, or another process has removed it, nothing is noted."""
    with suppress(OSError):
        os.utime(path)


def _is_ours(status: os.stat_result) -> bool:
    """Whether only this user, or the administrator, can have written it."""
    return status.st_uid in (os.getuid(), _ADMINISTRATOR) and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
