"""Who makes code: onnxla's own source, and the libraries that decide bits of the result."""

import hashlib
import os
from collections.abc import Collection
from functools import cache
from importlib.metadata import PackageNotFoundError, version

_CODE_MAKERS = ("llvmlite", "numpy", "ml_dtypes")
"""Libraries whose version decides bits of the result: machine code, folded constants. Of NVRTC see `target`."""
ABOVE = frozenset("ahead cli client compat conformance debugging integrations peers serving".split())
"""The folders that stand above `compile`: nothing of what it gives depends on them (`tests/test_layering.py`)."""


def libraries() -> str:
    """The libraries that have a hand in the code, and their versions."""
    return ", ".join(f"{name} {version_of(name)}" for name in _CODE_MAKERS)


@cache
def version_of(library: str) -> str:
    """The version that is installed; `none` without one."""
    try:
        return version(library)
    except PackageNotFoundError:
        return "none"


@cache
def compiler_digest() -> str:
    """A digest of onnxla's own source but for what has no hand in code, so that a changed checkout does not meet its
    past, nor a version of the same name that of another day."""
    return digest_of_sources(os.path.dirname(__file__), without=ABOVE)


def digest_of_sources(folder: str, without: Collection[str] = ()) -> str:
    """A digest of the Python files below a folder, with their places; folders behind links are looked into, those of a
    name in `without` are not."""
    digest = hashlib.sha256()
    for where, folders, files in os.walk(folder, followlinks=True):
        folders[:] = sorted(name for name in folders if name not in without)
        for name in sorted(name for name in files if name.endswith(".py")):
            with open(os.path.join(where, name), "rb", buffering=0) as file:
                content = file.read()
            digest.update(f"{os.path.relpath(where, folder)}/{name} {len(content)}\n".encode())
            digest.update(content)
    return digest.hexdigest()
