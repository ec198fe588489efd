"""Weights that lie beside the model: opened beneath its folder only, mapped, never copied.

A location is walked one component at a time from a handle of the model's folder, refusing links, so
that nothing outside can be reached, whatever the spelling and whatever changes meanwhile.
"""

import mmap
import os
import stat
from pathlib import Path

from onnx import TensorProto

from onnxla.errors import ModelFormatError

_KEYS = frozenset({"location", "offset", "length", "checksum"})


class ModelFolder:
    """The folder a model stands in. Files are mapped once and stay mapped while an array views them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._maps: dict[str, memoryview] = {}

    def bytes_of(self, tensor: TensorProto) -> memoryview:
        """The bytes that a tensor's external_data record names. Raises ModelFormatError."""
        entries: dict[str, str] = {}
        for entry in tensor.external_data:
            if entry.key not in _KEYS or entry.key in entries:
                raise ModelFormatError(f"{tensor.name}: unknown or repeated external data key {entry.key!r}")
            entries[entry.key] = entry.value
        if "location" not in entries:
            raise ModelFormatError(f"{tensor.name}: external data without a location")
        location = entries["location"]
        if location not in self._maps:
            self._maps[location] = map_file_beneath(self.path, location)
        data = self._maps[location]
        offset = _number(tensor.name, "offset", entries.get("offset", "0"))
        length = _number(tensor.name, "length", entries["length"]) if "length" in entries else len(data) - offset
        if offset > len(data) or length > len(data) - offset:
            raise ModelFormatError(
                f"{tensor.name}: bytes {offset} to {offset + length} are outside {location}, which has {len(data)}"
            )
        return data[offset : offset + length]


def _number(tensor: str, key: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise ModelFormatError(f"{tensor}: external data {key} is {text[:40]!r}, not a count of bytes")
    return int(text)


def map_file_beneath(folder: Path, location: str) -> memoryview:
    """The bytes of the regular file `location`, relative to `folder` and inside it, as a read-only map.

    Raises ModelFormatError for absolute paths, `..`, links of both kinds, devices and pipes.
    """
    parts = location.split("/")
    if "\0" in location or "\\" in location or any(part in ("", "..") for part in parts):
        raise ModelFormatError(f"external data location {location!r} is not a plain path beneath the model's folder")
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts[:-1]:
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=handle)
            os.close(handle)
            handle = inner
        file = os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=handle)
    except OSError as error:
        link = " (a link is not followed)" if error.strerror and "symbolic" in error.strerror else ""
        raise ModelFormatError(f"external data {location!r} cannot be opened: {error.strerror}{link}") from error
    finally:
        os.close(handle)
    try:
        return map_regular_file(file, f"external data {location!r}", links_allowed=False)
    finally:
        os.close(file)


def map_regular_file(descriptor: int, what: str, *, links_allowed: bool) -> memoryview:
    """The bytes of an open regular file. Raises ModelFormatError for other kinds of file."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise ModelFormatError(f"{what} is not a regular file")
    if not links_allowed and status.st_nlink != 1:
        raise ModelFormatError(f"{what} has {status.st_nlink} hard links; copy the file beside the model")
    if status.st_size == 0:
        return memoryview(b"")
    return memoryview(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ))
