"""What single operations promise where numpy would do otherwise, and how they refuse what does not fit."""

import math
from collections.abc import Callable

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from onnxla.errors import HloError
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.op import OPS
from onnxla.hlo.ops.contraction import ConvolutionDimensions, Window
from onnxla.hlo.ops.elementwise import Convert
from onnxla.hlo.ops.linear_algebra import Cholesky
from onnxla.hlo.ops.reduction import identity_of, simple_combiner
from onnxla.hlo.types import (
    BF16,
    ELEMENT_TYPES,
    F8E4M3FN,
    F16,
    F32,
    PRED,
    S4,
    S8,
    S32,
    U8,
    U32,
    Array,
    ElementType,
    TensorType,
    element_of,
)
from tests.hlo.case import edges, random


def apply(opcode: str, *operands: Array) -> Array:
    result: Array = OPS[opcode]().evaluate(*operands)
    return result


@pytest.mark.parametrize("opcode", ["maximum", "minimum"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_nan_on_either_side_stays(opcode: str, dtype: npt.DTypeLike) -> None:
    x, nan = (np.array(row).astype(dtype) for row in ([1.0, np.inf], [np.nan, np.nan]))
    assert np.isnan(apply(opcode, x, nan)).all()
    assert np.isnan(apply(opcode, nan, x)).all()


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, ml_dtypes.int4])
def test_signed_division_has_no_trap(dtype: npt.DTypeLike) -> None:
    low = -(1 << (element_of(dtype).bits - 1))
    lhs, rhs = (np.array(row).astype(dtype) for row in ([5, -5, low, -7], [0, 0, -1, 2]))
    assert apply("divide", lhs, rhs).astype(np.int64).tolist() == [-1, -1, low, -3]
    assert apply("remainder", lhs, rhs).astype(np.int64).tolist() == [5, -5, 0, -1]


def test_unsigned_division_by_zero_has_all_bits_set() -> None:
    assert apply("divide", np.array([7], np.uint8), np.array([0], np.uint8)) == [255]


def test_shifts_beyond_the_width() -> None:
    x, far = np.array([-5, 5], np.int32), np.array([32, -1], np.int32)
    assert apply("shift-left", x, far).tolist() == [0, 0]
    assert apply("shift-right-logical", x, far).tolist() == [0, 0]
    assert apply("shift-right-arithmetic", x, far).tolist() == [-1, 0]


def test_floats_become_integers_towards_zero_saturating() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 1e30, -2.9, 2.9, 200.0], np.float32)
    assert Convert(S8).evaluate(x).tolist() == [0, 127, -128, 127, -2, 2, 127]
    assert Convert(U8).evaluate(x).tolist() == [0, 255, 0, 255, 0, 2, 200]
    assert Convert(S4).evaluate(x).astype(np.int8).tolist() == [0, 7, -8, 7, -2, 2, 7]


def test_a_long_sum_of_halves_is_taken_in_single() -> None:
    b = Builder()
    x = b.parameter(TensorType(F16, (4096,)))
    total = b.build(b.reduce_by("add", x, [0])).evaluate(np.full(4096, 0.5, np.float16))
    assert total.dtype == np.float16 and total == 2048


def test_a_long_sum_along_the_first_dimension_keeps_its_digits() -> None:
    x = random(F32, (200_000, 3)) + np.float32(10)
    b = Builder()
    total = b.build(b.reduce_by("add", b.parameter(TensorType(F32, x.shape)), [0])).evaluate(x)
    np.testing.assert_allclose(total, x.sum(axis=0, dtype=np.float64), rtol=1e-6)


def test_dot_of_bytes_wraps_in_its_own_type_and_is_exact_in_a_wider() -> None:
    x = np.full((1, 1000), 127, np.int8)
    b = Builder()
    lhs, rhs = b.parameter(TensorType(S8, (1, 1000))), b.parameter(TensorType(S8, (1, 1000)))
    exact = b.build(b.dot(lhs, rhs, [1], [1], element=S32)).evaluate(x, x)
    wrapped = b.build(b.dot(lhs, rhs, [1], [1])).evaluate(x, x)
    assert exact == 127 * 127 * 1000
    assert wrapped == exact.astype(np.int8)


@pytest.mark.parametrize(
    ("opcode", "exact", "domain"),
    [
        ("acos", math.acos, (-1.0, 1.0)),
        ("acosh", math.acosh, (1.0, 50.0)),
        ("asin", math.asin, (-1.0, 1.0)),
        ("asinh", math.asinh, (-50.0, 50.0)),
        ("atanh", math.atanh, (-0.99, 0.99)),
        ("cosh", math.cosh, (-20.0, 20.0)),
        ("sinh", math.sinh, (-20.0, 20.0)),
    ],
)
def test_functions_that_xla_does_not_run_agree_with_libm(
    opcode: str, exact: Callable[[float], float], domain: tuple[float, float]
) -> None:
    x = np.linspace(*domain, 101, dtype=np.float32)
    expected = np.array([exact(float(v)) for v in x])
    np.testing.assert_allclose(apply(opcode, x), expected, rtol=1e-6)
    np.testing.assert_allclose(
        apply(opcode, x.astype(BF16.dtype)).astype(np.float64),
        [exact(float(v)) for v in x.astype(BF16.dtype)],
        rtol=2**-8,
    )  # noqa: E501


def test_cholesky_of_an_indefinite_matrix_is_nan() -> None:
    result = Cholesky(lower=True).evaluate(np.array([[1.0, 2.0], [2.0, 1.0]], np.float32))
    assert np.isnan(result[1, 1])


@pytest.mark.parametrize("opcode", ["add", "multiply", "maximum", "minimum", "and", "or", "xor"])
@pytest.mark.parametrize("element", [PRED, S4, S8, U32, BF16, F32, F8E4M3FN], ids=str)
def test_the_identity_changes_nothing(opcode: str, element: ElementType) -> None:
    if element.is_float and opcode in ("and", "or", "xor"):
        with pytest.raises(HloError, match="has no identity"):
            identity_of(opcode, element)
        return
    x = edges(element)
    identity = np.broadcast_to(identity_of(opcode, element), x.shape)
    np.testing.assert_array_equal(apply(opcode, x, identity).astype(np.float64), x.astype(np.float64))


def test_a_combiner_is_simple_in_either_order_and_not_with_more() -> None:
    b = Builder()
    x, y = b.parameter(TensorType(F32)), b.parameter(TensorType(F32))
    assert simple_combiner(b.build(b.add(y, x))) == "add"
    assert simple_combiner(b.build(b.add(x, x))) is None
    assert simple_combiner(b.build(b.subtract(x, y))) is None
    assert simple_combiner(b.build(b.add(x, b.negate(y)))) is None


def test_every_operation_computes_on_every_type_it_takes() -> None:
    for element in ELEMENT_TYPES.values():
        total = Convert(element).evaluate(np.array([0.0, 1.0, 2.0], np.float32))
        assert total.dtype == element.dtype


REFUSALS: list[tuple[str, Callable[[Builder, Instruction, Instruction], object]]] = [
    ("the operands of add differ: f32[2,3]{1,0}, f32[3]{0}", lambda b, x, v: b.add(x, v)),
    ("not does not take f32[3]{0}", lambda b, x, v: b.not_(v)),
    ("cannot reshape f32[2,3]{1,0} to (5,): the numbers of elements differ", lambda b, x, v: b.reshape(x, [5])),
    ("cannot broadcast f32[3]{0} to (3, 2) at dimensions (1,)", lambda b, x, v: b.broadcast(v, (3, 2), (1,))),
    ("(0, 0) is not a permutation of the dimensions of f32[2,3]{1,0}", lambda b, x, v: b.transpose(x, (0, 0))),
    ("slice (0,):(4,):(1,) does not fit f32[3]{0}", lambda b, x, v: b.slice(v, (0,), (4,))),
    ("dimension 1 is out of range for f32[3]{0}", lambda b, x, v: b.concatenate([v, v], 1)),
    (
        "contracting dimensions (0,) of f32[2,3]{1,0} and (0,) of f32[3]{0} differ",
        lambda b, x, v: b.dot(x, v, [0], [0]),
    ),
    ("window={size=2} does not fit f32[2,3]{1,0}", lambda b, x, v: pool(b, x, Window.of([2]))),
    (
        "window sizes, strides and dilations must be positive: window={size=0x1}",
        lambda b, x, v: pool(b, x, Window.of([0, 1])),
    ),
    (
        "3 input features do not fit the kernel f32[2,3]{1,0} in 2 groups",
        lambda b, x, v: b.convolution(x, x, Window(), ConvolutionDimensions.nchw(0), feature_group_count=2),
    ),
    ("expected a tensor, got (f32[3]{0})", lambda b, x, v: b.tuple(v).tensor_type),
]


def pool(b: Builder, x: Instruction, window: Window) -> Instruction:
    return b.reduce_window([x], [b.constant(0, F32)], window, b.combiner("add", F32))


@pytest.mark.parametrize(("message", "attempt"), REFUSALS, ids=[m for m, _ in REFUSALS])
def test_operands_that_do_not_fit_are_refused(
    message: str, attempt: Callable[[Builder, Instruction, Instruction], object]
) -> None:
    b = Builder()
    x, v = b.parameter(TensorType(F32, (2, 3))), b.parameter(TensorType(F32, (3,)))
    with pytest.raises(HloError) as caught:
        attempt(b, x, v)
    assert str(caught.value) == message


def test_random_arguments_are_the_same_each_time() -> None:
    np.testing.assert_array_equal(random(F32, (3, 4)), random(F32, (3, 4)))
