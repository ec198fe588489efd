"""The spellings of opsets 1 to 6, which onnxruntime no longer runs, against numpy."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import helper

from onnxla.frontends.onnx.importer import import_model
from onnxla.hlo.types import Array
from tests.frontends.rules.one_node import normal
from tests.frontends.witness import model_of

X = normal(2, 3, 4)
IMAGE = normal(1, 2, 4, 4)


def run(
    op_type: str, opset: int, *inputs: Array, outputs: int = 1, known: int | None = None, **attributes: Any
) -> Array:
    """The first output of one node; the inputs from number `known` on are initializers."""
    names, results = [f"x{i}" for i in range(len(inputs))], [f"y{i}" for i in range(outputs)]
    arrays = dict(zip(names, inputs, strict=True))
    fixed = {} if known is None else {name: arrays.pop(name) for name in names[known:]}
    node = helper.make_node(op_type, names, results, **attributes)
    module = import_model(model_of([node], arrays, results, initializers=fixed, opset=opset)).module
    result: Array = module.entry.evaluate(*arrays.values())[0]
    return result


CASES: list[tuple[str, Callable[[], Array], Array]] = [
    ("Reshape-1", lambda: run("Reshape", 1, X, shape=[0, -1]), X.reshape(2, 12)),
    ("Concat-1", lambda: run("Concat", 1, X, X), np.concatenate([X, X], axis=1)),
    ("Split-1", lambda: run("Split", 1, X, outputs=2, axis=1, split=[1, 2]), X[:, :1]),
    ("Split-1 by input", lambda: run("Split", 1, X, np.array([1, 2]), outputs=2, known=1, axis=1), X[:, :1]),
    ("Slice-1", lambda: run("Slice", 1, X, starts=[1, 0], ends=[100, -1], axes=[1, 2]), X[:, 1:, :-1]),
    ("Pad-1", lambda: run("Pad", 1, X, paddings=[0, 1, 0, 0, 0, 2]), np.pad(X, [(0, 0), (1, 0), (0, 2)])),
    ("Tile-1", lambda: run("Tile", 1, X, np.array(3), np.array(1), known=1), np.tile(X, (1, 3, 1))),
    ("Cast-1", lambda: run("Cast", 1, X * 3, to="INT32"), (X * 3).astype(np.int32)),
    ("TopK-1", lambda: run("TopK", 1, X, outputs=2, k=2, axis=2), -np.sort(-X, axis=2)[..., :2]),
    ("Clip-1", lambda: run("Clip", 1, X, min=-0.5, consumed_inputs=[0]), np.maximum(X, np.float32(-0.5))),
    ("Dropout-1", lambda: run("Dropout", 1, X, is_test=1), X),
    ("Sum-1", lambda: run("Sum", 1, X, X, X), X + X + X),
    ("Selu-1", lambda: run("Selu", 1, np.abs(X)), np.abs(X) * np.float32(1.0507)),
    ("PRelu-1", lambda: run("PRelu", 1, X, np.array([1, 2, 3], np.float32)), np.where(X < 0, X * [[[1], [2], [3]]], X)),
    ("Upsample-1", lambda: run("Upsample", 1, IMAGE, height_scale=2.0, width_scale=1.0), IMAGE.repeat(2, axis=2)),
    ("GlobalLpPool-1", lambda: run("GlobalLpPool", 1, IMAGE, p=2.0), np.sqrt((IMAGE**2).sum((2, 3), keepdims=True))),
    ("LpPool-1", lambda: run("LpPool", 1, IMAGE, p=1.0, kernel_shape=[4, 4]), np.abs(IMAGE).sum((2, 3), keepdims=True)),
    ("Gemm-1", lambda: run("Gemm", 1, X[0], X[1].T, X[0, :, 0], broadcast=1), X[0] @ X[1].T + X[0, :, 0]),
    ("Softmax-1", lambda: run("Softmax", 1, X), np.exp(X) / np.exp(X).sum((1, 2), keepdims=True)),
    ("Hardmax-1", lambda: run("Hardmax", 1, X).sum((1, 2)), np.ones(2)),
    ("Equal-1", lambda: run("Equal", 1, X > 0, X[:, :, 0] > 0, broadcast=1, axis=0), (X > 0) == (X[:, :, :1] > 0)),
]


@pytest.mark.parametrize(("name", "result", "expected"), CASES, ids=[name for name, _, _ in CASES])
def test_old_spelling(name: str, result: Callable[[], Array], expected: Array) -> None:
    np.testing.assert_allclose(result().astype(np.float64), expected.astype(np.float64), rtol=1e-5, atol=1e-6)


def test_batch_normalization_of_every_element_of_an_image() -> None:
    """spatial=0 of opsets 1 to 8: statistics for each element, not for each channel."""
    scale, bias, mean = (normal(3, 4, seed=i) for i in (1, 2, 3))
    variance = np.abs(normal(3, 4, seed=4)) + np.float32(0.5)
    result = run("BatchNormalization", 6, X, scale, bias, mean, variance, spatial=0, is_test=1)
    np.testing.assert_allclose(result, (X - mean) / np.sqrt(variance + 1e-5) * scale + bias, rtol=1e-4, atol=1e-5)
