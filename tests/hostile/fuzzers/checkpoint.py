"""SavedModels: the message, the checkpoint's index and its data.

The first byte says which part of a sound SavedModel the rest replaces: the message; the index as it lies in the file;
or the entries of its one block, put into a table whose checksums fit.
"""

import random
import shutil
import struct
import tempfile
from functools import cache
from pathlib import Path

from onnxla.errors import InputError, raise_problems
from onnxla.frontends.tensorflow.bundle_table import read_table
from onnxla.frontends.tensorflow.crc32c import crc32c, masked
from onnxla.frontends.tensorflow.importer import try_import
from onnxla.frontends.tensorflow.messages import BundleEntryProto, SavedModel
from onnxla.frontends.tensorflow.model_file import read_tensorflow
from tests.hostile.fuzzers.atheris_main import main
from tests.hostile.fuzzers.mutation import message_mutator, mutate_bytes
from tests.hostile.fuzzers.target import LIMITS, OPTIONS, Target

MESSAGE, INDEX, ENTRIES, DATA = b"\0", b"\1", b"\2", b"\3"
_MODEL = Path(__file__).parents[2] / "frontends" / "tensorflow" / "saved_models" / "effects"
_INDEX, _DATA = "variables/variables.index", "variables/variables.data-00000-of-00001"
_MAGIC = struct.pack("<Q", 0xDB4775248B80FB57)


def table(entries: bytes) -> bytes:
    """An index of one block, with checksums that fit."""

    def block(content: bytes) -> bytes:
        whole = content + b"\0"
        return whole + struct.pack("<I", masked(crc32c(whole)))

    first = block(entries)
    handle = _varint(0) + _varint(len(entries))
    content = _entry(b"\xff", handle) + struct.pack("<2I", 0, 1)
    footer = _varint(0) + _varint(0) + _varint(len(first)) + _varint(len(content))
    return first + block(content) + footer.ljust(40, b"\0") + _MAGIC


def _varint(value: int) -> bytes:
    digits = bytearray()
    while value > 127:
        digits.append(value & 127 | 128)
        value >>= 7
    return bytes([*digits, value])


def _entry(key: bytes, value: bytes) -> bytes:
    return _varint(0) + _varint(len(key)) + _varint(len(value)) + key + value


def entries_of(rows: dict[bytes, bytes]) -> bytes:
    return b"".join(_entry(key, value) for key, value in rows.items()) + struct.pack("<2I", 0, 1)


@cache
def _folder() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory()


@cache
def _copy() -> Path:
    """A sound SavedModel, of which each run replaces a part."""
    copy = Path(_folder().name) / "model"
    shutil.copytree(_MODEL, copy)
    return copy


def run(data: bytes) -> None:
    part = {MESSAGE: "saved_model.pb", DATA: _DATA}.get(data[:1], _INDEX)
    file = _copy() / part
    file.write_bytes(table(data[1:]) if data[:1] == ENTRIES else data[1:])
    try:
        model = read_tensorflow(_copy())
        for name in sorted(n for n in model.signatures if not n.startswith("__")):
            try:
                result = try_import(model, signature=name, options=OPTIONS, limits=LIMITS)
            except InputError:
                continue
            raise_problems(result.problems)
    finally:
        shutil.copy(_MODEL / part, file)


_mutate_model, _mutate_entry = message_mutator(SavedModel), message_mutator(BundleEntryProto)


def mutate(data: bytes, rng: random.Random) -> bytes:
    kind = data[:1]
    if kind == MESSAGE:
        return kind + _mutate_model(data[1:], rng)
    if kind == ENTRIES and rng.random() < 0.7:
        rows = dict(read_table((_MODEL / _INDEX).read_bytes()))
        for _ in range(rng.choice((1, 2))):
            key = rng.choice(sorted(rows))
            rows[key] = _mutate_entry(rows[key], rng)
        return kind + entries_of(rows)
    return kind + mutate_bytes(data[1:], rng)


@cache
def seeds() -> list[bytes]:
    index = (_MODEL / _INDEX).read_bytes()
    message, values = (_MODEL / "saved_model.pb").read_bytes(), (_MODEL / _DATA).read_bytes()
    return [MESSAGE + message, INDEX + index, ENTRIES + entries_of(read_table(index)), DATA + values]


TARGET = Target("checkpoint", seeds, run, mutate)

if __name__ == "__main__":
    main(TARGET)
