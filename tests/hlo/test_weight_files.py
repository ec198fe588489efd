"""Weights beside a dump: they read back bit for bit, each is written once, and nothing else is opened."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from onnxla.errors import HloError
from onnxla.hlo.builder import Builder
from onnxla.hlo.fingerprint import fingerprint
from onnxla.hlo.module import Computation, Module
from onnxla.hlo.parser import parse_module
from onnxla.hlo.printer import print_module
from onnxla.hlo.types import Array
from onnxla.hlo.weight_files import weights_beside, write_weights

ODD = np.array([np.nan, -np.nan, np.inf, -0.0, 1e-45] * 10, np.float32)
KINDS = ("float16", "float64", "int8", "uint64", "bool", "complex64", "bfloat16", "int4", "float8_e4m3fn")


def module_of(*arrays: Array) -> Module:
    b = Builder()
    root = b.tuple(*(b.constant(array) for array in arrays))
    return Module("m", Computation("main", [], root))


def dump(folder: Path, module: Module, name: str = "00-input.hlo") -> Path:
    path = folder / name
    path.write_text(print_module(module))
    write_weights(path, module)
    return path


def read(path: Path) -> Module:
    return parse_module(path.read_text(), weights=weights_beside(path))


@pytest.mark.parametrize("kind", KINDS)
def test_every_type_reads_back(kind: str, tmp_path: Path) -> None:
    dtype = np.dtype(getattr(ml_dtypes, kind) if not hasattr(np, kind) and kind != "bool" else kind)
    module = module_of(np.arange(40).reshape(5, 8).astype(dtype), ODD, np.zeros((0, 40), dtype))
    assert fingerprint(read(dump(tmp_path, module))) == fingerprint(module)


def test_equal_constants_of_all_texts_share_a_file(tmp_path: Path) -> None:
    dump(tmp_path, module_of(ODD, ODD.copy()))
    dump(tmp_path, module_of(ODD, ODD[::-1].copy()), "01-next.hlo")
    assert len(list((tmp_path / "weights").glob("*.npy"))) == 2


def test_a_text_without_long_constants_has_no_weights(tmp_path: Path) -> None:
    path = dump(tmp_path, module_of(np.ones(3, np.float32)))
    assert not (tmp_path / "weights").exists()
    assert weights_beside(path) is None


def _flip(weights: Path) -> None:
    (file,) = weights.glob("*.npy")
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)


def _other_shape(weights: Path) -> None:
    (file,) = weights.glob("*.npy")
    np.save(file, np.load(file).reshape(5, 10))


def _cut(weights: Path) -> None:
    (file,) = weights.glob("*.npy")
    file.write_bytes(file.read_bytes()[:100])


def _pickle(weights: Path) -> None:
    (file,) = weights.glob("*.npy")
    np.save(file, np.array([object()]), allow_pickle=True)


def _link(weights: Path) -> None:
    (file,) = weights.glob("*.npy")
    file.rename(weights.parent / "elsewhere.npy")
    file.symlink_to(weights.parent / "elsewhere.npy")


def _pipe(weights: Path) -> None:
    (file,) = weights.glob("*.npy")
    file.unlink()
    os.mkfifo(file)


def _index(content: object) -> Callable[[Path], None]:
    def write(weights: Path) -> None:
        (weights / "00-input.hlo.json").write_text(json.dumps(content))

    return write


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_flip, "is damaged: its digest differs"),
        (_other_shape, r"holds float32\[5, 10\], the text wants f32\[50\]"),
        (_cut, "cannot be read"),
        (_pickle, "cannot be read"),
        (_link, "is not a plain file"),
        (_pipe, "is not a plain file"),
        (_index({"main/constant": "../../../../etc/passwd"}), "is no name of a weights file"),
        (_index({}), "names no file for the constant main/constant"),
        (_index([1]), "is not a list of constants and their files"),
    ],
)
def test_what_was_not_written_is_refused(damage: Callable[[Path], None], message: str, tmp_path: Path) -> None:
    path = dump(tmp_path, module_of(ODD))
    damage(tmp_path / "weights")
    with pytest.raises(HloError, match=message):
        read(path)
