"""Unpack the archive that a model was sent in: a zip, or a tar that may be compressed with gzip.

It is a stranger's: names stay below the folder, there are files and folders and nothing else (no links, no devices),
and both their number and their bytes are bounded as they are written, whatever the archive says of them.
"""

import errno
import json
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from onnxla.errors import InputError, ModelFormatError, OnnxlaError, ResourceLimitError

OPTIONS = "onnxla.json"
"""A file at the root of an archive: `{"model": "net.onnx", "compile": {...}}`, both of which may be left out."""
_ZIP, _GZIP, _TAR, _TAR_AT = (b"PK\x03\x04", b"PK\x05\x06"), b"\x1f\x8b", b"ustar", 257
_OF_THE_DISK = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO)
"""Failures that are not the archive's."""
_CHUNK = 1 << 20
_DEEPEST = 32
_LONGEST_NAME = 1024
_LARGEST_OPTIONS = 256 << 20
_SAVED_MODEL = ("saved_model.pb", "saved_model.pbtxt")
_MODELS = (".onnx", ".pb", ".pbtxt", ".textproto", ".prototxt", ".mlir", ".hlo", ".stablehlo", ".txt", ".mlirbc")
_ARTIFACT = "manifest.json"


@dataclass(frozen=True)
class Unpacked:
    model: Path
    options: Any
    """The options of the archive as JSON; None where it has none."""


def is_archive(path: Path) -> bool:
    with open(path, "rb") as file:
        head = file.read(_TAR_AT + len(_TAR))
    return head.startswith((*_ZIP, _GZIP)) or head[_TAR_AT:] == _TAR


def unpack(archive: Path, folder: Path, most_bytes: int, most_files: int) -> Unpacked:
    """Unpack into a new folder, and find the model in it.

    Raises ModelFormatError for an archive that is damaged or holds what no model has, ResourceLimitError for one that
    is too large, InputError where there is not one model in it.
    """
    folder.mkdir()
    room = _Room(most_bytes, most_files)
    try:
        with open(archive, "rb") as file:
            entries = _zip_entries(file) if file.read(4) in _ZIP else _tar_entries(file)
            for name, content in entries:
                room.file()
                place = folder.joinpath(*_parts(name))
                if content is None:
                    place.mkdir(parents=True, exist_ok=True)
                    continue
                place.parent.mkdir(parents=True, exist_ok=True)
                with open(place, "xb") as target:
                    while chunk := content.read(_CHUNK):
                        room.bytes(len(chunk))
                        target.write(chunk)
    except FileExistsError as error:
        raise ModelFormatError(f"the archive has {Path(str(error.filename)).name} twice") from error
    except NotADirectoryError as error:
        raise ModelFormatError(f"the archive has {Path(str(error.filename)).name} as a file and as a folder") from error
    except (OnnxlaError, MemoryError):
        raise
    except Exception as error:  # hostile bytes make these libraries raise many kinds: zlib.error, RecursionError, ...
        if isinstance(error, OSError) and error.errno in _OF_THE_DISK:
            raise
        raise ModelFormatError(f"the archive is damaged: {error}") from error
    return _find(folder)


class _Room:
    """What is left of the bounds."""

    def __init__(self, most_bytes: int, most_files: int) -> None:
        self._most_bytes, self._most_files = most_bytes, most_files
        self._bytes = self._files = 0

    def file(self) -> None:
        self._files += 1
        if self._files > self._most_files:
            raise ResourceLimitError(f"the archive has more than {self._most_files} files")

    def bytes(self, count: int) -> None:
        self._bytes += count
        if self._bytes > self._most_bytes:
            raise ResourceLimitError(f"unpacked, the archive has more than {self._most_bytes} bytes")


def _zip_entries(file: IO[bytes]) -> Iterator[tuple[str, IO[bytes] | None]]:
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            kind = stat.S_IFMT(info.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise ModelFormatError(f"{info.filename} in the archive is a link or a device")
            if info.is_dir():
                yield info.filename, None
                continue
            if info.flag_bits & 1:
                raise ModelFormatError(f"{info.filename} in the archive is encrypted")
            with archive.open(info) as content:
                yield info.filename, content


def _tar_entries(file: IO[bytes]) -> Iterator[tuple[str, IO[bytes] | None]]:
    file.seek(0)
    with tarfile.open(fileobj=file, mode="r:gz" if file.peek(2)[:2] == _GZIP else "r:") as archive:  # type: ignore[attr-defined]
        while (info := archive.next()) is not None:
            if not (info.isreg() or info.isdir()):
                raise ModelFormatError(f"{info.name} in the archive is a link or a device")
            yield info.name, archive.extractfile(info) if info.isreg() else None


def _parts(name: str) -> list[str]:
    """The name's parts below the folder. Raises ModelFormatError for one that leads elsewhere."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    odd = name.startswith("/") or ".." in parts or "\\" in name or "\0" in name
    if odd or not name or len(parts) > _DEEPEST or len(name) > _LONGEST_NAME:
        raise ModelFormatError(f"{name[:100]!r} is no name of a file in an archive")
    return parts


def _find(folder: Path) -> Unpacked:
    said: dict[str, Any] = {}
    if (folder / OPTIONS).is_file():
        if (folder / OPTIONS).stat().st_size > _LARGEST_OPTIONS:
            raise ResourceLimitError(f"{OPTIONS} in the archive is larger than {_LARGEST_OPTIONS} bytes")
        try:
            said = json.loads((folder / OPTIONS).read_bytes())
        except (ValueError, RecursionError) as error:
            raise InputError(f"{OPTIONS} in the archive is no JSON: {error}") from error
        (folder / OPTIONS).unlink()
    if not isinstance(said, dict) or set(said) - {"model", "compile"}:
        raise InputError(f"{OPTIONS} in the archive is an object with the fields model and compile")
    if "model" not in said:
        return Unpacked(_only_model(folder), said.get("compile"))
    model = folder.joinpath(*_parts(str(said["model"])))
    if not model.exists():
        raise InputError(f"{OPTIONS} in the archive names {said['model']}, which is not in it")
    return Unpacked(model, said.get("compile"))


def _only_model(folder: Path) -> Path:
    """The model in a folder, or in the only folder in it."""
    inside = sorted(folder.iterdir())
    if len(inside) == 1 and inside[0].is_dir():
        folder, inside = inside[0], sorted(inside[0].iterdir())
    names = {path.name for path in inside}
    if names & set(_SAVED_MODEL):
        return folder
    if _ARTIFACT in names and "code" in names:
        raise InputError("this is compiled already")
    models = [path for path in inside if path.suffix == ".onnx"] or [p for p in inside if p.suffix in _MODELS]
    if len(models) != 1:
        found = ", ".join(path.name for path in models[:5]) or "none"
        raise InputError(f'the archive has not one model but {found}: name it in {OPTIONS}, {{"model": "net.onnx"}}')
    return models[0]
