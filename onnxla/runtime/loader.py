"""Object code to callable addresses, without a compiler: link, copy to fresh pages, make the code pages executable.

Code is never writable while it can run. It stays in memory as long as its `NativeLibrary` lives; at the end of the
process nothing is unmapped, so threads that still run native code are safe.
"""

import ctypes
import weakref
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from onnxla.errors import ArtifactError, ResourceLimitError
from onnxla.runtime.elf import AARCH64
from onnxla.runtime.linker import Image

_READ, _WRITE, _EXECUTE = 1, 2, 4
_PRIVATE, _ANONYMOUS = 0x02, 0x20
_FAILED = ctypes.c_void_p(-1).value


class NativeLibrary:
    """Linked object code. `library["name"]` is the address of a global symbol."""

    def __init__(self, objects: Iterable[bytes], imports: Mapping[str, int]) -> None:
        """Link `objects`; undefined symbols come from `imports`, then from this process (libc, libm, pthreads)."""
        self._image = Image(objects)
        self._base = _map(self._image.size)
        weakref.finalize(self, _unmap, self._base, self._image.size).atexit = False
        content = self._image.bytes_at(self._base, lambda name: imports.get(name) or _symbol_of_process(name))
        ctypes.memmove(self._base, (ctypes.c_char * len(content)).from_buffer(content), len(content))
        if self._image.machine == AARCH64:  # its instruction cache does not follow the data cache
            _clear_cache(self._base, self._base + self._image.read_only_size)
        if _libc().mprotect(self._base, self._image.read_only_size, _READ | _EXECUTE):
            raise ArtifactError("the system forbids executable memory to this process")

    def __getitem__(self, name: str) -> int:
        return self._base + self._image.offset_of(name)


@cache
def _libc() -> Any:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return libc


def _map(size: int) -> int:
    address: int = _libc().mmap(None, size, _READ | _WRITE, _PRIVATE | _ANONYMOUS, -1, 0)
    if address == _FAILED:
        raise ResourceLimitError(f"no memory for {size} bytes of code")
    return address


def _unmap(address: int, size: int) -> None:
    _libc().munmap(address, size)


def _symbol_of_process(name: str) -> int:
    try:
        address = ctypes.cast(getattr(_libc(), name), ctypes.c_void_p).value
    except AttributeError as error:
        raise ArtifactError(f"the object code cannot be linked: nothing here defines {name}") from error
    assert address is not None
    return address


def _clear_cache(start: int, end: int) -> None:
    ctypes.CDLL("libgcc_s.so.1")["__clear_cache"](ctypes.c_void_p(start), ctypes.c_void_p(end))
