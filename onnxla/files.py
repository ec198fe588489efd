"""Files that strangers may have a hand in: open what is one, and write under its own name and nowhere else.

What is no file is refused in both directions: opening a pipe would wait for whoever writes to it, a device may have no
end. What is written appears whole or not at all: the content goes to a new file beside it, which then takes its place.
So a link that somebody put there is replaced, not followed, what is mapped by others stays as it is, and a full disk
leaves the old file.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import IO

_Path = str | os.PathLike[str]


def open_file(path: _Path) -> IO[bytes]:
    """A regular file, open for reading. Raises OSError, for anything else too."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError as error:  # a NUL in the name
        raise OSError(errno.EINVAL, str(error)) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
    return open(descriptor, "rb")


def read_file(path: _Path) -> bytes:
    """The bytes of a regular file. Raises OSError, for anything else too."""
    with open_file(path) as file:
        return file.read()


@contextmanager
def taken_back(folder: _Path | None) -> Iterator[None]:
    """Ctrl-C inside of the block takes back what was written to `folder` in it: half a dump is none.

    Files that were there before stay as they are now. Of None nothing is taken back.
    """
    if folder is None:
        yield
        return
    written: list[str] = []
    kept = {os.path.abspath(folder)} if os.path.isdir(folder) else set()
    token = _watched.set((*_watched.get(), (os.path.join(os.path.abspath(folder), ""), written)))
    try:
        yield
    except KeyboardInterrupt:
        for path in written:
            with suppress(OSError):
                os.unlink(path)
        places = {os.path.abspath(folder), *(os.path.dirname(path) for path in written)}
        for place in sorted(places - kept, key=len, reverse=True):
            with suppress(OSError):  # it is not there, or has other files in it
                os.rmdir(place)
        raise
    finally:
        _watched.reset(token)


_watched: ContextVar[tuple[tuple[str, list[str]], ...]] = ContextVar("watched folders", default=())
"""Folders, and the new files in them."""


def _note(path: str) -> None:
    for folder, written in _watched.get():
        if path.startswith(folder) and not os.path.lexists(path):
            written.append(path)


@contextmanager
def writing(path: _Path) -> Iterator[IO[bytes]]:
    """A file that appears at `path` when the block ends without an exception. Raises OSError."""
    folder, name = os.path.split(os.fspath(path))
    with suppress(FileNotFoundError):
        mode = os.lstat(path).st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISLNK(mode):
            raise OSError(errno.EINVAL, "there is something that is no file", os.fspath(path))
    temporary = os.path.join(folder, f".{name}.{os.urandom(8).hex()}")
    try:
        with open(temporary, "x+b") as file:
            yield file
        _note(os.path.abspath(path))
        os.replace(temporary, path)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.filename == temporary:
            # nobody has asked for a file of that name
            raise OSError(error.errno, error.strerror, os.fspath(path)) from error
        raise


def write_file(path: _Path, content: bytes | str) -> None:
    """Write bytes, or text as UTF-8. Raises OSError."""
    with writing(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)
