"""Who makes code: the compiler's own source, and the libraries that decide bits of the result."""

import hashlib
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

_CODE_MAKERS = ("llvmlite", "numpy", "ml_dtypes")
"""Libraries whose version decides bits of the result: machine code, folded constants. Of NVRTC see `target`."""
_COMPILER = ("onnxla.frontends", "onnxla.passes", "onnxla.codegen", "onnxla.hlo", "onnxla.runtime")


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
    """A digest of the compiler's own source, so that a changed checkout does not meet its past."""
    digest = hashlib.sha256()
    for package in _COMPILER:
        spec = find_spec(package)
        assert spec is not None and spec.origin is not None
        for path in sorted(Path(spec.origin).parent.rglob("*.py")):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
