"""Arithmetic, comparison, bit and cast operators against onnxruntime, on edge values and with broadcasting."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper

from onnxla.frontends.onnx.importer import import_model
from onnxla.hlo.types import Array
from tests.frontends.rules.one_node import check_node, given, normal
from tests.frontends.witness import check_against_onnxruntime, model_of, run_imported

EDGES = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e-40, 3e38, -3e38, 88.9], np.float32)


@pytest.mark.parametrize(
    "op_type",
    "Abs Neg Ceil Floor Round Exp Log Sqrt Reciprocal Sign Erf Sin Cos Tan Asin Acos Atan Sinh Cosh Asinh Acosh Atanh "
    "Tanh Sigmoid Relu IsNaN IsInf".split(),
)
def test_unary_on_edge_values(op_type: str) -> None:
    check_node(op_type, EDGES if op_type not in ("Sin", "Cos", "Tan") else EDGES[3:9], rtol=2e-5)


@pytest.mark.parametrize("op_type", "Add Sub Mul Div Max Min Pow Greater Less Equal GreaterOrEqual LessOrEqual".split())
def test_binary_on_all_pairs_of_edge_values(op_type: str) -> None:
    check_node(op_type, EDGES[:, None], EDGES[None, :])


@pytest.mark.parametrize("op_type", ["Add", "Mul", "Less", "And", "Equal"])
@pytest.mark.parametrize(
    "shapes", [((2, 3, 4), (4,)), ((3, 1), (1, 4)), ((), (2, 2)), ((2, 1, 1), (3, 1)), ((0, 3), (1, 3)), ((1,), (0,))]
)
def test_broadcasting(op_type: str, shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    x, y = normal(*shapes[0]), normal(*shapes[1], seed=1)
    check_node(op_type, *((x > 0, y > 0) if op_type == "And" else (x, y)))


@pytest.mark.parametrize("op_type", ["Add", "Sub", "Mul", "Div", "Pow", "And", "Less"])
@pytest.mark.parametrize(
    ("shape", "other", "axis"), [((2, 3, 4), (3, 4), None), ((2, 3, 4), (2, 3), 0), ((2, 3, 4), (3,), 1)]
)
def test_broadcasting_from_an_axis_before_opset_7(
    op_type: str, shape: tuple[int, ...], other: tuple[int, ...], axis: int | None
) -> None:
    x, y = np.abs(normal(*shape)) + 0.5, np.abs(normal(*other, seed=1)) + 0.5
    operands = (x > 1, y > 1) if op_type == "And" else (x, y)
    attributes = given(axis=axis)
    names = ("x", "y")
    node = helper.make_node(op_type, names, ["z"], broadcast=1, **attributes)
    model = model_of([node], dict(zip(names, operands, strict=True)), ["z"], opset=6)
    (result,) = run_imported(import_model(model), dict(zip(names, operands, strict=True)))
    start = len(shape) - len(other) if axis is None else axis
    stretched = operands[1].reshape(other + (1,) * (len(shape) - start - len(other)))
    numpy_op: dict[str, Any] = {
        "Add": np.add,
        "Sub": np.subtract,
        "Mul": np.multiply,
        "Div": np.divide,
        "Pow": np.power,
    }
    numpy_op |= {"And": np.logical_and, "Less": np.less}
    np.testing.assert_allclose(result, numpy_op[op_type](operands[0], stretched), rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("op_type", ["Add", "Sub", "Mul", "Div", "Max", "Min", "Mod", "Pow"])
def test_signed_integers(op_type: str, dtype: type[np.generic]) -> None:
    x = np.array([7, -7, 7, -7, 0, 100], dtype)
    check_node(op_type, x, np.array([2, 2, -3, -3, 5, 3], dtype))


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16, np.uint16, np.uint32, np.uint64])
@pytest.mark.parametrize("fmod", [0, 1])
def test_remainder_of_integers(dtype: type[np.generic], fmod: int) -> None:
    bounds = np.iinfo(np.dtype(dtype).name)
    check_node("Mod", np.array([7, 9, bounds.max, bounds.min], dtype), np.array([3, 5, 7, 2], dtype), fmod=fmod)


def test_remainder_of_floats_takes_the_dividends_sign() -> None:
    x, y = np.array([5.5, -5.5, 5.5, -5.5], np.float32), np.array([2, 2, -2, -2], np.float32)
    check_node("Mod", x, y, fmod=1)


@pytest.mark.parametrize("exponent", [2, 3, 0.5, -1, 0])
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int32, np.float64])
def test_power_by_a_known_number(exponent: float, dtype: type[np.generic]) -> None:
    check_node("Pow", np.abs(normal(3, 4)), np.array(exponent, dtype), constant=[1])


def test_power_keeps_the_type_of_the_base() -> None:
    check_node("Pow", np.array([2, 3, -2], np.int32), np.array([0.5, 1.5, 3], np.float32))
    check_node("Pow", np.array([2, 3, -2], np.float32), np.array([-1, 3, 3], np.int64))


@pytest.mark.parametrize("op_type", ["Max", "Min", "Sum", "Mean"])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_many_operands(op_type: str, count: int) -> None:
    check_node(op_type, *(normal(*shape, seed=i) for i, shape in enumerate([(2, 3), (3,), (1, 1), (2, 1)][:count])))


@pytest.mark.parametrize("bounds", [(None, None), (-0.5, None), (None, 0.5), (-0.5, 0.5), (0.5, -0.5)])
def test_clip(bounds: tuple[float | None, float | None]) -> None:
    low, high = (None if v is None else np.array(v, np.float32) for v in bounds)
    check_node("Clip", EDGES, low, high)
    if bounds != (0.5, -0.5):
        check_node("Clip", EDGES[1:], opset=6, **given(min=bounds[0], max=bounds[1]))


def test_clip_of_integers() -> None:
    check_node("Clip", np.arange(-5, 6, dtype=np.int32), np.array(-2, np.int32), np.array(3, np.int32))


def test_bit_shifts_past_the_width_give_zero() -> None:
    x, y = np.array([255, 1, 128], np.uint8), np.array([1, 7, 9], np.uint8)
    for direction in ("LEFT", "RIGHT"):
        check_node("BitShift", x, y, direction=direction)


@pytest.mark.parametrize("op_type", ["BitwiseAnd", "BitwiseOr", "BitwiseXor"])
def test_bitwise(op_type: str) -> None:
    check_node(op_type, np.array([-1, 12, 7], np.int32), np.array([[10], [-4]], np.int32))


@pytest.mark.parametrize("op_type", ["And", "Or", "Xor"])
def test_boolean(op_type: str) -> None:
    check_node(op_type, np.array([True, False]), np.array([[True], [False]]))


def test_not() -> None:
    check_node("Not", np.array([True, False]))
    check_node("BitwiseNot", np.array([0, -1, 5], np.int32))


def test_where_broadcasts_all_three() -> None:
    check_node("Where", np.array([[True], [False]]), normal(1, 3), normal(2, 1, seed=1))


@pytest.mark.parametrize("signs", [(1, 1), (0, 1), (1, 0), (0, 0)])
def test_is_inf(signs: tuple[int, int]) -> None:
    check_node("IsInf", EDGES, detect_positive=signs[0], detect_negative=signs[1])


NUMBERS = np.array([0, 1, -1, 1.5, -2.5, 100.25, 200, -0.0], np.float32)
CASTS = [np.bool_, np.int8, np.uint8, np.int16, np.int32, np.int64, np.float16, np.float32, np.float64]


@pytest.mark.parametrize("target", [*CASTS, ml_dtypes.bfloat16])
@pytest.mark.parametrize("source", CASTS)
def test_cast(source: type[np.generic], target: type[np.generic]) -> None:
    numbers = np.abs(NUMBERS) if np.dtype(source).kind == "u" or np.dtype(target).kind == "u" else NUMBERS
    if target is np.int8:
        numbers = np.clip(numbers, -128, 127)
    code = helper.np_dtype_to_tensor_dtype(np.dtype(target))
    if target is ml_dtypes.bfloat16:
        twice = [helper.make_node("Cast", ["x"], ["y"], to=code), helper.make_node("Cast", ["y"], ["z"], to=1)]
        check_against_onnxruntime(model_of(twice, {"x": numbers.astype(source)}, ["z"]), {"x": numbers.astype(source)})
    else:
        check_node("Cast", numbers.astype(source), to=code)


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("name", ["FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ"])
def test_cast_to_float8(name: str, saturate: int) -> None:
    x = np.concatenate([EDGES, np.array([447, 448, 449, 464, 465, 57344, 66000, 239, 248, 1e-9], np.float32)])
    code = TensorProto.DataType.Value(name)
    twice = [
        helper.make_node("Cast", ["x"], ["y"], to=code, saturate=saturate),
        helper.make_node("Cast", ["y"], ["z"], to=TensorProto.FLOAT),
    ]
    check_against_onnxruntime(model_of(twice, {"x": x}, ["z"]), {"x": x})


@pytest.mark.parametrize("name", ["INT4", "UINT4"])
def test_cast_of_floats_to_4_bits_rounds_and_wraps(name: str) -> None:
    x = np.array([-9, -8.6, -8, -1.5, -0.5, 0.5, 0.6, 1.5, 2.5, 7.4, 7.6, 9, 17, 20, -20], np.float32)
    code = TensorProto.DataType.Value(name)
    twice = [helper.make_node("Cast", ["x"], ["y"], to=code), helper.make_node("Cast", ["y"], ["z"], to=7)]
    check_against_onnxruntime(model_of(twice, {"x": x}, ["z"]), {"x": x})


def test_cast_like() -> None:
    check_node("CastLike", NUMBERS, np.zeros(1, np.int64))


def half(values: Array) -> Array:
    return values.astype(np.float16)


@pytest.mark.parametrize("op_type", ["Add", "Mul", "Div", "Sub", "Max"])
def test_half_precision_rounds_each_operation(op_type: str) -> None:
    check_node(op_type, half(normal(50)), half(normal(50, seed=1)), rtol=0, atol=0)
