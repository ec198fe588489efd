"""Gradient through whole convolutional networks: compiled in f32, against finite differences in float64."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import onnxla
from onnxla.errors import CompileError, UnsupportedOpError
from onnxla.hlo.types import Array
from tests.frontends.witness import model_of

TRAINING = "ai.onnx.preview.training"
node = helper.make_node


def weights(dtype: Any) -> dict[str, Array]:
    r = np.random.default_rng(0)
    shapes = {"c1": (6, 2, 3, 3), "d": (6, 1, 3, 3), "c2": (8, 3, 1, 1), "t": (8, 3, 2, 2), "w": (3, 5)}
    made = {name: 0.5 * r.standard_normal(shape) for name, shape in shapes.items()}
    for name, size in {"c1_b": 6, "scale": 6, "shift": 6, "gain": 3, "offset": 3, "w_b": 5}.items():
        made[name] = 1 + 0.3 * r.standard_normal(size)
    return {name: value.astype(dtype) for name, value in made.items()}


def network(dtype: Any, wanted: list[str]) -> onnx.ModelProto:
    """(x, labels, weights) -> (loss, derivatives by `wanted`)."""
    nodes = [
        node("Conv", ["x", "c1", "c1_b"], ["v1"], pads=[1, 1, 1, 1], strides=[2, 1]),
        node("BatchNormalization", ["v1", "scale", "shift", "mean", "var"], ["v2", "m", "s"], training_mode=1),
        node("Relu", ["v2"], ["v3"]),
        node("MaxPool", ["v3"], ["v4"], kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 0]),
        node("Conv", ["v4", "d"], ["v5"], group=6, auto_pad="SAME_UPPER"),
        node("HardSwish", ["v5"], ["v6"]),
        node("Conv", ["v6", "c2"], ["v7"], group=2),
        node("AveragePool", ["v7"], ["v8"], kernel_shape=[2, 2], pads=[1, 0, 0, 1]),
        node("LeakyRelu", ["v8"], ["v9"], alpha=0.2),
        node("ConvTranspose", ["v9", "t"], ["v10"], strides=[2, 2]),
        node("InstanceNormalization", ["v10", "gain", "offset"], ["v11"]),
        node("Gelu", ["v11"], ["v12"]),
        node("GlobalAveragePool", ["v12"], ["v13"]),
        node("Flatten", ["v13"], ["v14"]),
        node("Gemm", ["v14", "w", "w_b"], ["v15"]),
        node("SoftmaxCrossEntropyLoss", ["v15", "labels"], ["loss"]),
    ]
    if wanted:
        results = [f"d_{name}" for name in wanted]
        nodes.append(node("Gradient", wanted, results, domain=TRAINING, xs=wanted, y="loss"))
    statistics = {"mean": np.zeros(6, dtype), "var": np.ones(6, dtype)}
    feeds = {"x": np.zeros((3, 2, 9, 8), dtype), "labels": np.zeros(3, np.int64), **weights(dtype)}
    outputs = ["loss", *(f"d_{name}" for name in wanted)]
    return model_of(nodes, feeds, outputs, initializers=statistics, domains={TRAINING: 1})


def test_the_derivatives_of_a_convolutional_network() -> None:
    """Along random directions, by each weight and by the images."""
    r = np.random.default_rng(1)
    exact = {"x": r.standard_normal((3, 2, 9, 8)), "labels": np.array([0, 3, 1]), **weights(np.float64)}
    wanted = ["x", *weights(np.float32)]
    feeds = {name: v.astype(np.float32) if v.dtype == np.float64 else v for name, v in exact.items()}
    loss, *found = onnxla.compile(network(np.float32, wanted)).run(None, feeds)
    witness = onnxla.compile(network(np.float64, []))
    assert abs(loss - witness.run(None, exact)[0]) < 1e-5
    for name, derivative in zip(wanted, found, strict=True):
        assert derivative.shape == exact[name].shape
        for _ in range(3):
            direction = r.standard_normal(exact[name].shape)
            above, below = (
                float(witness.run(None, {**exact, name: exact[name] + sign * 1e-6 * direction})[0]) for sign in (1, -1)
            )
            slope = (above - below) / 2e-6
            scale = float(np.abs(derivative).max() * np.abs(direction).sum())
            assert abs((derivative * direction).sum() - slope) < 1e-5 * max(scale, 0.01), name


def test_every_node_without_a_derivative_is_reported() -> None:
    nodes = [
        node("TopK", ["x", "k"], ["top", "places"], name="best"),
        node("ReduceProd", ["top"], ["y"], name="product", keepdims=0),
        node("Gradient", ["x"], ["dx"], domain=TRAINING, xs=["x"], y="y", name="backward"),
    ]
    x = np.zeros(4, np.float32)
    model = model_of(nodes, {"x": x}, ["dx"], initializers={"k": np.array([2])}, domains={TRAINING: 1})
    with pytest.raises(CompileError) as caught:
        onnxla.compile(model)
    assert all(p.kind is UnsupportedOpError for p in caught.value.problems)
    text = str(caught.value)
    assert "best (TopK" in text and "the derivative of sort is not known" in text
    assert "product (ReduceProd" in text and "a reduction by multiply" in text
    assert text.count("by backward (") == 2
