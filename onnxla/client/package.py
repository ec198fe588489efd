"""What is sent of a model: the file as it is, or a tar of all the files that it has, and of options that are long."""

import json
import os
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onnxla.errors import InputError, ModelFormatError
from onnxla.files import open_file
from onnxla.serving.jobs.request import is_plain_name

_CHUNK = 1 << 20
_OPTIONS = "onnxla.json"
_LONGEST_QUERY = 4000
"""Characters of options that still go into an address."""


@dataclass(frozen=True)
class Package:
    """A body of `size` bytes."""

    name: str
    """Of the model's file or folder."""
    size: int
    members: Sequence[tuple[bytes, Path | None, int]] = field(default_factory=list)
    """One behind the other: a head, a file, and its size, behind which zeros fill a block."""
    options: dict[str, Any] | None = None
    """The options that are not in the body; None where it has them."""

    def chunks(self) -> Iterator[bytes]:
        """The body. Raises InputError for a file that has changed its size."""
        for head, path, size in self.members:
            if head:
                yield head
            if path is None:
                continue
            left = size
            with open_file(path) as file:
                while left and (chunk := file.read(min(_CHUNK, left))):
                    left -= len(chunk)
                    yield chunk
            if left:
                raise InputError(f"{path} was cut short while it was sent")
            if head and size % tarfile.BLOCKSIZE:
                yield bytes(-size % tarfile.BLOCKSIZE)


def package(source: Path, options: dict[str, Any]) -> Package:
    """The model at `source`. Raises ModelFormatError for files that cannot be read, InputError for names outside."""
    try:
        files = _files(source)
        fits = len(json.dumps(options)) <= _LONGEST_QUERY and is_plain_name(source.name)
        if len(files) == 1 and fits and not source.is_dir():
            size = os.path.getsize(source)
            return Package(source.name, size, [(b"", source, size)], options)
        return _tar(source, files, options)
    except OSError as error:
        raise ModelFormatError(f"{error.filename or source} cannot be read: {error.strerror or error}") from error


def _tar(source: Path, files: Sequence[Path], options: dict[str, Any]) -> Package:
    folder = source.parent
    said = json.dumps({"model": source.name, "compile": options}).encode()
    padding = bytes(-len(said) % tarfile.BLOCKSIZE)
    members: list[tuple[bytes, Path | None, int]] = [(_head(_OPTIONS, len(said)) + said + padding, None, 0)]
    total = len(members[0][0])
    for path in files:
        size = os.path.getsize(path)
        head = _head(path.relative_to(folder).as_posix(), size)
        members.append((head, path, size))
        total += len(head) + size + -size % tarfile.BLOCKSIZE
    members.append((bytes(2 * tarfile.BLOCKSIZE), None, 0))
    return Package(source.name, total + 2 * tarfile.BLOCKSIZE, members)


def _head(name: str, size: int) -> bytes:
    info = tarfile.TarInfo(name)
    info.size = size
    return info.tobuf(tarfile.PAX_FORMAT)


def _files(source: Path) -> list[Path]:
    """All files of the model, itself first."""
    from onnxla.frontends.hlo.model_file import is_hlo
    from onnxla.frontends.onnx.external_data import external_locations
    from onnxla.frontends.onnx.model_file import read_model
    from onnxla.frontends.tensorflow.model_file import is_tensorflow
    from onnxla.hlo.weight_files import files_beside

    if source.is_dir():
        found = [Path(place, name) for place, _, names in os.walk(source) for name in sorted(names)]
        return sorted(path for path in found if path.is_file())
    with open_file(source):
        pass
    if is_tensorflow(source):
        return [source]
    if is_hlo(source):
        return [source, *files_beside(source)]
    beside = external_locations(read_model(source).proto)
    return [source, *(_beneath(source.parent, location) for location in beside)]


def _beneath(folder: Path, location: str) -> Path:
    """A file that the model names; what lies elsewhere is not sent, whoever made the model."""
    path = folder / location
    if os.path.isabs(location) or ".." in Path(location).parts or not path.resolve().is_relative_to(folder.resolve()):
        raise ModelFormatError(f"external data {location!r} lies outside of the model's folder")
    return path
