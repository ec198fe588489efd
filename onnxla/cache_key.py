"""The key of a program in the compile cache: everything that decides its code, part by part, so that a miss can be
explained. Two programs with equal keys have equal code."""

import hashlib
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from onnxla.config import CompileOptions
from onnxla.hlo.fingerprint import fingerprint
from onnxla.hlo.ops.structural import Constant
from onnxla.runtime.artifact import FORMAT_VERSION, constant_data
from onnxla.runtime.cache import CacheKey
from onnxla.runtime.digest import digest_of_all
from onnxla.sources import Imported
from onnxla.version import __version__

_CODE_MAKERS = ("llvmlite", "numpy", "ml_dtypes")
"""Libraries whose version decides bits of the result: machine code, folded constants. Of NVRTC see `target`."""
_COMPILER = ("onnxla.frontends", "onnxla.passes", "onnxla.codegen", "onnxla.hlo", "onnxla.runtime")


def cache_key(imported: Imported, text: str, options: CompileOptions, target: str) -> CacheKey:
    """The key of what `options` make of an imported module, whose text is `text`, for a target."""
    return CacheKey(
        {
            "program": digest_of_all([text, fingerprint(imported.module)]),
            "weights": _weights(imported),
            "shapes": "; ".join(map(str, imported.inputs)),
            "signature": "; ".join(
                map(str, (*imported.inputs, "->", *imported.outputs, *imported.state, *imported.results))
            ),
            "constants": digest_of_all(
                part for name, value in sorted(imported.constants.items()) for part in (name, *constant_data(value))
            ),
            "vocabularies": digest_of_all(
                part for name, words in sorted(imported.vocabularies.items()) for part in (name, *words)
            ),
            **{f"option {name}": repr(value) for name, value in options.code_options().items()},
            "target": target,
            "version": f"onnxla {__version__}, format {FORMAT_VERSION}",
            "libraries": libraries(),
            "compiler": compiler_digest(),
        }
    )


def _weights(imported: Imported) -> str:
    """A digest of all constants, in the order of the program."""
    return digest_of_all(
        i.op.literal.digest
        for computation in imported.module.computations()
        for i in computation.instructions()
        if isinstance(i.op, Constant)
    )


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
        file = import_module(package).__file__
        assert file is not None
        for path in sorted(Path(file).parent.rglob("*.py")):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
