"""The constants that a dump's text elides, in files beside it: written once each, found by name, checked by digest.

    dump/03-simplify.hlo
    dump/weights/03-simplify.hlo.json                   constant of the text -> file
    dump/weights/f32-64x3x7x7-<SHA-256>.npy             the elements, shared by all texts of the folder

A text reads back to the very module that was dumped. Folders may come from strangers: nothing outside `weights` is
opened, and bytes that are not those of their digest are refused.
"""

import hashlib
import json
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from onnxla.errors import HloError
from onnxla.files import write_file, writing
from onnxla.hlo.literal import Literal
from onnxla.hlo.module import Module
from onnxla.hlo.parser import Weights
from onnxla.hlo.printer import long_constants
from onnxla.hlo.types import Array, TensorType

FOLDER = "weights"
_FILE = re.compile(r"(?a)[a-z0-9]+-(?:scalar|\d+(?:x\d+)*)-([0-9a-f]{64})\.npy")
_LARGEST_INDEX = 64 << 20


def write_weights(text: Path, module: Module) -> None:
    """Write the constants that `module`'s text, which lies at `text`, elides. Those that are there already are kept."""
    constants = {name: literal for name, literal in long_constants(module).items() if literal.type.size}
    if not constants:
        return
    folder = text.parent / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    index = {}
    for name, literal in constants.items():
        index[name] = _file_name(literal)
        _write_once(folder / index[name], literal.array)
    write_file(folder / f"{text.name}.json", json.dumps(index, indent=1) + "\n")


def files_beside(text: Path) -> list[Path]:
    """The files that belong to the text at `text`: an index and the constants in it; none where none lie beside it.

    Raises HloError for an index that is none.
    """
    index = text.parent / FOLDER / f"{text.name}.json"
    if not index.is_file():
        return []
    return [index, *dict.fromkeys(index.parent / name for name in _read_index(index).values())]


def weights_beside(text: Path) -> Weights | None:
    """The elided constants of the text at `text`, each read when it is asked for; None where no weights lie beside it.

    Reading raises HloError for a constant without a file, and for a file that is not what was written.
    """
    folder = text.parent / FOLDER
    index_path = folder / f"{text.name}.json"
    if not index_path.is_file():
        return None
    index = _read_index(index_path)

    def find(name: str, type: TensorType) -> Array:
        if name not in index:
            raise HloError(f"{index_path} names no file for the constant {name}")
        return _read(folder, index[name], type)

    return find


def _file_name(literal: Literal) -> str:
    shape = "x".join(map(str, literal.type.shape)) or "scalar"
    return f"{literal.type.element}-{shape}-{literal.digest}.npy"


def _write_once(path: Path, array: Array) -> None:
    """The file appears whole or not at all, so that one that is there need not be written again."""
    if path.exists():
        return
    with writing(path) as file:
        np.save(file, array, allow_pickle=False)


def _read_index(path: Path) -> Mapping[str, str]:
    try:
        if path.stat().st_size > _LARGEST_INDEX:
            raise HloError(f"{path} is larger than {_LARGEST_INDEX} bytes")
        index = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError) as error:
        raise HloError(f"{path} cannot be read: {error}") from error
    if not isinstance(index, dict) or not all(isinstance(file, str) for file in index.values()):
        raise HloError(f"{path} is not a list of constants and their files")
    return index


def _read(folder: Path, name: str, type: TensorType) -> Array:
    """The array in a file of the folder. Raises HloError unless it is the one that its name says."""
    path, form = folder / name, _FILE.fullmatch(name)
    if form is None:
        raise HloError(f"{name[:80]!r} is no name of a weights file")
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            raise HloError(f"{path} is not a plain file")
        array: Array = np.load(path, allow_pickle=False)  # no map, which ends a process when its file is cut short
    except (OSError, ValueError, EOFError, MemoryError) as error:
        raise HloError(f"{path} cannot be read: {error}") from error
    wanted = type.element.dtype
    if array.dtype != wanted and array.dtype.kind == "V" and array.dtype.itemsize == wanted.itemsize:
        array = array.view(wanted)  # numpy's files keep bfloat16 and its like as bytes without a type
    if array.dtype != wanted or array.shape != type.shape or not array.flags.c_contiguous:
        raise HloError(f"{path} holds {array.dtype}{list(array.shape)}, the text wants {type}")
    if hashlib.sha256(array.reshape(-1).view(np.uint8).data).hexdigest() != form[1]:
        raise HloError(f"{path} is damaged: its digest differs")
    return array
