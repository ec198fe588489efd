"""What is given as HLO: a file, text, bytes, or a function that JAX has exported. XLA's text or StableHLO's."""

import mmap
import os
import re
from pathlib import Path
from typing import Any, TypeAlias

from onnxla.config import Limits
from onnxla.errors import ModelFormatError
from onnxla.files import read_file
from onnxla.frontends.hlo.bytecode import MAGIC, text_of_bytecode, text_of_export
from onnxla.frontends.hlo.operations import read_program
from onnxla.frontends.hlo.syntax import Program
from onnxla.hlo.module import Module
from onnxla.hlo.parser import Weights, parse_module
from onnxla.hlo.weight_files import weights_beside

HloModel: TypeAlias = Module | Program
"""A module of XLA's text, or a program of StableHLO's, whose sizes may be open."""

SUFFIXES = (".hlo", ".mlir", ".stablehlo", ".jaxexport")

_XLA = re.compile(r"(?a)\s*HloModule\b|(?:.*\n)?\s*ENTRY\b", re.DOTALL)
_MLIR = re.compile(
    r'(?a)(?:\s|//[^\n]*\n|#[\w$.]+\s*=[^\n]*\n)*(?:module\b|builtin\.module\b|func\.func\b|"builtin\.module")'
)
_COMMENT = re.compile(r"(?a)//[^\n]*|/\*.*?\*/", re.DOTALL)
_BEGINNING = 1 << 14


def is_hlo(model: Any) -> bool:
    """Whether `model` is HLO of any kind: by the suffix of a path, or by how the text or the bytes begin."""
    if isinstance(model, (Module, Program)) or _is_exported(model):
        return True
    if is_text(model):
        return _kind_of_text(model) != ""
    if isinstance(model, (str, os.PathLike)):
        path = Path(model)
        return path.suffix in SUFFIXES or (not path.is_dir() and path.suffix != ".onnx" and _file_looks_like_it(path))
    return isinstance(model, (bytes, bytearray)) and _kind_of_bytes(bytes(model[:_BEGINNING]), model) != ""


def is_text(model: Any) -> bool:
    """Whether it is text itself: no path has lines."""
    return isinstance(model, str) and "\n" in model


def read_hlo(model: Any, limits: Limits | None = None, weights: Weights | None = None) -> HloModel:
    """What `model` says. `weights` gives constants that XLA's text elides; else they are looked for beside a file.

    Raises ModelFormatError for what cannot be read, HloError for text that breaks the language,
    UnsupportedOpError for operations of XLA's text that are not known, ResourceLimitError.
    """
    limits = limits or Limits.from_environment()
    if isinstance(model, (Module, Program)):
        return model
    if _is_exported(model):
        return read_program(model.mlir_module(), limits)
    if is_text(model):
        return _of_text(model, limits, weights)
    if isinstance(model, (bytes, bytearray)):
        return _of_bytes(bytes(model), "the model", limits, weights)
    path = Path(model)
    try:
        data = read_file(path)
    except OSError as error:
        raise ModelFormatError(f"{path} cannot be read as HLO text: {error}") from error
    return _of_bytes(data, str(path), limits, weights or weights_beside(path))


def _of_bytes(data: bytes, name: str, limits: Limits, weights: Weights | None) -> HloModel:
    kind = _kind_of_bytes(data[:_BEGINNING], data)
    if kind == "bytecode":
        return read_program(text_of_bytecode(data, name, limits), limits)
    if kind == "export":
        return read_program(text_of_export(data, name, limits), limits)
    try:
        return _of_text(data.decode(), limits, weights)
    except UnicodeDecodeError as error:
        raise ModelFormatError(f"{name} cannot be read as HLO text: {error}") from error


def _of_text(text: str, limits: Limits, weights: Weights | None) -> HloModel:
    if _kind_of_text(text) == "mlir":
        return read_program(text, limits)
    return parse_module(text, weights=weights, limits=limits)


def _kind_of_text(text: str) -> str:
    """`xla`, `mlir`, or nothing."""
    beginning = text[:_BEGINNING]
    if _MLIR.match(beginning):
        return "mlir"
    beginning = _COMMENT.sub(" ", beginning)
    return "xla" if _XLA.match(beginning) else ""


def _kind_of_bytes(beginning: bytes, data: "bytes | bytearray | mmap.mmap") -> str:
    """`bytecode`, `export`, `text`, or nothing."""
    if beginning.startswith(MAGIC):
        return "bytecode"
    # a flatbuffer begins with the place of its root table, which is near; the bytecode is a field of it
    if len(beginning) > 8 and int.from_bytes(beginning[:4], "little") < 1 << 10 and data.find(MAGIC) > 0:
        return "export"
    try:
        text = beginning.decode("utf-8", "strict" if len(beginning) < _BEGINNING else "ignore")
    except UnicodeDecodeError:
        return ""
    return "text" if _kind_of_text(text) else ""


def _file_looks_like_it(path: Path) -> bool:
    try:
        if not path.is_file():
            return False
        with open(path, "rb") as file:
            beginning = file.read(_BEGINNING)
            if not beginning:
                return False
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _kind_of_bytes(beginning, data) != ""
    except (OSError, ValueError):
        return False


def _is_exported(model: Any) -> bool:
    """Whether it is `jax.export.Exported`, without asking for JAX."""
    return callable(getattr(model, "mlir_module", None)) and hasattr(model, "in_avals")
