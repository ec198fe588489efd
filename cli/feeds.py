"""Inputs of a run: arrays from files, seeded random ones for the rest; and the file that outputs go to."""

import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from onnxla.cli.output import count
from onnxla.cli.outputs import writing_to
from onnxla.errors import InputError
from onnxla.files import writing
from onnxla.runtime.signature import ModelTensor
from onnxla.runtime.tensors import Array


@dataclass
class GivenArrays:
    """Arrays by name, or by position as in ONNX's folders of test data, before a model says what they are."""

    named: dict[str, Array] = field(default_factory=dict)
    inputs: dict[int, Array] = field(default_factory=dict)
    outputs: dict[int, Array] = field(default_factory=dict)
    only: Array | None = None
    """An array without a name or place: for a model with one input."""


@dataclass(frozen=True)
class Feeds:
    """What a model runs on, and what it should give."""

    arrays: dict[str, Array]
    random: tuple[str, ...]
    """Inputs that nobody gave."""
    expected: dict[str, Array]
    """Outputs that came with the inputs."""


def read_inputs(texts: Sequence[str] | None) -> GivenArrays:
    """`file.npz`, `file.npy`, `name=file.npy`, `name=file.pb`, or a folder of `input_0.pb`, ... Raises InputError."""
    given = GivenArrays()
    for text in texts or ():
        path = Path(text)
        if path.is_dir():
            _read_folder(path, given)
        elif path.suffix == ".npz":
            given.named |= _read_npz(path)
        elif path.suffix == ".npy" and path.exists():
            given.only = read_array(path)
        else:
            name, equals, file = text.partition("=")
            if not equals or not name:
                raise InputError(f"--input {text}: neither a folder, a .npz or .npy file that is there, nor name=file")
            given.named[name] = read_array(Path(file))
    return given


def read_array(path: Path) -> Array:
    """The array in a `.npy` file or in a `.pb` file that holds an ONNX TensorProto. Raises InputError."""
    try:
        if path.suffix == ".npy":
            return np.asarray(np.load(path, allow_pickle=False))
        if path.suffix == ".pb":
            return _read_tensor(path)
    except (OSError, ValueError, TypeError, EOFError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    raise InputError(f"{path}: an array is read from a .npy or .pb file")


def _read_tensor(path: Path) -> Array:
    from google.protobuf.message import DecodeError
    from onnx import TensorProto, numpy_helper

    tensor = TensorProto()
    try:
        tensor.ParseFromString(path.read_bytes())
    except DecodeError as error:
        raise ValueError(f"not a TensorProto: {error}") from error
    if tensor.external_data:
        raise ValueError("its values are in another file")
    return np.asarray(numpy_helper.to_array(tensor))


def _read_npz(path: Path) -> dict[str, Array]:
    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            raise InputError(f"{path} is one array, not an .npz file of arrays by name: call it .npy")
        with loaded:
            arrays = {name: loaded[name] for name in loaded.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    others = [name for name, array in arrays.items() if not isinstance(array, np.ndarray)]
    if others or not arrays:
        raise InputError(f"{path} holds {f'{others[0]}, which is no array' if others else 'no arrays'}")
    return arrays


def _read_folder(folder: Path, given: GivenArrays) -> None:
    """A folder as ONNX's backend tests have them: `input_0.pb`, ..., `output_0.pb`, ..."""
    for kind, arrays in (("input", given.inputs), ("output", given.outputs)):
        for path in sorted(folder.glob(f"{kind}_*.pb")):
            number = path.stem.removeprefix(f"{kind}_")
            if number.isdecimal():
                arrays[int(number)] = read_array(path)
    if not given.inputs:
        raise InputError(f"{folder} holds no input_0.pb")


def feeds_for(
    inputs: Sequence[ModelTensor],
    outputs: Sequence[ModelTensor],
    given: GivenArrays,
    seed: int,
    dims: Mapping[str, Any] | None = None,
) -> Feeds:
    """The given arrays by the model's names, and random ones for the inputs that are left.

    Raises InputError for arrays that the model has no place for, and for random inputs with an open dimension.
    """
    named = dict(given.named)
    named |= _by_position(given.inputs, inputs, "input") | _by_position(given.outputs, outputs, "output")
    if given.only is not None:
        if len(inputs) != 1:
            raise InputError(f"the model has {count(len(inputs), 'input')}: write name=file.npy; {_listed(inputs)}")
        named[inputs[0].name] = given.only
    tensors = {t.name: t for t in (*outputs, *inputs)}
    unknown = sorted(set(named) - set(tensors))
    if unknown:
        raise InputError(f"the model has no input {', '.join(unknown)}; it takes {_listed(inputs)}")
    arrays = {t.name: _as_declared(named[t.name], t) for t in inputs if t.name in named}
    missing = [t for t in inputs if t.name not in named]
    sizes = {name: size for name, size in (dims or {}).items() if isinstance(size, int)} | _sizes(inputs, arrays)
    require_sizes(missing, sizes)
    for t in missing:
        arrays[t.name] = random_array(t, sizes, np.random.default_rng([seed, inputs.index(t)]))
    expected = {t.name: _as_declared(named[t.name], t) for t in outputs if t.name in named and t.name not in arrays}
    return Feeds(arrays, tuple(t.name for t in missing), expected)


def random_array(tensor: ModelTensor, sizes: Mapping[str, int], rng: np.random.Generator) -> Array:
    """Seeded values: normal for floats, 0 and 1 for wide integers (mostly indices), any for narrow ones."""
    dtype = tensor.dtype
    if dtype is None or tensor.shape is None:
        raise InputError(f"no random values for {tensor}; give it with --input {tensor.name}=file.npy")
    shape = tuple(n if isinstance(n, int) else sizes[str(n)] for n in tensor.shape)
    if dtype.kind == "b" or (dtype.kind in "iu" and dtype.itemsize >= 4):
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu":
        return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, endpoint=True).astype(dtype)
    if dtype.kind == "c":
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    if dtype.name.startswith(("int", "uint")):
        low = 0 if dtype.name.startswith("uint") else -2
        return rng.integers(low, 2, shape).astype(dtype)
    values = rng.standard_normal(shape)
    return (np.abs(values) + 1 if dtype.name == "float8_e8m0fnu" else values).astype(dtype)


def write_outputs(path: Path, outputs: Mapping[str, Array]) -> None:
    """Write arrays into an `.npz` file, under any names. Raises InputError where that fails."""
    with writing_to(path), writing(path) as written:
        # np.savez takes names as keyword arguments, of which it keeps some for itself
        with zipfile.ZipFile(written, "w") as archive:
            for name, array in outputs.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                    np.lib.format.write_array(
                        file, np.ascontiguousarray(array).reshape(array.shape), allow_pickle=False
                    )


def _by_position(arrays: Mapping[int, Array], tensors: Sequence[ModelTensor], kind: str) -> dict[str, Array]:
    extra = [f"{kind}_{position}" for position in arrays if position >= len(tensors)]
    if extra:
        raise InputError(f"the model has {count(len(tensors), kind)}, and none for {', '.join(extra)}")
    return {tensors[position].name: array for position, array in arrays.items()}


def _as_declared(array: Array, tensor: ModelTensor) -> Array:
    """numpy's files keep bfloat16 and its like as bytes without a type: give them the declared one."""
    dtype = tensor.dtype
    if dtype is not None and array.dtype.kind == "V" and array.dtype.names is None and array.dtype != dtype:
        return array.view(dtype) if array.dtype.itemsize == dtype.itemsize else array
    return array


def _sizes(inputs: Sequence[ModelTensor], arrays: Mapping[str, Array]) -> dict[str, int]:
    """Sizes of symbolic dimensions, from the arrays that are there."""
    sizes: dict[str, int] = {}
    for t in inputs:
        if t.name in arrays and t.shape is not None:
            sizes |= {n: size for n, size in zip(t.shape, arrays[t.name].shape, strict=False) if isinstance(n, str)}
    return sizes


def require_sizes(tensors: Sequence[ModelTensor], sizes: Mapping[str, int]) -> None:
    """Raise InputError unless every dimension of `tensors` has a size."""
    symbols = dict.fromkeys(n for t in tensors for n in t.shape or () if isinstance(n, str) and n not in sizes)
    nameless = [t for t in tensors if t.shape is None or any(n is None for n in t.shape)]
    ways = [f"--dim {name}=1" for name in symbols]
    ways += [
        f"--shape {t.name}={'x'.join(str(n) if isinstance(n, int) else '1' for n in t.shape or ())}" for t in nameless
    ]
    if ways:
        unknown = [t for t in tensors if t in nameless or any(n in symbols for n in t.shape or ())]
        raise InputError(f"dimensions without a size in {_listed(unknown)}\n  hint   give {' '.join(ways)}")


def _listed(tensors: Sequence[ModelTensor]) -> str:
    return ", ".join(map(str, tensors)) or "nothing"
