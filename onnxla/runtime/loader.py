"""Object code to callable addresses: linking only, through LLVM's ORC linker, no compiler pass.

Each linked library is its own; its code stays in memory as long as the `NativeLibrary` lives. At the end of the process
llvmlite unloads nothing, so threads that still run native code are safe.
"""

import itertools
import platform
import threading
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from onnxla.errors import ArtifactError

_names = itertools.count()
_lock = threading.Lock()


@cache
def _linker() -> Any:
    """The process's ORC linker, made at first use (llvmlite is imported only then)."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.create_lljit_compiler()


def prepare() -> None:
    """Make the linker ready: what loading an artifact can do in another thread while it reads the file."""
    with _lock:
        _linker()


@cache
def host_triple() -> str:
    """LLVM's name for the platform of this process."""
    import llvmlite.binding as llvm

    return str(llvm.get_process_triple())


@cache
def host_features() -> frozenset[str]:
    """The CPU features of this machine, by LLVM's names."""
    import llvmlite.binding as llvm

    return frozenset(name for name, present in llvm.get_host_cpu_features().items() if present)


def check_machine(triple: str, features: Iterable[str]) -> None:
    """Raise ArtifactError unless code for `triple` that uses `features` may run in this process."""
    ours, theirs = _platform(host_triple()), _platform(triple)
    if ours != theirs:
        raise ArtifactError(f"compiled for {triple}, this is {host_triple()}; compile the model for this machine")
    missing = sorted(set(features) - host_features())
    if missing:
        raise ArtifactError(
            f"compiled for a CPU with {', '.join(missing)}, which this one ({platform.machine()}) lacks; "
            "compile the model on this machine, or with target_cpu set to an older CPU"
        )


def _platform(triple: str) -> tuple[str, str]:
    """Architecture and system of a triple: `x86_64-unknown-linux-gnu` -> (`x86_64`, `linux`)."""
    architecture, *rest = triple.split("-")
    system = next((s for s in ("linux", "darwin", "windows") if any(part.startswith(s) for part in rest)), "")
    return {"arm64": "aarch64", "amd64": "x86_64"}.get(architecture, architecture), system


class NativeLibrary:
    """Linked object code. `library["name"]` is the address of an exported function."""

    def __init__(self, objects: Iterable[bytes], exports: Iterable[str], imports: Mapping[str, int]) -> None:
        """Link `objects`; undefined symbols come from `imports`, then from this process (libc, libm, pthreads)."""
        import llvmlite.binding as llvm

        builder = llvm.JITLibraryBuilder()
        for image in objects:
            builder.add_object_img(image)
        builder.add_current_process()
        for name, address in imports.items():
            builder.import_symbol(name, address)
        for name in exports:
            builder.export_symbol(name)
        with _lock:
            linker = _linker()
            try:
                self._tracker = builder.link(linker, f"onnxla.{next(_names)}")
            except RuntimeError as error:
                raise ArtifactError(f"the object code cannot be linked: {error}") from error

    def __getitem__(self, name: str) -> int:
        address: int = self._tracker[name]
        return address
