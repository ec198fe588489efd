"""The weights image: every constant the kernels read, one after the other in a file that is mapped to run.

Arrays are written as soon as their place is known and then forgotten, so a packed weight is in memory once and never
beside the others. Equal constants share a place, and so do equal packings of equal constants.
"""

import mmap
import tempfile
from collections.abc import Callable, Iterator
from typing import BinaryIO

import numpy as np

from onnxla.codegen.arena import aligned
from onnxla.errors import ResourceLimitError
from onnxla.hlo.literal import Literal
from onnxla.hlo.types import Array, TensorType

PAGE = 4096
_LARGE = 32 * PAGE
"""Bytes of an array that has whole pages for itself, so that images of several programs can share them in a file."""
_CHUNK = 16 << 20
_Fingerprint = tuple[TensorType, bytes]


class WeightsImage:
    """A growing image; `file` receives its bytes in order, from where it stands."""

    def __init__(self, file: BinaryIO | None = None) -> None:
        """Without a `file` the image goes to a temporary one, which vanishes with the last reference to it."""
        self.file: BinaryIO = file if file is not None else tempfile.TemporaryFile(prefix="onnxla-weights-")  # noqa: SIM115
        self._is_own = file is None
        self.bytes = 0
        self._places: dict[object, tuple[int, int]] = {}
        self._representatives: dict[_Fingerprint, list[Literal]] = {}
        self._canonical: dict[Literal, Literal] = {}

    def add(self, literal: Literal) -> tuple[int, int]:
        """Offset and bytes of the constant as it is."""
        return self._once(self._same(literal), lambda: literal.array)

    def add_packed(
        self, literal: Literal, type: TensorType, packing: str, pack: Callable[[Array], Array]
    ) -> tuple[int, int]:
        """Offset and bytes of `pack(constant)`, the constant being read as a tensor of `type`."""
        key = (self._same(literal), type, packing)
        return self._once(key, lambda: pack(_read_as(literal.array, type)))

    def add_table(self, array: Array) -> tuple[int, int]:
        """Offset and bytes of an array that a schedule made."""
        return self._once((array.dtype, array.shape, array.tobytes()), lambda: array)

    def finish(self) -> Array:
        """The image as a read-only uint8 array, mapped from the file. Nothing may be added afterwards.

        A file of the caller's must be a real one that starts with the image.
        """
        try:
            if not self.bytes:
                return np.zeros(0, np.uint8)
            self.file.flush()
            return np.frombuffer(mmap.mmap(self.file.fileno(), self.bytes, access=mmap.ACCESS_READ), np.uint8)
        finally:
            if self._is_own:  # the mapping keeps the bytes
                self.file.close()

    def _once(self, key: object, make: Callable[[], Array]) -> tuple[int, int]:
        if key not in self._places:
            array = make()
            unit = PAGE if array.nbytes >= _LARGE else 1
            before, behind = -self.bytes % unit, -array.nbytes % unit or aligned(array.nbytes) - array.nbytes
            self._places[key] = (self.bytes + before, array.nbytes)
            try:
                self.file.write(bytes(before))
                for chunk in _chunks(array):
                    self.file.write(chunk)
                self.file.write(bytes(behind))
            except OSError as error:
                raise ResourceLimitError(
                    f"no room for the weights ({error}); set TMPDIR to a folder with more space"
                ) from error
            self.bytes += before + array.nbytes + behind
        return self._places[key]

    def _same(self, literal: Literal) -> Literal:
        """The first literal that equals this one; large ones are compared only where a sample of their bytes agrees."""
        if literal not in self._canonical:
            sample = literal.array.reshape(-1)
            sample = sample[:: max(1, sample.size // 256)]
            rivals = self._representatives.setdefault((literal.type, sample.tobytes()), [])
            equal = next((r for r in rivals if _equal_bytes(r.array, literal.array)), None)
            if equal is None:
                rivals.append(literal)
            self._canonical[literal] = equal or literal
        return self._canonical[literal]


def _read_as(array: Array, type: TensorType) -> Array:
    """The same bytes as a tensor of `type`."""
    dtype = type.element.dtype
    return (array if array.dtype == dtype else array.reshape(-1).view(dtype)).reshape(type.shape)


def _chunks(array: Array) -> Iterator[memoryview]:
    """The bytes of an array, a part at a time, so that a mapped weight is never copied whole."""
    flat = _byte_view(array)
    for start in range(0, flat.size, _CHUNK):
        yield flat[start : start + _CHUNK].data


def _byte_view(array: Array) -> Array:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _equal_bytes(a: Array, b: Array) -> bool:
    return bool(np.array_equal(_byte_view(a), _byte_view(b)))
