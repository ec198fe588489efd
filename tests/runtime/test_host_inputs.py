"""Inputs that native code does not take: known values are compared bit for bit, strings become places."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from onnxla.errors import InputError
from onnxla.runtime.host_inputs import HostInputs
from onnxla.runtime.model import CompiledModel
from onnxla.runtime.program import Program
from onnxla.runtime.signature import ModelSignature, ModelTensor
from onnxla.runtime.tensors import Array, TensorSignature
from tests.runtime.hand_written import expected, scale_and_add

X = np.arange(32, dtype=np.float32).reshape(2, 16)
WORDS = np.array([["b", "z"], ["a", "b"]], object)


def made_for(**constants: Any) -> Program:
    return replace(scale_and_add(2), constants={name: np.asarray(value) for name, value in constants.items()})


@pytest.mark.parametrize(
    ("value", "same"),
    [
        (np.array([4.0, np.nan]), True),
        (np.array([9.0, 4.0, 9.0, np.nan])[1::2], True),
        (np.array([4.0, np.nan], ">f8"), False),  # takes a closer look
        (np.array([4.0, np.nan], np.float32), False),
        (np.array([4.0, 0.0]), False),
        (np.array([[4.0, np.nan]]), False),
        ([4.0, np.nan], False),
    ],
    ids=["equal", "strided", "big-endian", "float32", "other value", "other shape", "list"],
)
def test_a_known_value_is_left_out_where_it_is_the_same(value: Any, same: bool) -> None:
    host = HostInputs(made_for(n=[4.0, np.nan]), ["n", "x"])
    native = host.native([value, X])
    assert (native is not None) == same
    assert native is None or (len(native) == 1 and native[0] is X)


def test_zeros_of_another_sign_are_another_value() -> None:
    assert HostInputs(made_for(n=0.0), ["x", "n"]).native([X, np.array(-0.0)]) is None


@pytest.mark.parametrize(
    ("value", "same"),
    [
        (np.array(["a", "bc"]), True),
        (np.array(["a", "bc"], object), True),
        (np.array([b"a", b"bc"]), False),  # takes a closer look
        (np.array(["a", "b"]), False),
        (np.array(["a", np.zeros(2)], object), False),
    ],
)
def test_known_strings(value: Any, same: bool) -> None:
    host = HostInputs(made_for(s=np.array(["a", "bc"], object)), ["x", "s"])
    assert (host.native([X, value]) is not None) == same


def test_an_input_that_is_neither_taken_nor_known_takes_a_closer_look() -> None:
    assert HostInputs(made_for(n=1), ["x", "n", "unused"]).native([X, np.array(1), X]) is None


def with_words() -> HostInputs:
    words = TensorSignature("w", "s64", (2, 2))
    program = scale_and_add(2)
    program = replace(program, inputs=(*program.inputs, words), vocabularies={"w": ("a", "b")})
    return HostInputs(program, ["w", "x"])


@pytest.mark.parametrize("dtype", [object, "U", "S"])
def test_strings_become_places(dtype: Any) -> None:
    native = with_words().native([WORDS.astype(dtype), X])
    assert native is not None
    assert native[0] is X
    np.testing.assert_array_equal(native[1], [[1, 2], [0, 1]])
    assert native[1].dtype == np.int64
    np.testing.assert_array_equal(with_words().with_places([X, WORDS.tolist()])[1], native[1])


def test_what_is_no_text_is_refused() -> None:
    assert with_words().native([np.zeros((2, 2)), X]) is None
    with pytest.raises(InputError, match="w: dtype float64, the model takes strings"):
        with_words().with_places([X, np.zeros((2, 2))])


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(InputError, match="w: bytes that are no text in UTF-8"):
        with_words().with_places([X, np.full((2, 2), b"\xff")])


def test_strings_and_tensors_that_do_not_fit_are_in_one_report() -> None:
    signature = ModelSignature(
        (ModelTensor("w", "tensor(string)", [2]), ModelTensor("x", "tensor(float)", [2, 16])),
        (ModelTensor("y", "tensor(float)", [2, 16]),),
    )
    with pytest.raises(InputError) as caught:
        CompiledModel(signature, [], specialise=lambda arrays: scale_and_add(2)).run(
            None, {"w": np.zeros(2), "x": X[:1]}
        )
    assert str(caught.value).splitlines() == [
        "w: dtype float64, the model takes strings",
        "x: shape [1, 16], the model takes x tensor(float)[2,16]",
    ]


def test_code_is_made_for_each_value_once() -> None:
    made: list[float] = []

    def specialise(arrays: Mapping[str, Array]) -> Program:
        made.append(float(arrays["n"]))
        return made_for(n=arrays["n"])

    signature = ModelSignature(
        (ModelTensor("n", "tensor(double)", []), ModelTensor("x", "tensor(float)", [2, 16])),
        (ModelTensor("y", "tensor(float)", [2, 16]),),
    )
    model = CompiledModel(signature, [], specialise=specialise)
    for n in (np.array(1.0), np.array(-0.0), 1.0, np.array(0.0), np.array(1.0), np.array(1.0, ">f8")):
        np.testing.assert_array_equal(model.run(None, {"x": X, "n": n})[0], expected(X, 2))
    assert [str(n) for n in made] == ["1.0", "-0.0", "0.0"]
    with pytest.raises(InputError) as caught:
        model.run(None, {"x": X[:1].astype(np.float64), "n": np.array(1)})
    assert str(caught.value).splitlines() == [
        "n: dtype int64, the model takes float64",
        "x: dtype float64, the model takes float32",
    ]
