"""Reported trouble: NaN, infinities, signed zeros and integer extremes, in vector bodies and in what is left over.

Lengths around the width of vectors put the odd value into every place that code treats on its own.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from onnx import helper

import onnxla
from onnxla.hlo.types import Array
from tests.frontends.witness import model_of, run_onnxruntime

LENGTHS = [1, 3, 7, 8, 9, 16, 17, 31, 33, 70]
PLACES = ["first", "last", "middle", "all"]


def with_value(length: int, place: str, value: float, dtype: npt.DTypeLike = np.float32) -> Array:
    """Numbers from -1 to 1 with `value` somewhere."""
    x = np.linspace(-1, 1, length).astype(dtype)
    x[
        {"first": slice(0, 1), "last": slice(-1, None), "middle": slice(length // 2, length // 2 + 1)}.get(
            place, slice(None)
        )
    ] = value
    return x


def run_node(op_type: str, *inputs: Array | None, opset: int = 20, **attributes: Any) -> Array:
    """The first output of one node, compiled; inputs arrive at run time, those with fixed names as constants."""
    names = [f"i{k}" if value is not None else "" for k, value in enumerate(inputs)]
    node = helper.make_node(op_type, names, ["y"], **attributes)
    feeds = {n: v for n, v in zip(names, inputs, strict=True) if v is not None}
    result: Array = onnxla.compile(model_of([node], feeds, ["y"], opset=opset)).run(None, feeds)[0]
    return result


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("op_type", ["ReduceMax", "ReduceMin", "ReduceSum", "ReduceL2", "ReduceProd"])
def test_one_nan_makes_a_reduction_nan(op_type: str, place: str, length: int) -> None:
    """onnxruntime #10514: ReduceMax depends on how many NaNs there are, and where."""
    x = with_value(length, place, np.nan)
    assert np.isnan(run_node(op_type, x, opset=17))
    columns = np.stack([x, np.zeros_like(x)], axis=1)
    reduced = run_node(op_type, columns, opset=11, axes=[0], keepdims=0)
    assert np.isnan(reduced[0]) and reduced[1] == 0


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("op_type", ["Max", "Min"])
def test_max_and_min_keep_nan_of_either_side(op_type: str, length: int) -> None:
    """onnxruntime #21455: NaN is lost where the second input has one element. tvm #19579: x86's max drops one side."""
    x = with_value(length, "last", np.nan)
    for other in (np.array([0.5], np.float32), np.full(length, 0.5, np.float32)):
        expected = np.maximum(x, other) if op_type == "Max" else np.minimum(x, other)
        np.testing.assert_array_equal(run_node(op_type, x, other), expected)
        np.testing.assert_array_equal(run_node(op_type, other, x), expected)
    nan = np.array([np.nan], np.float32)
    assert np.isnan(run_node(op_type, np.zeros(length, np.float32), nan)).all()


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("op_type", ["Relu", "LeakyRelu", "Elu", "HardSigmoid", "Sigmoid", "Tanh", "Softplus", "Abs"])
def test_activations_keep_nan(op_type: str, length: int) -> None:
    """tvm #19579: relu and clip drop NaN."""
    x = with_value(length, "last", np.nan)
    y = run_node(op_type, x)
    np.testing.assert_array_equal(np.isnan(y), np.isnan(x))


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_clip_keeps_nan(length: int, dtype: type[np.generic]) -> None:
    """onnx #6003, TensorRT #4773: Clip gives the lower bound for NaN."""
    x = with_value(length, "last", np.nan, dtype)
    y = run_node("Clip", x, np.array(-0.5, dtype), np.array(0.5, dtype))
    np.testing.assert_array_equal(y, np.clip(x, dtype(-0.5), dtype(0.5)))


@pytest.mark.parametrize("value", [np.inf, -np.inf, -0.0, 1e-42])
@pytest.mark.parametrize("op_type", ["Relu", "Neg", "Abs", "Sqrt", "Reciprocal", "Exp", "Floor", "Round"])
def test_odd_values_as_onnxruntime(op_type: str, value: float) -> None:
    """Infinities, minus zero and denormals, in body and tail."""
    for length in (1, 8, 19):
        x = with_value(length, "all", value)
        node = helper.make_node(op_type, ["x"], ["y"])
        model = model_of([node], {"x": x}, {"y": 1}, opset=17)
        (expected,), (y,) = run_onnxruntime(model, {"x": x}), onnxla.compile(model).run(None, {"x": x})
        np.testing.assert_allclose(y, expected, rtol=1e-6, atol=0)
        np.testing.assert_array_equal(np.signbit(y), np.signbit(expected))


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8])
def test_integers_wrap(dtype: type[np.integer[Any]]) -> None:
    """The standard's integers have no traps: the largest plus one is the least."""
    limits = np.iinfo(dtype)
    x = np.full(19, limits.max, dtype)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(run_node("Add", x, np.ones(19, dtype)), x + np.ones(19, dtype))
        np.testing.assert_array_equal(run_node("Mul", x, x), x * x)


def test_integer_zero_stays_zero() -> None:
    """tvm #17835: the default pipeline turns an integer 0 into -1."""
    x = np.array([0, 1, -1, 5, -5, 0, 0, 7, -8], np.int32)
    np.testing.assert_array_equal(run_node("Div", x, np.full(9, 3, np.int32)), np.trunc(x / 3).astype(np.int32))
    np.testing.assert_array_equal(run_node("Mod", x, np.full(9, 3, np.int32)), np.mod(x, 3))


def test_hyperbolic_chain_in_double() -> None:
    """tensorflow #58752: cosh of cosh then tan, in f64."""
    x = np.linspace(-1, 1, 21)
    nodes = [
        helper.make_node("Cosh", ["x"], ["a"]),
        helper.make_node("Cosh", ["a"], ["b"]),
        helper.make_node("Tan", ["b"], ["y"]),
    ]
    (y,) = onnxla.compile(model_of(nodes, {"x": x}, ["y"])).run(None, {"x": x})
    np.testing.assert_allclose(y, np.tan(np.cosh(np.cosh(x))), rtol=1e-11)


def test_softmax_of_infinite_and_masked_rows() -> None:
    """Half-precision attention: rows of -inf but one, and rows of very large scores."""
    x = np.full((3, 19), -np.inf, np.float32)
    x[0, 3], x[1], x[2] = 1, 60000, np.linspace(-60000, 60000, 19)
    y = run_node("Softmax", x, axis=-1)
    np.testing.assert_allclose(y.sum(axis=1), 1, rtol=1e-6)
    assert y[0, 3] == 1 and np.isfinite(y).all()


def test_single_values_beside_infinite_and_undefined_constants() -> None:
    """What a kernel costs was counted with int(inf), which ended the compile."""
    for name in ("inf", "-inf", "nan"):
        text = (
            f"HloModule m\nENTRY main {{\n  %x = f32[] parameter(0)\n  %c = f32[] constant({name})\n"
            "  %p = pred[] compare(%x, %c), direction=EQ\n  %z = f32[] constant(0)\n"
            "  ROOT %r = f32[] select(%p, %z, %x)\n}\n"
        )
        model = onnxla.compile(text)
        value = np.float32(name)
        assert model(np.float32(2)) == 2
        assert np.array_equal(model(value), np.float32(0) if name != "nan" else value, equal_nan=True)
