"""The compile cache: a folder of artifacts, each found by everything that decides its code.

Keys are compared whole, not by digest alone. Files appear by renaming, so several processes may share a folder: those
that miss at once all compile, and the last one's file, equal to the others', stays. A folder or file that other users
may write to is not read, since what is loaded from it is run. Past its size the cache drops the entries that were not
used for longest. What cannot be read, or written (a full disk, a read-only folder), costs a warning, never the result.
"""

import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from onnxla.errors import ArtifactError
from onnxla.runtime.artifact import Artifact
from onnxla.runtime.artifact_reading import read_artifact
from onnxla.runtime.artifact_writing import write_artifact
from onnxla.runtime.cache_files import (
    SUFFIX,
    CacheEntry,
    abandoned_files,
    entries_in,
    measurements_in,
    note_use,
    open_folder,
    recollections_in,
    unfit_reason,
)
from onnxla.runtime.digest import digest_of_all
from onnxla.runtime.program import Program
from onnxla.runtime.signature import ModelSignature


@dataclass(frozen=True)
class CacheKey:
    """What a program was made from, part by part: model, options, target, versions."""

    parts: Mapping[str, str]

    @cached_property
    def digest(self) -> str:
        return digest_of_all(text for name in sorted(self.parts) for text in (name, self.parts[name]))


@dataclass(frozen=True)
class PartComparison:
    """One part of a key beside the same part of an entry's; None where one of them has no such part."""

    name: str
    wanted: str | None
    stored: str | None

    @property
    def is_same(self) -> bool:
        return self.wanted == self.stored


@dataclass(frozen=True)
class KeyComparison:
    """A key beside that of the entry that comes nearest to it."""

    entry: str
    """The entry's file name."""
    model: str
    """The model that the entry was made from."""
    parts: tuple[PartComparison, ...]

    @property
    def is_hit(self) -> bool:
        return all(part.is_same for part in self.parts)

    @property
    def differing(self) -> tuple[PartComparison, ...]:
        return tuple(part for part in self.parts if not part.is_same)


Supply: TypeAlias = Callable[[str, Path], bool]
"""Puts the entry of a key's digest at a path, from wherever else it is kept; gives whether there is one."""
_supplier: ContextVar[Supply | None] = ContextVar("onnxla_cache_supplier", default=None)


@contextmanager
def supplied_by(supply: Supply) -> Iterator[None]:
    """What this thread misses in a cache is asked of `supply`, inside the block; what comes is checked as any entry."""
    before = _supplier.set(supply)
    try:
        yield
    finally:
        _supplier.reset(before)


class CompileCache:
    """The cache in one folder."""

    def __init__(self, folder: str | os.PathLike[str], max_bytes: int) -> None:
        """Makes the folder, for this user only. Raises ArtifactError for one that others may write to."""
        self.folder = Path(folder)
        self.max_bytes = max_bytes
        open_folder(self.folder)

    def get(self, key: CacheKey, fits: Callable[[Program], bool] = lambda program: True) -> Program | None:
        """The program stored under `key`.

        A damaged entry, or one whose program does not fit, is removed with a warning and counts as absent; so does one
        that others may have written, which stays.
        """
        path = self._path(key)
        reason = unfit_reason(path)
        supply = _supplier.get()
        if reason is None and supply is not None and supply(key.digest, path):
            reason = unfit_reason(path)
        if reason is None:
            return None
        if reason:
            _warn(f"an entry of the compile cache is not used: {path.name}: {reason}")
            return None
        try:
            artifact = read_artifact(path)
            if _key_of(artifact) != key.parts:
                return None
            if not fits(artifact.programs[0]):
                raise ArtifactError(f"{path} is not what its key says")
        except ArtifactError as error:
            if path.exists():  # else another process has removed it meanwhile
                _warn(f"a damaged entry of the compile cache is removed: {error}")
                self._remove(path)
            return None
        note_use(path)
        return artifact.programs[0]

    def put(self, key: CacheKey, program: Program, model: str = "") -> None:
        """Store a program, made from a model of that name; a failure to write is a warning."""
        about = {"key": dict(key.parts), "model": model}
        try:
            write_artifact(self._path(key), Artifact(ModelSignature((), ()), (program,), about))
            self.trim()
        except (ArtifactError, OSError) as error:
            _warn(f"the compile cache is not written: {error}")

    def entries(self) -> list[CacheEntry]:
        """Every entry, those used last first."""
        return entries_in(self.folder)

    def about(self, entry: CacheEntry) -> tuple[Mapping[str, Any], Program] | None:
        """What an entry says about itself, and its program; None where it cannot be read."""
        if unfit_reason(entry.path) != "":
            return None
        try:
            artifact = read_artifact(entry.path, verify_weights="off")
        except ArtifactError:
            return None
        return artifact.about, artifact.programs[0]

    def trim(self) -> list[CacheEntry]:
        """Remove the entries used longest ago until the rest fits, and what was never finished. Gives what is gone."""
        return self.prune(self.max_bytes)

    def prune(
        self,
        max_bytes: int | None = None,
        unused_seconds: float | None = None,
        unwanted: Callable[[CacheEntry], bool] = lambda entry: False,
    ) -> list[CacheEntry]:
        """Remove what was never finished, the entries that are `unwanted`, entries, measurements of tuning and
        recollections that were not used for so many seconds, and of the rest those used longest ago until it fits into
        `max_bytes`. Gives what is gone."""
        now = time.time()
        gone = abandoned_files(self.folder, now)
        entries = self.entries()
        others = measurements_in(self.folder) + recollections_in(self.folder)
        refused = {entry for entry in entries if unwanted(entry)}
        total = 0
        for entry in sorted(entries + others, key=lambda entry: -entry.used):
            is_old = unused_seconds is not None and now - entry.used >= unused_seconds
            if is_old or entry in refused:
                gone.append(entry)
                continue
            total += entry.bytes
            if max_bytes is not None and total > max_bytes:
                gone.append(entry)
        for entry in gone:
            self._remove(entry.path)
        return gone

    def clear(self) -> list[CacheEntry]:
        """Remove every entry and measurement. Gives what is gone."""
        return self.prune(max_bytes=-1)

    def compare(self, key: CacheKey) -> KeyComparison | None:
        """`key` beside the entry that differs from it in the fewest parts; None where no entry can be read."""
        nearest: KeyComparison | None = None
        for entry in self.entries():
            about = self.about(entry)
            stored = about[0].get("key") if about else None
            if about is None or not isinstance(stored, dict):
                continue
            names = list(dict.fromkeys([*key.parts, *stored]))
            parts = tuple(PartComparison(n, key.parts.get(n), stored.get(n)) for n in names)
            found = KeyComparison(entry.path.name, str(about[0].get("model", "")), parts)
            if nearest is None or len(found.differing) < len(nearest.differing):
                nearest = found
        return nearest

    def _path(self, key: CacheKey) -> Path:
        return self.folder / (key.digest + SUFFIX)

    def _remove(self, path: Path) -> None:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            _warn(f"{path} cannot be removed: {error.strerror}")


def _key_of(artifact: Artifact) -> object:
    return artifact.about.get("key")


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=4)
