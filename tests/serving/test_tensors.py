"""Tensors on the wire: what goes in comes out, and what does not fit is refused with its name."""

import json
import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from onnxla.serving.errors import InvalidRequestError, UnsupportedRequestError
from onnxla.serving.tensors import DTYPES, MAX_STRINGS, datatype_of, from_json, from_raw, to_json, to_raw

NUMBERS = [name for name in DTYPES if name != "BYTES"]


def example(datatype: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    count = math.prod(shape)
    dtype = DTYPES[datatype]
    if datatype == "BYTES":
        return np.array([b"a\x00b" * (i % 3) for i in range(count)] + [b""], object)[:count].reshape(shape)
    if dtype.kind in "iu":
        ends = np.iinfo(dtype)
        return np.array([ends.min, ends.max, 1, 0] * (count // 4 + 1), dtype)[:count].reshape(shape)
    return (np.arange(count) % 7 - 3).astype(dtype).reshape(shape)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 3), (3, 0, 2), (2, 1, 5)])
@pytest.mark.parametrize("datatype", DTYPES)
def test_bytes_come_back(datatype: str, shape: tuple[int, ...]) -> None:
    array = example(datatype, shape)
    back = from_raw("x", datatype, list(shape), bytes(to_raw(array)))
    assert back.dtype == array.dtype and back.shape == shape
    np.testing.assert_array_equal(back, array)
    assert datatype_of(back.dtype) == datatype


@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 3), (3, 0, 2), (2, 1, 5)])
@pytest.mark.parametrize("datatype", DTYPES)
def test_json_comes_back(datatype: str, shape: tuple[int, ...]) -> None:
    array = example(datatype, shape)
    if datatype == "BYTES":
        array = np.array([str(i) for i in range(math.prod(shape))] + [None], object)[:-1].reshape(shape)
    data = json.loads(json.dumps(to_json("x", array)))
    flat = from_json("x", datatype, list(shape), data)
    nested = from_json("x", datatype, list(shape), np.array(data, object).reshape(shape).tolist() if shape else data)
    expected = array if datatype != "BYTES" else np.array([t.encode() for t in array.ravel()], object).reshape(shape)
    for back in (flat, nested):
        assert back.dtype == array.dtype and back.shape == shape
        np.testing.assert_array_equal(back, expected)


@given(array=hnp.arrays(np.float32, hnp.array_shapes(max_dims=3, max_side=4)))
@settings(max_examples=60, deadline=None)
def test_every_float_comes_back_through_json(array: np.ndarray[Any, Any]) -> None:
    """NaN and infinity included: as Python's and Triton's JSON have them."""
    back = from_json("x", "FP32", list(array.shape), json.loads(json.dumps(to_json("x", array))))
    np.testing.assert_array_equal(back, array)


@given(texts=st.lists(st.binary(max_size=9), max_size=6))
@settings(max_examples=60, deadline=None)
def test_every_string_comes_back(texts: list[bytes]) -> None:
    array = np.empty(len(texts), object)
    array[:] = texts
    assert from_raw("x", "BYTES", [len(texts)], bytes(to_raw(array))).tolist() == texts


def test_half_precision_is_a_number_in_json() -> None:
    for dtype in (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)):
        assert to_json("x", np.array([1.5, -2], dtype)) == [1.5, -2.0]


def test_a_byte_is_true_unless_zero() -> None:
    back = from_raw("x", "BOOL", [4], b"\x00\x01\x02\xff")
    assert back.view(np.uint8).tolist() == [0, 1, 1, 1]


def test_an_odd_place_in_memory_is_no_problem() -> None:
    data = b"?" + np.arange(3, dtype=np.float64).tobytes()
    back = from_raw("x", "FP64", [3], memoryview(data)[1:])
    assert back.flags.aligned and back.tolist() == [0, 1, 2]


WRONG_TYPES: list[tuple[Any, Any, str]] = [
    ("FP31", [1], "input 'x': datatype 'FP31' is not one of BOOL, UINT8"),
    (None, [1], "input 'x': datatype None is not one of"),
    ("FP32", None, "input 'x': shape None is not a list of whole numbers"),
    ("FP32", [1.0], "input 'x': shape [1.0] is not a list of whole numbers"),
    ("FP32", [True], "input 'x': shape [True] is not a list of whole numbers"),
    ("FP32", [-1], "input 'x': shape [-1] has a negative size: a request names the size of every dimension"),
    ("FP32", [2**40, 2**40], "has more elements than can be addressed"),
    ("FP32", [0, 10**40], "has more elements than can be addressed"),
    ("FP32", [1] * 33, "33 dimensions are more than 32"),
    ("BYTES", [MAX_STRINGS + 1], f"{MAX_STRINGS + 1} strings are more than {MAX_STRINGS}"),
    ("X", "y", "datatype 'X' is not one of"),
]


@pytest.mark.parametrize(("datatype", "shape", "text"), WRONG_TYPES)
def test_types_that_are_none(datatype: object, shape: object, text: str) -> None:
    with pytest.raises(InvalidRequestError) as raw:
        from_raw("x", datatype, shape, b"")
    with pytest.raises(InvalidRequestError) as listed:
        from_json("x", datatype, shape, [])
    assert text in str(raw.value) and text in str(listed.value)


def test_all_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(InvalidRequestError) as found:
        from_raw("x", "X", [-1], b"")
    assert "datatype 'X'" in str(found.value) and "negative" in str(found.value)


@pytest.mark.parametrize(
    ("datatype", "shape", "data", "text"),
    [
        ("FP32", [2], b"1234567", "FP32 of shape [2] takes 8 bytes, and 7 were sent"),
        ("FP32", [], b"", "FP32 of shape [] takes 4 bytes, and 0 were sent"),
        ("BYTES", [1], b"\x05\x00\x00\x00abcd", "string 0 has 5 bytes by its length, and 4 are left"),
        ("BYTES", [1], b"\xff\xff\xff\xff", "string 0 has 4294967295 bytes by its length, and 0 are left"),
        ("BYTES", [1], b"\x00\x00", "the length of string 0 takes 4 bytes, and 2 are left"),
        ("BYTES", [1], bytes(8), "BYTES of shape [1] are 1 strings, and more were sent"),
        ("BYTES", [3], bytes(8), "BYTES of shape [3] are 3 strings, and 2 were sent"),
    ],
)
def test_bytes_that_do_not_fit(datatype: str, shape: list[int], data: bytes, text: str) -> None:
    with pytest.raises(InvalidRequestError) as found:
        from_raw("x", datatype, shape, data)
    assert str(found.value) == f"input 'x': {text}"


@pytest.mark.parametrize(
    ("datatype", "shape", "data", "text"),
    [
        ("FP32", [2], [1], "shape [2] has 2 elements, and data has 1"),
        ("FP32", [2], None, "data is not a list but None"),
        ("FP32", [2], [1, "2"], "FP32 takes numbers, and '2' is among its data"),
        ("FP32", [2], [1, True], "FP32 takes numbers, and True is among its data"),
        ("FP32", [1], [1e39], "FP32 cannot hold a number among its data: it is out of range"),
        ("FP16", [1], [70000], "FP16 cannot hold a number among its data: it is out of range"),
        ("FP64", [1], [10**400], "FP64 cannot hold a number among its data: it is out of range"),
        ("INT8", [1], [128], "INT8 cannot hold a number among its data: it is out of range"),
        ("UINT64", [1], [-1], "UINT64 cannot hold a number among its data: it is out of range"),
        (
            "FP32",
            [5],
            [float("inf"), float("nan"), "a", None, True],
            "FP32 takes numbers, and 'a', None, True are among its data",
        ),
        ("FP32", [7], ["a"] * 7, "FP32 takes numbers, and 'a', 'a', 'a', 'a', 'a' and 2 more are among its data"),
        ("INT32", [1], [1.0], "INT32 takes whole numbers, and 1.0 is among its data"),
        ("INT64", [1], [True], "INT64 takes whole numbers, and True is among its data"),
        ("BOOL", [1], [1], "BOOL takes true or false, and 1 is among its data"),
        ("BYTES", [1], [1], "BYTES takes strings, and 1 is among its data"),
        ("FP32", [2, 2], [[1, 2], [3]], "nested data do not have shape [2, 2]: dimension 1 differs"),
        ("FP32", [2, 2], [[1, 2], 3], "nested data do not have shape [2, 2]: dimension 1 differs"),
        ("FP32", [2, 2], [[1, 2]], "nested data do not have shape [2, 2]: dimension 0 differs"),
        ("FP32", [2], [[1], [2]], "FP32 takes numbers, and [1], [2] are among its data"),
        ("FP32", [2, 1], [1, [2]], "FP32 takes numbers, and [2] is among its data"),
    ],
)
def test_json_that_does_not_fit(datatype: str, shape: list[int], data: object, text: str) -> None:
    with pytest.raises(InvalidRequestError) as found:
        from_json("x", datatype, shape, data)
    assert str(found.value) == f"input 'x': {text}"


def test_outputs_without_a_datatype_are_refused() -> None:
    with pytest.raises(UnsupportedRequestError, match="tensor 'y' is of type complex64"):
        datatype_of(np.dtype(np.complex64), "y")
    with pytest.raises(InvalidRequestError, match="ask for it with binary_data"):
        to_json("y", np.array([b"\xff"], object))
