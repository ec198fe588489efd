"""Dropout at inference against onnxruntime, and in training mode by what it promises."""

import numpy as np
import pytest
from onnx import helper

from onnxla.errors import ShapeError
from onnxla.frontends.onnx.importer import import_model
from onnxla.hlo.types import Array
from tests.frontends.rules.one_node import check_node, given, normal
from tests.frontends.witness import model_of

X = np.abs(normal(100, 100)) + np.float32(0.1)


@pytest.mark.parametrize("opset", [7, 10, 12, 13])
def test_at_inference_everything_passes(opset: int) -> None:
    check_node("Dropout", normal(3, 4), opset=opset, outputs=1 if opset == 7 else 2)


@pytest.mark.parametrize("ratio", [0.5, 0.0])
def test_training_mode_off_passes_everything(ratio: float) -> None:
    check_node("Dropout", normal(3, 4), np.array(ratio, np.float32), np.array(False), constant=[1, 2], outputs=2)


def train(ratio: float, seed: int | None = None) -> tuple[Array, Array]:
    node = helper.make_node("Dropout", ["x", "ratio", "training"], ["y", "mask"], name="drop", **given(seed=seed))
    known = {"ratio": np.array(ratio, np.float32), "training": np.array(True)}
    y, mask = import_model(model_of([node], {"x": X}, ["y", "mask"], initializers=known)).module.entry.evaluate(X)
    return y, mask


@pytest.mark.parametrize("ratio", [0.1, 0.5, 0.9])
def test_training_drops_a_share_and_scales_the_rest(ratio: float) -> None:
    y, mask = train(ratio)
    assert abs(mask.mean() - (1 - ratio)) < 0.02
    np.testing.assert_allclose(y, np.where(mask, X / np.float32(1 - ratio), 0), rtol=1e-6)


def test_the_seed_decides_what_is_dropped() -> None:
    np.testing.assert_array_equal(train(0.5, seed=3)[1], train(0.5, seed=3)[1])
    assert (train(0.5, seed=3)[1] != train(0.5, seed=4)[1]).any()


def test_a_ratio_of_one_is_an_error() -> None:
    with pytest.raises(ShapeError, match="ratio 1.0 is not in"):
        train(1.0)
