"""Initializers in every encoding, and where their bytes may lie."""

import os
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import ModelProto, SparseTensorProto, TensorProto, helper

from onnxla.errors import ModelFormatError, ResourceLimitError
from onnxla.frontends.onnx.importer import import_model
from onnxla.frontends.onnx.model_file import read_model
from onnxla.frontends.onnx.weights import dense_array, tensor_array
from onnxla.hlo.types import ELEMENT_TYPES, Array, ElementType
from tests.frontends.witness import f32, model_of, s64, tensor

EVERY_ELEMENT = list(ELEMENT_TYPES.values())


def sample(element: ElementType) -> Array:
    """Seven values (an odd number, so that packed types end within a byte) that the type can hold."""
    if element.bits < 8 and not element.is_float:
        low = -(1 << element.bits - 1) if element.is_signed else 0
        return np.array([low + i % (1 << element.bits) for i in range(7)]).astype(element.dtype)
    if element.name == "pred":
        return np.array([1, 0, 0, 1, 1, 0, 1], np.bool_)
    return np.array([0.5, 1, 2, 4, 1, 2, 0.5] if not element.is_integer else [0, 1, 2, 3, 100, 5, 6]).astype(
        element.dtype
    )


@pytest.mark.parametrize("element", EVERY_ELEMENT, ids=str)
@pytest.mark.parametrize("raw", [True, False], ids=["raw", "fields"])
def test_every_element_type_reads_back(element: ElementType, raw: bool) -> None:
    values = sample(element)
    code = helper.np_dtype_to_tensor_dtype(values.dtype)
    if raw:
        proto = TensorProto(name="w", data_type=code, dims=[7], raw_data=packed(values, element))
    else:
        proto = helper.make_tensor("w", code, [7], values)
    read = tensor_array(proto)
    assert read.dtype == element.dtype
    assert (read == values).all()


def packed(values: Array, element: ElementType) -> bytes:
    """The standard's raw_data: little-endian, types below a byte packed from the low bits up."""
    if element.bits >= 8:
        return values.tobytes()
    mask = (1 << element.bits) - 1
    bits = (values.view(np.uint8) & mask).tolist()
    each = 8 // element.bits
    rows = [bits[i : i + each] for i in range(0, len(bits), each)]
    return bytes(sum(b << element.bits * k for k, b in enumerate(row)) for row in rows)


def test_scalars_and_empty_tensors() -> None:
    assert tensor_array(tensor("w", np.array(3.0))).shape == ()
    assert tensor_array(tensor("w", np.zeros((0, 4), np.float32))).shape == (0, 4)
    assert tensor_array(TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[0])).shape == (0,)


def test_strings_are_objects() -> None:
    read = tensor_array(tensor("w", np.array(["a", "ü"], object)))
    assert read.dtype == object and list(read) == ["a", "ü"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"dims": [3], "raw_data": b"1234"}, "needs 12 bytes of data and has 4"),
        ({"dims": [1 << 40, 1 << 40], "raw_data": b"1234"}, "bytes of data and has 4"),
        ({"dims": [-1], "raw_data": b"1234"}, "negative dimension"),
        ({"dims": [2], "float_data": [1.0]}, "needs 2 stored numbers and has 1"),
        ({"dims": [1 << 60]}, "stored numbers and has 0"),
        ({"dims": [1], "data_type": 999, "raw_data": b"1"}, "no element type for ONNX data type 999"),
        ({"dims": [1], "data_type": 0, "raw_data": b"1"}, "no element type for ONNX data type UNDEFINED"),
        ({"dims": [1], "data_type": TensorProto.STRING, "string_data": [b"\xff"]}, "not UTF-8"),
        ({"dims": [2], "data_type": TensorProto.STRING, "string_data": [b"a"]}, "1 strings stored"),
    ],
)
def test_data_that_does_not_fit_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelFormatError, match=message):
        tensor_array(TensorProto(**{"name": "w", "data_type": TensorProto.FLOAT, **fields}))


def sparse(values: Array, indices: Array, dims: list[int]) -> SparseTensorProto:
    return helper.make_sparse_tensor(tensor("w", values), tensor("i", indices), dims)


def test_sparse_tensors_unfold() -> None:
    flat = dense_array(sparse(f32([1, 2]), s64([1, 5]), [2, 3]))
    pairs = dense_array(sparse(f32([1, 2]), s64([[0, 1], [1, 2]]), [2, 3]))
    assert (flat == [[0, 1, 0], [0, 0, 2]]).all() and (flat == pairs).all()


def test_sparse_tensors_that_lie_are_refused() -> None:
    with pytest.raises(ModelFormatError, match="index outside"):
        dense_array(sparse(f32([1]), s64([6]), [2, 3]))
    with pytest.raises(ModelFormatError, match="index outside"):
        dense_array(sparse(f32([1]), s64([-1]), [2, 3]))
    with pytest.raises(ResourceLimitError, match="unfolds to"):
        dense_array(sparse(f32([1]), s64([0]), [1 << 30, 1 << 30]))


# Large weights stay where they are


def large_model() -> tuple[ModelProto, Array]:
    weight = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)
    nodes = [helper.make_node("Add", ["x", "w"], ["h"]), helper.make_node("Add", ["h", "small"], ["y"])]
    x = np.zeros((64, 64), np.float32)
    return model_of(nodes, {"x": x}, ["y"], initializers={"small": f32([1]), "w": weight}), weight


def test_large_weights_of_bytes_are_views_into_them() -> None:
    model, weight = large_model()
    data = model.SerializeToString()
    read = read_model(data).initializer(1)
    assert (read == weight).all()
    assert np.shares_memory(read, np.frombuffer(data, np.uint8))


def test_large_weights_of_a_file_are_not_in_the_message(tmp_path: Path) -> None:
    model, weight = large_model()
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    read = read_model(path)
    assert read.proto.ByteSize() < 1000
    assert (read.initializer(1) == weight).all() and read.initializer(0)[0] == 1


def test_the_same_model_from_path_bytes_and_proto(tmp_path: Path) -> None:
    model, weight = large_model()
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    x = np.ones((64, 64), np.float32)
    for source in (path, str(path), model, model.SerializeToString(), bytearray(model.SerializeToString())):
        (y,) = import_model(source).module.entry.evaluate(x)
        assert (y == x + weight + 1).all()


# External data


def external_model(location: str, **entries: object) -> ModelProto:
    model = model_of([helper.make_node("Add", ["x", "w"], ["y"])], {"x": np.zeros(4, np.float32)}, ["y"])
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **entries}.items():
        weight.external_data.add(key=key, value=str(value))
    model.graph.initializer.append(weight)
    return model


def saved(folder: Path, model: ModelProto) -> Path:
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    return folder / "model.onnx"


WEIGHT = f32([1, 2, 3, 4])


@pytest.mark.parametrize(
    ("location", "entries"),
    [
        ("w.bin", {}),
        ("w.bin", {"offset": 8, "length": 16}),
        ("a/b/w.bin", {"length": 16}),
        ("./w.bin", {"offset": "0"}),
    ],
)
def test_external_data_beside_the_model(tmp_path: Path, location: str, entries: dict[str, object]) -> None:
    file = tmp_path / location
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"\0" * int(str(entries.get("offset", 0))) + WEIGHT.tobytes())
    path = saved(tmp_path, external_model(location, **entries))
    (y,) = import_model(path).module.entry.evaluate(np.zeros(4, np.float32))
    assert (y == WEIGHT).all()
    (y,) = import_model(path.read_bytes(), folder=tmp_path).module.entry.evaluate(np.zeros(4, np.float32))
    assert (y == WEIGHT).all()


def test_external_data_of_bytes_needs_a_folder() -> None:
    with pytest.raises(ModelFormatError, match="lies in an external file"):
        import_model(external_model("w.bin").SerializeToString())


@pytest.mark.parametrize(
    ("location", "entries", "message"),
    [
        ("/etc/passwd", {}, "not a plain path"),
        ("../outside.bin", {}, "not a plain path"),
        ("inner/../../outside.bin", {}, "not a plain path"),
        ("inner//w.bin", {}, "not a plain path"),
        ("..\\outside.bin", {}, "not a plain path"),
        ("w\0.bin", {}, "not a plain path"),
        ("", {}, "not a plain path"),
        (".", {}, "not a regular file"),
        ("missing.bin", {}, "cannot be opened"),
        ("link.bin", {}, "cannot be opened"),
        ("link/outside.bin", {}, "cannot be opened"),
        ("hard.bin", {}, "2 hard links"),
        ("pipe", {}, "not a regular file"),
        ("inner", {}, "not a regular file"),
        ("w.bin", {"offset": 4}, "needs 16 bytes of data and has 12"),
        ("w.bin", {"offset": 17}, "are outside w.bin, which has 16"),
        ("w.bin", {"length": 17}, "are outside w.bin, which has 16"),
        ("w.bin", {"offset": -1}, "not a count of bytes"),
        ("w.bin", {"offset": "9" * 30}, "not a count of bytes"),
        ("w.bin", {"offset": "٣"}, "not a count of bytes"),
        ("w.bin", {"__class__": "x"}, "unknown or repeated external data key"),
        ("empty.bin", {}, "needs 16 bytes of data and has 0"),
    ],
)
def test_external_data_stays_in_the_folder(
    tmp_path: Path, location: str, entries: dict[str, object], message: str
) -> None:
    folder = tmp_path / "model"
    (folder / "inner").mkdir(parents=True)
    for name in ("outside.bin", "model/w.bin", "model/original.bin"):
        (tmp_path / name).write_bytes(WEIGHT.tobytes())
    (folder / "link.bin").symlink_to(folder / "w.bin")
    (folder / "link").symlink_to(tmp_path)
    (folder / "empty.bin").touch()
    os.link(folder / "original.bin", folder / "hard.bin")
    os.mkfifo(folder / "pipe")
    with pytest.raises(ModelFormatError, match=message):
        import_model(saved(folder, external_model(location, **entries)))


def test_weights_behind_two_gigabytes_are_read_alone(tmp_path: Path) -> None:
    """The file has a hole: it takes no space, and nobody reads it."""
    offset = (1 << 31) + 4096
    with open(tmp_path / "w.bin", "wb") as file:
        file.seek(offset)
        file.write(WEIGHT.tobytes())
    (y,) = import_model(saved(tmp_path, external_model("w.bin", offset=offset))).module.entry.evaluate(
        np.zeros(4, "f4")
    )
    assert (y == WEIGHT).all()


def test_files_that_memory_does_not_hold_are_refused(tmp_path: Path) -> None:
    """They may be small: these are holes."""
    for name in ("w.bin", "hole.onnx"):
        with open(tmp_path / name, "wb") as file:
            file.truncate(1 << 43)
    with pytest.raises(ResourceLimitError, match="hole.onnx: 8796093022208 bytes are to be read, and this machine has"):
        import_model(tmp_path / "hole.onnx")
    with pytest.raises(ResourceLimitError, match="external data 'w.bin': 8796093022208 bytes are to be read"):
        import_model(saved(tmp_path, external_model("w.bin")))


def test_tensors_that_share_external_data_share_memory(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(WEIGHT.tobytes())
    model = read_model(saved(tmp_path, external_model("w.bin")))
    first, second = model.initializer(0), model.initializer(0)
    assert np.shares_memory(first, second)


def test_int4_weights_are_ml_dtypes_arrays() -> None:
    model = model_of([helper.make_node("Cast", ["w"], ["y"], to=TensorProto.FLOAT)], {}, {"y": TensorProto.FLOAT})
    model.graph.initializer.append(helper.make_tensor("w", TensorProto.INT4, [3], [-8, 7, 1]))
    assert read_model(model).initializer(0).dtype == ml_dtypes.int4
    (y,) = import_model(model).module.entry.evaluate()
    assert y.tolist() == [-8, 7, 1]
