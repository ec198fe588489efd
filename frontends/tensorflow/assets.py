"""Files that a SavedModel keeps in `assets/`, and the tables that their lines fill.

The format is `tf.lookup.TextFileInitializer`'s: a key and a value in each line, as a column between delimiters, the
whole line, or the line's number.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from onnxla.errors import HloError, ModelFormatError
from onnxla.frontends.onnx.external_data import read_file_beneath
from onnxla.frontends.tensorflow.element_types import STRING, element_of_code
from onnxla.frontends.tensorflow.graph import Node
from onnxla.hlo.types import Array, ElementType

FILLED_FROM_FILES = ("InitializeTableFromTextFileV2", "InitializeTableFromTextFile")
_LINE_NUMBER, _WHOLE_LINE = -1, -2
_WHOLE_NUMBER = re.compile(rb"[+-]?[0-9]{1,20}")
_DECIMAL = re.compile(rb"[+-]?(?:[0-9]{1,400}\.?[0-9]{0,400}|\.[0-9]{1,400})(?:[eE][+-]?[0-9]{1,5})?|[+-]?(?:inf|nan)")


@dataclass(frozen=True)
class Assets:
    """The files of a SavedModel by the node whose value is their name."""

    folder: Path | None = None
    files: Mapping[str, str] = field(default_factory=dict)

    def read(self, node: str) -> bytes | None:
        """The contents of the file that a node names; None where it names none. Raises ModelFormatError."""
        if self.folder is None or node not in self.files:
            return None
        return bytes(read_file_beneath(self.folder, f"assets/{self.files[node]}"))


def assets_of(folder: Path, meta_graph: Any) -> Assets:
    """The assets that a MetaGraphDef lists."""
    return Assets(folder, {a.tensor_info.name.partition(":")[0]: a.filename for a in meta_graph.asset_file_def})


def rows_of_file(data: bytes, filling: Node, table: Node) -> tuple[Array, Array] | None:
    """Keys and values for a table; None for what is not read here (lines that are left out, types of neither numbers
    nor strings). Raises ModelFormatError for lines that do not fit."""
    attributes = filling.attributes
    size, offset = (attributes[n].i if n in attributes else d for n, d in (("vocab_size", -1), ("offset", 0)))
    lines = list(_lines(data))
    if b"" in lines:
        raise ModelFormatError(f"line {lines.index(b'') + 1} of a table's file is empty")
    if offset or size > len(lines):
        return None
    lines = lines if size < 0 else lines[:size]
    delimiter = attributes["delimiter"].s if "delimiter" in attributes else b"\t"
    columns = []
    for part in ("key", "value"):
        index, code = attributes[f"{part}_index"].i, table.attributes[f"{part}_dtype"].type
        try:
            element = None if code == STRING else element_of_code(code)
        except HloError:
            return None
        if index < _WHOLE_LINE or (element is not None and not (element.is_integer or element.is_float)):
            return None
        words = [str(n).encode() if index == _LINE_NUMBER else w for n, w in enumerate(_words(lines, index, delimiter))]
        columns.append(_column(words, element))
    return columns[0], columns[1]


def _lines(data: bytes) -> Iterator[bytes]:
    """Lines without their ends; none behind the last end."""
    parts = data.split(b"\n")
    yield from (line.removesuffix(b"\r") for line in (parts if parts[-1] else parts[:-1]))


def _words(lines: list[bytes], index: int, delimiter: bytes) -> Iterator[bytes]:
    for number, text in enumerate(lines):
        if index < 0:
            yield text
            continue
        found = text.split(delimiter) if delimiter else [text]
        if index >= len(found):
            what = f"{len(found)} columns, and no column {index}"
            raise ModelFormatError(f"line {number + 1} of a table's file has {what}")
        yield found[index]


def _column(words: list[bytes], element: ElementType | None) -> Array:
    """Words as strings, or as numbers of a type."""
    if element is None:
        column: Array = np.empty(len(words), object)
        column[:] = words
        return column
    pattern = _WHOLE_NUMBER if element.is_integer else _DECIMAL
    for number, word in enumerate(words):
        if not pattern.fullmatch(word.strip(b" \t")):
            what = f"{word[:40]!r}, not a number of {element}"
            raise ModelFormatError(f"line {number + 1} of a table's file holds {what}")
    try:
        read = int if element.is_integer else float
        return np.array([read(w) for w in words], element.dtype)
    except OverflowError as error:
        raise ModelFormatError(f"a table's file holds a number that is too large for {element}") from error
