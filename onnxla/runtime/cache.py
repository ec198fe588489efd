"""The compile cache: a folder of artifacts, each found by everything that decides its code.

Keys are compared whole, not by digest alone. Files appear by renaming, so several processes may share a folder. A
folder that other users may write to is refused, since what is loaded from it is run. Past its size the cache drops the
entries that were not used for longest; a full disk costs a warning, never the result.
"""

import os
import stat
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from onnxla.errors import ArtifactError
from onnxla.runtime.artifact import Artifact, read_artifact, write_artifact
from onnxla.runtime.digest import digest_of_all
from onnxla.runtime.program import Program
from onnxla.runtime.signature import ModelSignature

_SUFFIX = ".onnxla"


@dataclass(frozen=True)
class CacheKey:
    """What a program was made from, part by part: model, options, target, versions."""

    parts: Mapping[str, str]

    @cached_property
    def digest(self) -> str:
        return digest_of_all(text for name in sorted(self.parts) for text in (name, self.parts[name]))


@dataclass(frozen=True)
class CacheEntry:
    """A file of the cache."""

    path: Path
    bytes: int
    used: float
    """When it was last read or written, in seconds since 1970."""


class CompileCache:
    """The cache in one folder."""

    def __init__(self, folder: str | os.PathLike[str], max_bytes: int) -> None:
        """Makes the folder, for this user only. Raises ArtifactError for one that others may write to."""
        self.folder = Path(folder)
        self.max_bytes = max_bytes
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = self.folder.stat()
        except OSError as error:
            raise ArtifactError(f"cannot use the cache folder {self.folder}: {error.strerror}") from error
        if status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise ArtifactError(
                f"the cache folder {self.folder} belongs to, or is open to, another user; its code would be run"
            )

    def get(self, key: CacheKey) -> Program | None:
        """The program stored under `key`. A damaged entry is removed, with a warning, and counts as absent."""
        path = self._path(key)
        if not path.exists():
            return None
        try:
            artifact = read_artifact(path)
        except ArtifactError as error:
            warnings.warn(f"a damaged entry of the compile cache is removed: {error}", stacklevel=2)
            path.unlink(missing_ok=True)
            return None
        if artifact.about != {"key": dict(key.parts)}:
            return None
        os.utime(path)
        return artifact.programs[0]

    def put(self, key: CacheKey, program: Program) -> None:
        """Store a program; a failure to write is a warning."""
        try:
            write_artifact(self._path(key), Artifact(ModelSignature((), ()), (program,), {"key": dict(key.parts)}))
            self.trim()
        except (ArtifactError, OSError) as error:
            warnings.warn(f"the compile cache is not written: {error}", stacklevel=2)

    def entries(self) -> list[CacheEntry]:
        """Every entry, those used last first."""
        found = []
        for path in self.folder.glob(f"*{_SUFFIX}"):
            try:
                status = path.stat()
            except FileNotFoundError:  # another process trims too
                continue
            found.append(CacheEntry(path, status.st_size, status.st_mtime))
        return sorted(found, key=lambda entry: -entry.used)

    def trim(self) -> None:
        """Remove the entries used longest ago until the rest fits."""
        total = 0
        for entry in self.entries():
            total += entry.bytes
            if total > self.max_bytes:
                entry.path.unlink(missing_ok=True)

    def clear(self) -> None:
        """Remove every entry."""
        for entry in self.entries():
            entry.path.unlink(missing_ok=True)

    def explain(self, key: CacheKey) -> str:
        """Why `key` is found or not: the parts in which the nearest entry differs."""
        nearest: list[str] | None = None
        for entry in self.entries():
            try:
                stored = read_artifact(entry.path, verify_weights="off").about.get("key", {})
            except ArtifactError:
                continue
            differing = sorted(n for n in {*key.parts, *stored} if key.parts.get(n) != stored.get(n))
            if nearest is None or len(differing) < len(nearest):
                nearest = differing
        if nearest is None:
            return "miss: the cache is empty"
        return f"miss: the nearest entry differs in {', '.join(nearest)}" if nearest else "hit"

    def _path(self, key: CacheKey) -> Path:
        return self.folder / (key.digest + _SUFFIX)
