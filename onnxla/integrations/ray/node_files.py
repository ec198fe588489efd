"""Files that the workers of one node share: one for each artifact, named by its digest, for this user only.

Whoever comes first writes it; all map the same pages. A file that nobody holds any more goes when another is asked for.
"""

import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from onnxla.errors import FileError
from onnxla.files import open_file, writing
from onnxla.runtime.cache_files import SUFFIX, open_folder, unfit_reason

_held: dict[Path, Any] = {}
"""Files that this process holds, open and locked until it ends."""


def node_folder() -> Path:
    """Where the files are: below the system's folder for temporary files (`TMPDIR`)."""
    return Path(tempfile.gettempdir()) / f"onnxla-ray-{os.getuid()}"


def node_file(name: str, content: Callable[[], Any]) -> Path:
    """The file `name`, held from now on until this process ends; `content()` is asked for its bytes where nobody has
    written it yet, and others wait for it meanwhile.

    Raises FileError for a folder or file that others may write to, or that cannot be written.
    """
    folder = node_folder()
    open_folder(folder)
    path = folder / f"{name}{SUFFIX}"
    with _alone(folder):
        reason = unfit_reason(path)
        if reason:
            raise FileError(f"{path} is not read: {reason}")
        try:
            if reason is None:
                with writing(path) as file:
                    os.fchmod(file.fileno(), 0o600)
                    file.write(content())
            if path not in _held:
                held = open_file(path)
                fcntl.flock(held, fcntl.LOCK_SH)
                _held[path] = held
        except OSError as error:
            raise FileError(f"{path} cannot be written or read: {error.strerror or error}") from error
        _sweep(folder)
    return path


def _sweep(folder: Path) -> None:
    """Remove what no process holds."""
    for path in folder.glob(f"*{SUFFIX}"):
        if path in _held:
            continue
        with suppress(OSError), open_file(path) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink(missing_ok=True)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One process of this node at a time."""
    with open(os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600), "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
