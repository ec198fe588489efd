"""Weights that lie beside the model: opened beneath its folder only, and read once.

A location is walked one component at a time from a handle of the model's folder, refusing links, so
that nothing outside can be reached, whatever the spelling and whatever changes meanwhile.

Files are read, not mapped: a map of a file that another process cuts short ends this one (SIGBUS), and one that it
writes to would give different weights to those who read them at different times.
"""

import errno
import os
import stat
from pathlib import Path
from weakref import WeakValueDictionary

import numpy as np
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from onnx import ModelProto, TensorProto

from onnxla.errors import ModelFormatError, ResourceLimitError
from onnxla.hlo.types import Array

_KEYS = frozenset({"location", "offset", "length", "checksum"})


_MOST_AT_ONCE = 1 << 30
"""Bytes of one read; Linux takes less than 2 GiB."""
_LOOKED_AT = 1 << 28
"""Above this many bytes the memory is asked for: a file with holes may say any size."""


def external_locations(model: ModelProto) -> list[str]:
    """The files beside the model that its tensors lie in, as it names them, each once."""
    found: dict[str, None] = {}
    messages: list[Message] = [model]
    while messages:
        message = messages.pop()
        if isinstance(message, TensorProto):
            found.update((entry.value, None) for entry in message.external_data if entry.key == "location")
            continue
        for field, value in message.ListFields():
            if field.type == FieldDescriptor.TYPE_MESSAGE:
                messages += [value] if isinstance(value, Message) else value
    return list(found)


class ModelFolder:
    """The folder a model stands in. What is read of a file is read once, while somebody has it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: WeakValueDictionary[tuple[str, str, str | None], Array] = WeakValueDictionary()

    def bytes_of(self, tensor: TensorProto) -> memoryview:
        """The bytes that a tensor's external_data record names. Raises ModelFormatError."""
        entries: dict[str, str] = {}
        for entry in tensor.external_data:
            if entry.key not in _KEYS or entry.key in entries:
                raise ModelFormatError(f"{tensor.name}: unknown or repeated external data key {entry.key!r}")
            entries[entry.key] = entry.value
        if "location" not in entries:
            raise ModelFormatError(f"{tensor.name}: external data without a location")
        location, start, size = entries["location"], entries.get("offset", "0"), entries.get("length")
        found = self._known.get((location, start, size))
        if found is None:
            offset = _number(tensor.name, "offset", start)
            length = None if size is None else _number(tensor.name, "length", size)
            found = _read_beneath(self.path, location, offset, length, tensor.name)
            self._known[location, start, size] = found
        return found.data


def _number(tensor: str, key: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise ModelFormatError(f"{tensor}: external data {key} is {text[:40]!r}, not a count of bytes")
    return int(text)


def read_file_beneath(folder: Path, location: str) -> memoryview:
    """The bytes of the regular file `location`, relative to `folder` and inside it.

    Raises ModelFormatError for absolute paths, `..`, links of both kinds, devices and pipes.
    """
    return _read_beneath(folder, location, 0, None, location).data


def read_regular_file(descriptor: int, what: str, *, links_allowed: bool) -> memoryview:
    """The bytes of an open regular file. Raises ModelFormatError for other kinds of file, ResourceLimitError for one
    that memory does not hold.
    """
    return _read(descriptor, 0, _size_of_regular_file(descriptor, what, links_allowed), what).data


def _read_beneath(folder: Path, location: str, offset: int, length: int | None, tensor: str) -> Array:
    """`length` bytes (all there are, without one) of a file beneath `folder`, for a tensor."""
    file, what = _open_beneath(folder, location), f"external data {location!r}"
    try:
        size = _size_of_regular_file(file, what, links_allowed=False)
        wanted = max(size - offset, 0) if length is None else length
        if offset > size or wanted > size - offset:
            raise ModelFormatError(
                f"{tensor}: bytes {offset} to {offset + wanted} are outside {location}, which has {size}"
            )
        return _read(file, offset, wanted, what)
    finally:
        os.close(file)


def _open_beneath(folder: Path, location: str) -> int:
    """A descriptor of the file, whatever its kind. Raises ModelFormatError for what is no plain path, and for links."""
    parts = location.split("/")
    if "\0" in location or "\\" in location or any(part in ("", "..") for part in parts):
        raise ModelFormatError(f"external data location {location!r} is not a plain path beneath the model's folder")
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise ModelFormatError(f"the model's folder {folder} cannot be opened: {error.strerror}") from error
    try:
        for part in parts[:-1]:
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=handle)
            os.close(handle)
            handle = inner
        return os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=handle)
    except (OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or error
        link = " (a link is not followed)" if getattr(error, "errno", 0) == errno.ELOOP else ""
        raise ModelFormatError(f"external data {location!r} cannot be opened: {cause}{link}") from error
    finally:
        os.close(handle)


def _size_of_regular_file(descriptor: int, what: str, links_allowed: bool) -> int:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise ModelFormatError(f"{what} is not a regular file")
    if not links_allowed and status.st_nlink != 1:
        raise ModelFormatError(f"{what} has {status.st_nlink} hard links; copy the file beside the model")
    return status.st_size


def _read(descriptor: int, offset: int, length: int, what: str) -> Array:
    """Bytes of a file that were there a moment ago, in memory of their own."""
    if length > _LOOKED_AT and length > (most := _available_memory()):
        raise ResourceLimitError(f"{what}: {length} bytes are to be read, and this machine has memory for {most}")
    try:
        data = np.empty(length, np.uint8)
    except MemoryError as error:
        raise ResourceLimitError(f"{what}: no memory for {length} bytes") from error
    view, done = data.data, 0
    while done < length:
        try:
            count = os.preadv(descriptor, [view[done : done + _MOST_AT_ONCE]], offset + done)
        except OSError as error:
            raise ModelFormatError(f"{what} cannot be read: {error.strerror}") from error
        if count == 0:
            raise ModelFormatError(f"{what} was cut short while it was read")
        done += count
    data.flags.writeable = False
    return data


def _available_memory() -> int:
    """Bytes that may still be allocated without driving others out, as far as the system tells."""
    try:
        with open("/proc/meminfo") as file:
            line = next(line for line in file if line.startswith("MemAvailable:"))
        return int(line.split()[1]) << 10
    except (OSError, StopIteration):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
