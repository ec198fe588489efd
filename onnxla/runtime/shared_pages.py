"""Images of weights that share pages: written once in an artifact, mapped side by side into each image when loaded.

The programs of one model for several sizes pack most of their weights alike. Large weights begin at pages in their
image (`codegen/weights.py`), so equal ones are equal pages, wherever they lie. An image is then a list of extents,
runs of pages of sections; loading maps them one behind the other, and the system keeps each page in memory once.
"""

import ctypes
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from onnxla.errors import ResourceLimitError
from onnxla.runtime.residency import let_go
from onnxla.runtime.tensors import Array

PAGE = 4096
MOST_EXTENTS = 20_000
"""Of one image: the system allows a process some 65,000 mappings."""
_SHORTEST = 16
"""Pages of a run that is worth sharing: each is a mapping."""
_BLOCK = 1024
"""Pages that are looked at together."""
_READ, _PRIVATE, _FIXED, _ANONYMOUS = 1, 0x02, 0x10, 0x20
_FAILED = ctypes.c_void_p(-1).value


@dataclass(frozen=True)
class Extent:
    """`size` bytes from `offset`, a multiple of PAGE, of a section. All but the last of an image are whole pages."""

    section: int
    offset: int
    size: int


@dataclass(frozen=True)
class SharedImages:
    """Sections, and the extents of each image in them."""

    sections: tuple[memoryview, ...]
    images: tuple[tuple[Extent, ...], ...]


def share_pages(images: Sequence[Array]) -> SharedImages:
    """Find runs of pages that an image has in common with those before it. Equal images give the same result."""
    known = _KnownPages()
    sections: list[memoryview] = []
    found: list[tuple[Extent, ...]] = []
    for image in images:
        extents: list[Extent] = []
        for start, pages, place in _runs(image, known) if image.nbytes else [(0, 0, None)]:
            part = image[start * PAGE : (start + pages) * PAGE]
            if place is not None:
                extents.append(Extent(place[0], place[1] * PAGE, part.nbytes))
                continue
            extents.append(Extent(len(sections), 0, part.nbytes))
            if len(images) > 1:
                known.add(len(sections), part)
            sections.append(part.data)
        found.append(tuple(extents))
    return SharedImages(tuple(sections), tuple(found))


class _KnownPages:
    """The whole pages of all sections so far, by their hashes."""

    def __init__(self) -> None:
        self._places: dict[int, tuple[int, int]] = {}
        self._sections: dict[int, Array] = {}

    def __bool__(self) -> bool:
        return bool(self._places)

    def add(self, section: int, content: Array) -> None:
        self._sections[section] = content
        for number, key in enumerate(_hashes(content)):
            self._places.setdefault(key, (section, number))

    def find(self, key: int, page: Array) -> tuple[int, int] | None:
        """Section and number of a page that equals `page`, whose hash is `key`."""
        place = self._places.get(key)
        return place if place is not None and self.is_at(place, page) else None

    def is_at(self, place: tuple[int, int], page: Array) -> bool:
        """Whether there is a whole page at this place, and it equals `page`."""
        there = self._sections[place[0]][place[1] * PAGE : (place[1] + 1) * PAGE]
        return there.nbytes == PAGE and bool(np.array_equal(there, page))


def _runs(image: Array, known: _KnownPages) -> Iterator[tuple[int, int, tuple[int, int] | None]]:
    """First page, pages, and where they are in the known ones, for runs that make up the image; the last run may end
    within a page."""
    count = -(-image.nbytes // PAGE)
    own = 0  # where the run of pages that are this image's own began
    at = 0
    keys = list(_hashes(image)) if known else []
    while at < len(keys):
        place = known.find(keys[at], image[at * PAGE : (at + 1) * PAGE])
        if place is None:
            at += 1
            continue
        length = 1
        while at + length < len(keys) and known.is_at(
            (place[0], place[1] + length), image[(at + length) * PAGE : (at + length + 1) * PAGE]
        ):
            length += 1
        if length >= _SHORTEST:
            if own < at:
                yield own, at - own, None
            yield at, length, place
            own = at + length
        at += length
    if own < count:
        yield own, count - own, None


def _hashes(image: Array) -> Iterator[int]:
    """A hash of each whole page. Equal pages have equal hashes; different ones are told apart by who asks."""
    whole = image[: image.nbytes // PAGE * PAGE].view("<u8").reshape(-1, PAGE // 8)
    factors = np.random.default_rng(0).integers(1, 1 << 63, PAGE // 8, np.uint64) | np.uint64(1)
    for start in range(0, len(whole), _BLOCK):
        block = whole[start : start + _BLOCK]
        yield from ((block * factors).sum(axis=1, dtype=np.uint64)).tolist()
        let_go(block.data)


def map_image(descriptor: int, extents: Sequence[tuple[int, int]]) -> Array:
    """A read-only image of the file's extents (offset, a multiple of PAGE, and bytes), one behind the other.

    All but the last are whole pages. Raises ResourceLimitError where the system has no room for them.
    """
    size = sum(length for _, length in extents)
    base = _mapped(None, size, _PRIVATE | _ANONYMOUS, -1, 0)
    memory = (ctypes.c_ubyte * size).from_address(base)
    weakref.finalize(memory, _unmap, base, size).atexit = False
    at = base
    for offset, length in extents:
        _mapped(at, length, _PRIVATE | _FIXED, descriptor, offset)
        at += length
    image: Array = np.frombuffer(memoryview(memory), np.uint8)
    image.flags.writeable = False
    return image


def _mapped(address: int | None, size: int, flags: int, descriptor: int, offset: int) -> int:
    found: int = _libc().mmap(address, size, _READ, flags, descriptor, offset)
    if found == _FAILED:
        raise ResourceLimitError(f"no room to map {size} bytes of weights")
    return found


def _unmap(address: int, size: int) -> None:
    _libc().munmap(address, size)


@cache
def _libc() -> Any:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return libc
