"""Activation functions against onnxruntime, on edge values and with their parameters."""

from typing import Any

import numpy as np
import pytest

from tests.frontends.rules.one_node import check_node, normal

X = np.concatenate([normal(200) * 4, np.array([0.0, -0.0, 30, -30, 100, -100, np.nan], np.float32)]).astype(np.float32)


@pytest.mark.parametrize(
    ("op_type", "attributes"),
    [
        ("Relu", {}),
        ("LeakyRelu", {}),
        ("LeakyRelu", {"alpha": 0.3}),
        ("Elu", {"alpha": 1.5}),
        ("Selu", {}),
        ("Selu", {"alpha": 2.0, "gamma": 3.0}),
        ("Celu", {"alpha": 2.0}),
        ("ThresholdedRelu", {"alpha": 0.7}),
        ("Sigmoid", {}),
        ("HardSigmoid", {"alpha": 0.3, "beta": 0.4}),
        ("HardSwish", {}),
        ("Softplus", {}),
        ("Softsign", {}),
        ("Mish", {}),
        ("Gelu", {}),
        ("Gelu", {"approximate": "tanh"}),
        ("Shrink", {"lambd": 1.0, "bias": 0.5}),
    ],
)
def test_activation(op_type: str, attributes: dict[str, Any]) -> None:
    x = X[:-1] if op_type in ("ThresholdedRelu", "Shrink") else X
    check_node(op_type, x, rtol=3e-5, atol=3e-6, **attributes)


def test_swish_is_x_times_a_sigmoid() -> None:
    check_node("Swish", X, opset=24, alpha=1.7, rtol=3e-5)


@pytest.mark.parametrize("slope", [(1,), (3, 1), (2, 3, 4), (4,)])
def test_prelu_slope_broadcasts(slope: tuple[int, ...]) -> None:
    check_node("PRelu", normal(2, 3, 4), normal(*slope, seed=1))


@pytest.mark.parametrize("dtype", [np.int32, np.int8])
def test_relu_of_integers(dtype: type[np.generic]) -> None:
    check_node("Relu", np.arange(-3, 4).astype(dtype))


@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2])
@pytest.mark.parametrize("opset", [11, 13])
def test_softmax_over_an_axis_or_a_flattened_row(op_type: str, axis: int, opset: int) -> None:
    check_node(op_type, normal(2, 3, 4), axis=axis, opset=opset)


@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax"])
def test_softmax_of_extreme_rows(op_type: str) -> None:
    infinity = np.inf
    rows = [[1e4, 0, -1e4], [-infinity, 0, 1], [-infinity, -infinity, -infinity], [infinity, 0, 0], [np.nan, 0, 0]]
    check_node(op_type, np.array(rows, np.float32))


def test_hardmax_marks_the_first_of_equals() -> None:
    check_node("Hardmax", np.array([[1, 3, 3], [2, 2, 1]], np.float32))


def test_softmax_of_half_precision_sums_in_single() -> None:
    x = normal(2, 2000, dtype=np.float16)
    (result,) = check_node("Softmax", x, rtol=1e-2, atol=1e-5)
    exact = np.exp(x.astype(np.float64))
    exact /= exact.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(result.astype(np.float64), exact, rtol=1e-3, atol=1e-7)
