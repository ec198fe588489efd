"""Odd numbers through every elementwise operator, against onnxruntime: NaN, infinities, both zeros, subnormal numbers,
the largest and the least. Arrays are long and their ends are odd too, so vector bodies and tails meet each number.

Operations that are exact in IEEE 754 must agree bit for bit, zeros and their signs included; functions as closely as
onnxruntime's are exact.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import onnxla
from onnxla.hlo.types import Array
from tests.frontends.witness import model_of, run_onnxruntime

FLOATS = [np.float32, np.float64, np.float16]
INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
EXACT = ["Abs", "Ceil", "Floor", "Identity", "Neg", "Reciprocal", "Relu", "Round", "Sign", "Sqrt"]
FUNCTIONS = (
    "Acos Acosh Asin Asinh Atan Atanh Celu Cos Cosh Elu Erf Exp Gelu HardSigmoid HardSwish LeakyRelu Log Mish Selu "
    "Shrink Sigmoid Sin Sinh Softplus Softsign Tan Tanh ThresholdedRelu"
).split()
COMPARISONS = ["Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual"]

# onnxruntime's functions lose small results to zero, and differences of numbers near 1: this much is right for both
SMALL = 1e-30
TOLERANCE = {np.float32: 2e-5, np.float64: 1e-10, np.float16: 2e-3}


def floats(dtype: type[np.floating[Any]]) -> Array:
    limits = np.finfo(dtype)
    tiny, least = limits.tiny, limits.smallest_subnormal
    values: list[float] = [
        np.nan,
        np.inf,
        0.0,
        float(least),
        float(tiny / 2),
        float(tiny),
        float(limits.eps),
        1e-3,
        0.25,
        0.5,
        1,
        1.5,
        2.5,
        3,
        10,
        88.5,
        100.5,
    ]
    return np.array([sign * v for v in [*values, float(limits.max)] for sign in (1, -1)], dtype)


def integers(dtype: type[np.integer[Any]]) -> Array:
    limits = np.iinfo(dtype)
    values = [limits.min, limits.min + 1, limits.max, limits.max - 1, limits.max // 2, 0, 1, 2, 3, 5, 7, 8]
    return np.array(values + [-v for v in (1, 2, 3, 7, 8) if limits.min < 0], dtype)


def long(values: Array) -> Array:
    """Each value in several places, one of them among the first and one among the last."""
    return np.concatenate([values, values[::-1], values[:7], values])


def pairs(values: Array) -> tuple[Array, Array]:
    """Every pair of values."""
    return np.tile(values, len(values)), np.repeat(values, len(values))


def both(op_type: str, inputs: Sequence[Array], opset: int = 22, **attributes: Any) -> tuple[Array, Array]:
    """Our result and onnxruntime's, of one node."""
    names = [f"i{k}" for k in range(len(inputs))]
    feeds = dict(zip(names, inputs, strict=True))
    model = model_of([helper.make_node(op_type, names, ["y"], **attributes)], feeds, ["y"], opset=opset)
    compiled = onnxla.compile(model)
    (ours,) = compiled.run(None, feeds)
    code = helper.np_dtype_to_tensor_dtype(ours.dtype)
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", code, None))
    (theirs,) = run_onnxruntime(model, feeds)
    return ours, theirs


def assert_same_bits(ours: Array, theirs: Array) -> None:
    """Equal, zeros by sign, any NaN to any NaN."""
    np.testing.assert_array_equal(ours, theirs)
    if ours.dtype.kind == "f":
        signed = ~np.isnan(theirs)
        np.testing.assert_array_equal(np.signbit(ours)[signed], np.signbit(theirs)[signed])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op_type", EXACT)
def test_exact_functions(op_type: str, dtype: type[np.floating[Any]]) -> None:
    x = long(floats(dtype))
    if (op_type, dtype) == ("Sign", np.float16):
        x = x[~np.isnan(x)]  # of which onnxruntime says 0, in f16 only
    assert_same_bits(*both(op_type, [x]))


IN_DOUBLE = ["Cos", "Exp", "Log", "Shrink", "Sigmoid", "Sin", "Tanh"]
"""The functions that onnxruntime has in f64."""
IN_HALF = [name for name in FUNCTIONS if name not in ("Celu", "ThresholdedRelu")]


@pytest.mark.parametrize(
    ("op_type", "dtype"),
    [(f, np.float32) for f in FUNCTIONS] + [(f, np.float64) for f in IN_DOUBLE] + [(f, np.float16) for f in IN_HALF],
)
def test_functions(op_type: str, dtype: type[np.floating[Any]]) -> None:
    x = long(floats(dtype))
    if (op_type, dtype) == ("Shrink", np.float64):
        x = x[~(np.abs(x) > 1e300) | np.isinf(x)]  # onnxruntime shrinks through f32
    ours, theirs = both(op_type, [x])
    for test in (np.isnan, np.isposinf, np.isneginf):
        np.testing.assert_array_equal(test(ours), test(theirs))
    finite = np.isfinite(theirs)
    a, b = ours[finite].astype(np.float64), theirs[finite].astype(np.float64)
    small = 1e-7 if dtype is np.float16 or op_type in ("Gelu", "Sigmoid") else SMALL  # what onnxruntime loses
    np.testing.assert_allclose(a, b, TOLERANCE[dtype], small)
    signed = (a != 0) & (b != 0)
    np.testing.assert_array_equal(np.signbit(a)[signed], np.signbit(b)[signed])


@pytest.mark.parametrize("op_type", ["Celu", "Selu", "Elu", "Gelu", "Sigmoid", "Tanh", "Erf", "Mish"])
def test_small_arguments_are_not_lost(op_type: str) -> None:
    """Where onnxruntime gives 0 for subnormal arguments and results, the true value is here."""
    x = np.array([-1e-39, 1e-39, -1e-20, -87.9], np.float32)
    ours, _ = both(op_type, [x], opset=22)
    exact, _ = both(op_type, [x.astype(np.float64)]) if op_type in IN_DOUBLE else (_in_double(op_type, x), None)
    np.testing.assert_allclose(ours, exact.astype(np.float32), 1e-5, 3e-45)


def _in_double(op_type: str, x: Array) -> Array:
    model = model_of([helper.make_node(op_type, ["x"], ["y"])], {"x": x.astype(np.float64)}, ["y"], opset=22)
    result: Array = onnxla.compile(model).run(None, {"x": x.astype(np.float64)})[0]
    return result


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op_type", ["Add", "Sub", "Mul", "Div", "Max", "Min"])
def test_arithmetic(op_type: str, dtype: type[np.floating[Any]]) -> None:
    a, b = pairs(floats(dtype))
    if dtype is np.float16 and op_type in ("Max", "Min"):
        either = ~((a == 0) & (b == 0))  # which of two zeros, the standard leaves open
        a, b = a[either], b[either]
    assert_same_bits(*both(op_type, [a, b]))


@pytest.mark.parametrize("dtype", FLOATS)
def test_remainder_and_power(dtype: type[np.floating[Any]]) -> None:
    a, b = pairs(floats(dtype))
    assert_same_bits(*both("Mod", [a, b], fmod=1))
    ours, theirs = both("Pow", [a, b])
    np.testing.assert_allclose(ours, theirs, 2e-3 if dtype is np.float16 else 1e-6, SMALL)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op_type", COMPARISONS)
def test_comparisons(op_type: str, dtype: type[np.floating[Any]]) -> None:
    assert_same_bits(*both(op_type, pairs(floats(dtype))))


@pytest.mark.parametrize("dtype", FLOATS)
def test_kinds_of_numbers(dtype: type[np.floating[Any]]) -> None:
    for op_type in ("IsNaN", "IsInf"):
        assert_same_bits(*both(op_type, [long(floats(dtype))]))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("low", "high"), [(-0.5, 2), (3, -2), (-np.inf, np.inf), (np.nan, 2), (-1, np.nan), (np.nan, np.nan)]
)
def test_clip(low: float, high: float, dtype: type[np.floating[Any]]) -> None:
    """tvm #19533: a bound that is NaN is no bound. NaN stays NaN, and where the bounds cross all is the upper one."""
    x = long(floats(dtype))
    bounds = [np.array(low, dtype), np.array(high, dtype)]
    ours, theirs = both("Clip", [x, *bounds])
    assert_same_bits(ours, theirs)
    node = helper.make_node("Clip", ["x", "low", "high"], ["y"])
    held = dict(zip(("low", "high"), bounds, strict=True))
    (known,) = onnxla.compile(model_of([node], {"x": x}, ["y"], initializers=held)).run(None, {"x": x})
    assert_same_bits(known, theirs)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("code", [TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BOOL])
def test_casts_of_floats(code: int, dtype: type[np.floating[Any]]) -> None:
    assert_same_bits(*both("Cast", [long(floats(dtype))], to=code))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("code", [TensorProto.INT8, TensorProto.UINT8, TensorProto.INT32, TensorProto.INT64])
def test_casts_to_integers_truncate(code: int, dtype: type[np.floating[Any]]) -> None:
    low = 0 if code == TensorProto.UINT8 else -128
    x = np.array([0.0, -0.0, 0.9, -0.9, 1.5, 2.5, 100.99, 127, low], dtype)
    assert_same_bits(*both("Cast", [np.tile(x, 5)], to=code))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_arithmetic_wraps(dtype: type[np.integer[Any]]) -> None:
    a, b = pairs(integers(dtype))
    with np.errstate(all="ignore"):
        for op_type, ufunc in (("Add", np.add), ("Sub", np.subtract), ("Mul", np.multiply)):
            expected = ufunc(a, b)
            np.testing.assert_array_equal(run(op_type, a, b), expected)
        for op_type, extreme in (("Max", np.maximum), ("Min", np.minimum)):
            np.testing.assert_array_equal(run(op_type, a, b), extreme(a, b))


def run(op_type: str, *inputs: Array, opset: int = 22, **attributes: Any) -> Array:
    names = [f"i{k}" for k in range(len(inputs))]
    feeds = dict(zip(names, inputs, strict=True))
    node = helper.make_node(op_type, names, ["y"], **attributes)
    result: Array = onnxla.compile(model_of([node], feeds, ["y"], opset=opset)).run(None, feeds)[0]
    return result


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8, np.uint64])
def test_integer_division(dtype: type[np.integer[Any]]) -> None:
    a, b = pairs(integers(dtype))
    overflows = (a == np.iinfo(dtype).min) & (b == -1) if np.iinfo(dtype).min else np.zeros(a.shape, bool)
    defined = (b != 0) & ~overflows
    a, b = a[defined], b[defined]
    assert_same_bits(*both("Div", [a, b]))
    assert_same_bits(*both("Mod", [a, b]))
    assert_same_bits(*both("Mod", [a, b], fmod=1))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("exponent_dtype", [np.int32, np.int64, np.uint32])
def test_integer_powers_are_exact_and_wrap(dtype: type[np.integer[Any]], exponent_dtype: type[np.integer[Any]]) -> None:
    values, exponents = integers(dtype), np.array([0, 1, 2, 3, 5, 7, 31, 62], exponent_dtype)
    base, exponent = np.tile(values, len(exponents)), np.repeat(exponents, len(values))
    bits = np.iinfo(dtype).bits
    exact = [pow(int(x), int(n), 1 << bits) for x, n in zip(base, exponent, strict=True)]
    wrapped = np.array(exact, np.uint64).astype(f"u{bits // 8}").view(dtype)
    np.testing.assert_array_equal(run("Pow", base, exponent), wrapped)
    for n in (2, 3):  # known while compiling, the same
        node = helper.make_node("Pow", ["x", "n"], ["y"])
        held = {"n": np.array(n, exponent_dtype)}
        (known,) = onnxla.compile(model_of([node], {"x": base}, ["y"], initializers=held)).run(None, {"x": base})
        np.testing.assert_array_equal(known[exponent == n], wrapped[exponent == n])


def test_negative_powers_of_integers_truncate() -> None:
    base, exponent = np.array([1, -1, -1, 2, -3], np.int64), np.array([-5, -5, -4, -1, -2], np.int64)
    assert run("Pow", base, exponent).tolist() == [1, -1, 1, 0, 0]


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("op_type", COMPARISONS)
def test_integer_comparisons(op_type: str, dtype: type[np.integer[Any]]) -> None:
    a, b = pairs(integers(dtype))
    expected = {
        "Equal": np.equal,
        "Greater": np.greater,
        "Less": np.less,
        "GreaterOrEqual": np.greater_equal,
        "LessOrEqual": np.less_equal,
    }[op_type](a, b)
    np.testing.assert_array_equal(run(op_type, a, b), expected)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_functions(dtype: type[np.integer[Any]]) -> None:
    x = long(integers(dtype))
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(run("Abs", x), np.abs(x))
        np.testing.assert_array_equal(run("Sign", x), np.sign(x))
        np.testing.assert_array_equal(run("BitwiseNot", x), ~x)
        if np.iinfo(dtype).min:
            np.testing.assert_array_equal(run("Neg", x), -x)
            np.testing.assert_array_equal(run("Relu", x), np.maximum(x, dtype(0)))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_bits(dtype: type[np.integer[Any]]) -> None:
    a, b = pairs(integers(dtype))
    np.testing.assert_array_equal(run("BitwiseAnd", a, b), a & b)
    np.testing.assert_array_equal(run("BitwiseOr", a, b), a | b)
    np.testing.assert_array_equal(run("BitwiseXor", a, b), a ^ b)
    if np.iinfo(dtype).min == 0:
        shift = b % np.array(np.iinfo(dtype).bits, dtype)
        np.testing.assert_array_equal(run("BitShift", a, shift, direction="LEFT"), a << shift)
        np.testing.assert_array_equal(run("BitShift", a, shift, direction="RIGHT"), a >> shift)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_casts_of_integers(dtype: type[np.integer[Any]]) -> None:
    x = long(integers(dtype))
    for code in (
        TensorProto.INT8,
        TensorProto.UINT16,
        TensorProto.INT32,
        TensorProto.UINT64,
        TensorProto.FLOAT,
        TensorProto.DOUBLE,
        TensorProto.BOOL,
    ):
        assert_same_bits(*both("Cast", [x], to=code))
