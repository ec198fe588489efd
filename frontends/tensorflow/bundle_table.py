"""The index of a checkpoint: a sorted table of keys and values in LevelDB's file format.

File: blocks, then a footer of 48 bytes with the places of the meta index and the index, and a magic number. The index
maps last keys to blocks. Block: entries that share a prefix with the key before, restart points, then a byte for the
compression and a masked checksum (github.com/google/leveldb/blob/main/doc/table_format.md).
"""

import struct

from onnxla.errors import ModelFormatError
from onnxla.frontends.tensorflow.crc32c import crc32c, masked

_FOOTER, _MAGIC, _TRAILER = 48, 0xDB4775248B80FB57, 5


def read_table(data: bytes) -> dict[bytes, bytes]:
    """Every key with its value. Raises ModelFormatError for what is not such a table, or is damaged."""
    if len(data) < _FOOTER or struct.unpack_from("<Q", data, len(data) - 8)[0] != _MAGIC:
        raise ModelFormatError("the checkpoint's index is not a table: its magic number is missing")
    footer = data[-_FOOTER:]
    _, place = _handle(footer, 0)
    (offset, size), _ = _handle(footer, place)
    found: dict[bytes, bytes] = {}
    for _, value in _entries(_block(data, offset, size)):
        (block_offset, block_size), _ = _handle(value, 0)
        found.update(_entries(_block(data, block_offset, block_size)))
    return found


def varint(data: bytes, place: int) -> tuple[int, int]:
    """A number in base 128, least digits first, and the place behind it. Raises ModelFormatError."""
    value = shift = 0
    while True:
        if place >= len(data) or shift > 63:
            raise ModelFormatError("the checkpoint's index is damaged: a number does not end")
        byte = data[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place


def _handle(data: bytes, place: int) -> tuple[tuple[int, int], int]:
    offset, place = varint(data, place)
    size, place = varint(data, place)
    return (offset, size), place


def _block(data: bytes, offset: int, size: int) -> bytes:
    end = offset + size
    if end + _TRAILER > len(data):
        raise ModelFormatError("the checkpoint's index is damaged: a block lies outside of the file")
    (checksum,) = struct.unpack_from("<I", data, end + 1)
    if masked(crc32c(data[offset : end + 1])) != checksum:
        raise ModelFormatError("the checkpoint's index is damaged: a checksum does not fit")
    if data[end] != 0:
        raise ModelFormatError("the checkpoint's index is compressed, which TensorFlow does not do")
    return data[offset:end]


def _entries(block: bytes) -> list[tuple[bytes, bytes]]:
    if len(block) < 4:
        raise ModelFormatError("the checkpoint's index is damaged: a block is too short")
    (restarts,) = struct.unpack_from("<I", block, len(block) - 4)
    end = len(block) - 4 * (restarts + 1)
    place, key = 0, b""
    found: list[tuple[bytes, bytes]] = []
    while place < end:
        shared, place = varint(block, place)
        unshared, place = varint(block, place)
        length, place = varint(block, place)
        if shared > len(key) or place + unshared + length > end:
            raise ModelFormatError("the checkpoint's index is damaged: an entry lies outside of its block")
        key = key[:shared] + block[place : place + unshared]
        place += unshared
        found.append((key, block[place : place + length]))
        place += length
    return found
