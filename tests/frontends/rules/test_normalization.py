"""Normalisations against onnxruntime."""

from typing import Any

import numpy as np
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from onnxla.frontends.onnx.importer import import_model
from onnxla.hlo.types import Array
from tests.frontends.rules.one_node import check_node, normal
from tests.frontends.witness import model_of


def positive(*shape: int, seed: int) -> Array:
    return np.abs(normal(*shape, seed=seed)) + np.float32(0.1)


@pytest.mark.parametrize("opset", [7, 9, 14, 15])
@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (2, 3), (2, 3, 4)])
def test_batch_normalization(opset: int, shape: tuple[int, ...]) -> None:
    statistics = [normal(3, seed=1), normal(3, seed=2), normal(3, seed=3), positive(3, seed=4)]
    check_node("BatchNormalization", normal(*shape), *statistics, opset=opset, epsilon=1e-3, rtol=1e-4)


def test_batch_normalization_in_training_mode() -> None:
    statistics = [normal(3, seed=1), normal(3, seed=2), normal(3, seed=3), positive(3, seed=4)]
    x = normal(2, 3, 4, 5) * 3 + 1
    check_node(
        "BatchNormalization", x, *statistics, opset=15, outputs=3, training_mode=1, momentum=0.8, rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (2, 3, 7)])
def test_instance_normalization(shape: tuple[int, ...]) -> None:
    check_node(
        "InstanceNormalization", normal(*shape) * 5 + 2, normal(3, seed=1), normal(3, seed=2), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize(("axis", "scale"), [(-1, (4,)), (1, (3, 4)), (0, (2, 3, 4)), (-2, (3, 4))])
@pytest.mark.parametrize("bias", [True, False])
def test_layer_normalization(axis: int, scale: tuple[int, ...], bias: bool) -> None:
    b = normal(*scale, seed=2) if bias else None
    check_node(
        "LayerNormalization",
        normal(2, 3, 4) + 10,
        normal(*scale, seed=1),
        b,
        axis=axis,
        outputs=3,
        rtol=1e-4,
        atol=1e-5,
    )


def test_layer_normalization_of_half_precision_computes_in_single() -> None:
    x = normal(2, 512, dtype=np.float16) + np.float16(8)
    check_node("LayerNormalization", x, normal(512, dtype=np.float16, seed=1), rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("opset", [18, 21])
def test_group_normalization(opset: int) -> None:
    x, size = normal(2, 6, 4, 5) + 3, 3 if opset == 18 else 6
    inputs = [x, normal(size, seed=1), normal(size, seed=2)]
    node = helper.make_node("GroupNormalization", ["x", "s", "b"], ["y"], num_groups=3, epsilon=1e-2)
    model = model_of([node], dict(zip("xsb", inputs, strict=True)), {"y": 1}, opset=opset)
    (result,) = import_model(model).module.entry.evaluate(*inputs)
    grouped = x.reshape(2, 3, -1).astype(np.float64)
    normalized = (grouped - grouped.mean(-1, keepdims=True)) / np.sqrt(grouped.var(-1, keepdims=True) + 1e-2)
    scale, bias = (np.repeat(v, 6 // size).reshape(1, 6, 1, 1) for v in inputs[1:])
    np.testing.assert_allclose(result, normalized.reshape(x.shape) * scale + bias, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("axis", [-1, 1])
def test_rms_normalization(axis: int) -> None:
    x, scale = normal(2, 3, 4), normal(*((4,) if axis == -1 else (3, 4)), seed=1)
    node = helper.make_node("RMSNormalization", ["x", "s"], ["y"], axis=axis)
    model = model_of([node], {"x": x, "s": scale}, {"y": 1}, opset=23)
    (result,) = import_model(model).module.entry.evaluate(x, scale)
    (expected,) = ReferenceEvaluator(model).run(None, {"x": x, "s": scale})
    assert isinstance(expected, np.ndarray)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("attributes", [{}, {"axes": [1, 2, 3]}, {"axes": [-1]}])
def test_mean_variance_normalization(attributes: dict[str, Any]) -> None:
    check_node("MeanVarianceNormalization", normal(2, 3, 4, 5), rtol=1e-4, atol=1e-5, **attributes)


@pytest.mark.parametrize("size", [1, 3, 5])
def test_local_response_normalization(size: int) -> None:
    check_node("LRN", normal(2, 6, 3, 3) * 5, size=size, alpha=0.3, beta=0.6, bias=2.0, rtol=1e-4)


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_lp_normalization_of_rows_with_zeros(p: int, axis: int) -> None:
    x = normal(3, 4)
    x[1], x[:, 2] = 0, 0
    check_node("LpNormalization", x, p=p, axis=axis, opset=13)
