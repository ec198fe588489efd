"""The folder of models, as Triton has it:

    resnet/config.pbtxt          optional
    resnet/1/model.onnx          one of `FILES` in a folder for each version
    resnet/2/model.onnxla
    digits/model.onnx            without versions: version 1

Names come from clients: they are compared with what is in the folder, and never make a path. Links may lead to other
places of the repository, and nowhere else.
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from onnxla.errors import harmless_line
from onnxla.files import read_file
from onnxla.serving.errors import InvalidRequestError, ServingError, UnknownModelError

FILES = (
    "model.onnxla",
    "model.onnx",
    "model.savedmodel",
    "model.graphdef",
    "model.pb",
    "model.hlo",
    "model.mlir",
    "model.stablehlo",
)
"""What a model is found under; a SavedModel is a folder."""
CONFIG = "config.pbtxt"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_VERSION = re.compile(r"[1-9][0-9]{0,17}")
_MOST_FILES = 10_000
_MOST_CONFIG = 16 << 20

Stamp = tuple[tuple[str, int, int, int], ...]
"""Path, size, time and number of every file: when it differs, the files have changed."""


@dataclass(frozen=True)
class VersionFiles:
    """One version of a model on disk."""

    version: int
    path: Path
    """The model's file, or the folder of a SavedModel."""
    stamp: Stamp = field(repr=False)

    def have_changed(self) -> bool:
        """Whether the files are others now."""
        try:
            return stamp_of(self.path) != self.stamp
        except (OSError, InvalidRequestError):
            return True


@dataclass(frozen=True)
class ModelFiles:
    """One model on disk."""

    name: str
    folder: Path
    versions: Mapping[int, VersionFiles]
    problems: Mapping[int, str]
    """Versions that are there but have no model that can be read, and why."""
    config: str | None
    """The text of `config.pbtxt`."""
    file_name: str
    """What the models were looked for under, where it is not one of `FILES`."""


class Repository:
    """Reads the folder anew with every call; keeps nothing."""

    def __init__(self, root: Path) -> None:
        """Raises InvalidRequestError where there is no such folder."""
        self.root = Path(os.path.realpath(root))
        if not self.root.is_dir():
            raise InvalidRequestError(f"{root} is no folder of models")

    def names(self) -> list[str]:
        """The models that there are: folders with names that can be one."""
        with os.scandir(self.root) as entries:
            return sorted(e.name for e in entries if _NAME.fullmatch(e.name) and e.is_dir())

    def read(self, name: str, file_name: str = "") -> ModelFiles:
        """The versions of a model; `file_name` is what the configuration calls the file.

        Raises UnknownModelError where there is none, InvalidRequestError for files that are not to be read,
        ServingError for those that cannot be.
        """
        try:
            return self._read(name, file_name)
        except OSError as error:
            where = harmless_line(str(error.filename or name))
            raise ServingError(f"{where} cannot be read: {error.strerror or error}") from error

    def _read(self, name: str, file_name: str) -> ModelFiles:
        if not _NAME.fullmatch(name) or name not in self.names():
            raise UnknownModelError(f"the repository has no model {harmless_line(name)[:200]!r}")
        folder = self._inside(self.root / name)
        config_path = folder / CONFIG
        config = None
        if os.path.lexists(config_path):
            config = self._text(config_path)
        versions, problems = {}, {}
        for version, place in self._places(folder, file_name):
            try:
                path = self._inside(self._model_in(place, file_name))
                self._require_inner_links(path)
                versions[version] = VersionFiles(version, path, stamp_of(path))
            except (InvalidRequestError, OSError) as error:
                problems[version] = str(error)
        return ModelFiles(name, folder, versions, problems, config, file_name)

    def _places(self, folder: Path, file_name: str) -> Iterator[tuple[int, Path]]:
        """Versions, and the folder in which the model of each is looked for."""
        found = sorted(int(p.name) for p in folder.iterdir() if _VERSION.fullmatch(p.name) and p.is_dir())
        if found:
            yield from ((version, folder / str(version)) for version in found)
        elif any(os.path.lexists(folder / name) for name in ((file_name,) if file_name else FILES)):
            yield 1, folder

    def _model_in(self, place: Path, file_name: str) -> Path:
        if file_name:
            if not _NAME.fullmatch(file_name):
                raise InvalidRequestError(f"default_model_filename {harmless_line(file_name)!r} is no plain name")
            names: tuple[str, ...] = (file_name,)
        else:
            names = FILES
        found = [name for name in names if os.path.lexists(place / name)]
        where = place.relative_to(self.root)
        if not found:
            raise InvalidRequestError(f"{where} has none of {', '.join(names)}")
        if len(found) > 1:
            raise InvalidRequestError(
                f"{where} has {' and '.join(found)}: keep one, or name it by default_model_filename in {CONFIG}"
            )
        return place / found[0]

    def _inside(self, path: Path) -> Path:
        """`path` without links. Raises InvalidRequestError where it leads out of the repository."""
        real = Path(os.path.realpath(path))
        if not real.is_relative_to(self.root):
            raise InvalidRequestError(f"{path.relative_to(self.root)} is a link that leads out of the repository")
        return real

    def _text(self, path: Path) -> str:
        where = path.relative_to(self.root)
        try:
            real = self._inside(path)
            if real.stat().st_size > _MOST_CONFIG:
                raise InvalidRequestError(f"{where} has more than {_MOST_CONFIG} bytes")
            return read_file(real).decode()
        except OSError as error:
            raise InvalidRequestError(f"{where} cannot be read: {error.strerror or error}") from error
        except UnicodeDecodeError:
            raise InvalidRequestError(f"{where} is not UTF-8") from None

    def _require_inner_links(self, path: Path) -> None:
        """Of a SavedModel and of ONNX with external data, links beside it count: it may read what they lead to."""
        for place, name in _files_of(path):
            if os.path.islink(place / name):
                self._inside(place / name)


def stamp_of(path: Path) -> Stamp:
    """Of all files of a model, and those beside it. Raises OSError, InvalidRequestError for too many."""
    folder = path if path.is_dir() else path.parent
    rows = []
    for place, name in _files_of(path):
        info = os.stat(place / name)
        rows.append((str((place / name).relative_to(folder)), info.st_size, info.st_mtime_ns, info.st_ino))
    return tuple(sorted(rows))


def _files_of(path: Path) -> Iterator[tuple[Path, str]]:
    is_file, count = path.is_file(), 0
    for place, folders, files in os.walk(path.parent if is_file else path):
        if is_file:
            folders[:] = [f for f in folders if not _VERSION.fullmatch(f)]
        for name in files:
            count += 1
            if count > _MOST_FILES:
                raise InvalidRequestError(f"{path.name} stands beside more than {_MOST_FILES} files")
            if name != CONFIG:
                yield Path(place), name
