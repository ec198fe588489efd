"""Inputs from files of each kind, random inputs, and outputs into a file."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from onnx import numpy_helper

from onnxla.cli.feeds import GivenArrays, feeds_for, read_array, read_inputs, write_outputs
from onnxla.errors import InputError
from onnxla.runtime.signature import ModelTensor

X = ModelTensor("x", "tensor(float)", ["batch", 3])
IDS = ModelTensor("ids", "tensor(int64)", ["batch"])
Y = ModelTensor("y", "tensor(float)", ["batch", 3])
VALUES = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_arrays_by_name_from_npz_npy_and_pb(tmp_path: Path) -> None:
    np.savez(tmp_path / "all.npz", x=VALUES, y=VALUES + 1)
    np.save(tmp_path / "ids.npy", np.array([4, 5]))
    (tmp_path / "ids.pb").write_bytes(numpy_helper.from_array(np.array([6, 7])).SerializeToString())
    feeds = feeds_for([X, IDS], [Y], read_inputs([f"{tmp_path}/all.npz", f"ids={tmp_path}/ids.npy"]), seed=0)
    assert feeds.random == ()
    np.testing.assert_array_equal(feeds.arrays["x"], VALUES)
    np.testing.assert_array_equal(feeds.arrays["ids"], [4, 5])
    np.testing.assert_array_equal(feeds.expected["y"], VALUES + 1)
    np.testing.assert_array_equal(read_array(tmp_path / "ids.pb"), [6, 7])


def test_a_folder_of_test_data_goes_by_position(tmp_path: Path) -> None:
    for number, array in enumerate([VALUES, np.array([1, 2])]):
        (tmp_path / f"input_{number}.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())
    (tmp_path / "output_0.pb").write_bytes(numpy_helper.from_array(VALUES).SerializeToString())
    feeds = feeds_for([X, IDS], [Y], read_inputs([str(tmp_path)]), seed=0)
    assert set(feeds.arrays) == {"x", "ids"} and set(feeds.expected) == {"y"}


def test_an_array_without_a_name_is_for_a_model_with_one_input(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", VALUES)
    given = read_inputs([f"{tmp_path}/x.npy"])
    np.testing.assert_array_equal(feeds_for([X], [Y], given, 0).arrays["x"], VALUES)
    with pytest.raises(InputError, match="the model has 2 inputs: write name=file.npy"):
        feeds_for([X, IDS], [Y], given, 0)


def test_random_inputs_repeat_with_their_seed_and_take_sizes_from_given_arrays() -> None:
    given = GivenArrays(named={"ids": np.zeros(5, np.int64)})
    first, again, other = (feeds_for([X, IDS], [Y], given, seed) for seed in (1, 1, 2))
    assert first.random == ("x",)
    assert first.arrays["x"].shape == (5, 3) and first.arrays["x"].dtype == np.float32
    np.testing.assert_array_equal(first.arrays["x"], again.arrays["x"])
    assert (first.arrays["x"] != other.arrays["x"]).any()


def test_random_wide_integers_are_valid_indices_of_any_table() -> None:
    ids = feeds_for([IDS], [], GivenArrays(), 0, {"batch": 100}).arrays["ids"]
    assert set(ids.tolist()) == {0, 1}


@pytest.mark.parametrize("name", ["bool", "int8", "uint16", "double", "bfloat16", "float8e4m3fn", "int4", "complex64"])
def test_random_values_of_every_kind(name: str) -> None:
    tensor = ModelTensor("v", f"tensor({name})", [64])
    values = feeds_for([tensor], [], GivenArrays(), 0).arrays["v"]
    assert values.dtype == tensor.dtype and len(set(values.tolist())) > 1


def test_a_dimension_without_a_size_says_how_to_give_one() -> None:
    with pytest.raises(InputError) as raised:
        feeds_for([X, ModelTensor("z", "tensor(float)", [None, 2])], [Y], GivenArrays(), 0)
    assert "hint   give --dim batch=1 --shape z=1x2" in str(raised.value)


def test_arrays_that_the_model_has_no_place_for() -> None:
    with pytest.raises(InputError, match=r"the model has no input z; it takes x tensor\(float\)"):
        feeds_for([X], [Y], GivenArrays(named={"z": VALUES}), 0)
    with pytest.raises(InputError, match="the model has 1 input, and none for input_1"):
        feeds_for([X], [Y], GivenArrays(inputs={0: VALUES, 1: VALUES}), 0)


def test_outputs_of_any_name_come_back(tmp_path: Path) -> None:
    outputs = {
        "file": VALUES,
        "/layer/y": np.float32(3),
        "allow_pickle": VALUES.astype(ml_dtypes.bfloat16),
    }
    write_outputs(tmp_path / "out.npz", {name: np.asarray(array) for name, array in outputs.items()})
    tensors = [ModelTensor(n, "tensor(bfloat16)" if "pickle" in n else "tensor(float)", None) for n in outputs]
    back = feeds_for(tensors, [], read_inputs([f"{tmp_path}/out.npz"]), 0).arrays
    assert back["allow_pickle"].dtype == ml_dtypes.bfloat16
    assert back["/layer/y"].shape == ()
    for name, array in outputs.items():
        np.testing.assert_array_equal(back[name], array)


@pytest.mark.parametrize(
    ("content", "name"), [(b"", "a.npy"), (b"not an array", "a.npy"), (b"\xff\xff", "a.pb"), (b"PK\x03\x04", "a.npz")]
)
def test_files_that_are_no_arrays(tmp_path: Path, content: bytes, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match="cannot be read"):
        read_inputs([f"{path}" if path.suffix == ".npz" else f"x={path}"])


def test_pickled_objects_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="cannot be read"):
        read_array(tmp_path / "a.npy")


def test_an_input_that_is_no_file() -> None:
    with pytest.raises(InputError, match="--input nothing: neither a folder"):
        read_inputs(["nothing"])
