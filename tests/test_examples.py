"""The example network: its training is right, and what the repository ships is what it writes."""

import importlib.util
from types import ModuleType

import numpy as np
import onnx
import pytest

import onnxla
from tests.cli.command import DIGITS, DIGITS_INPUT, EXAMPLES


@pytest.fixture(scope="module")
def digits() -> ModuleType:
    spec = importlib.util.spec_from_file_location("digits", EXAMPLES / "digits.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_gradients_are_those_of_the_loss(digits: ModuleType) -> None:
    """Against differences of the loss, for one weight of each layer."""
    rng = np.random.default_rng(0)
    network = digits.Network(rng)
    images, labels = rng.random((6, 1, 8, 8)), rng.integers(0, 10, 6)

    def loss() -> float:
        return float(-np.log(digits.softmax(network.scores(images))[np.arange(6), labels]).mean())

    before = [p.copy() for layer in network.layers for p in layer.parameters]
    network.learn(images, labels)
    gradients = [g for layer in network.layers for g in layer.gradients]
    parameters = [p for layer in network.layers for p in layer.parameters]
    for parameter, old in zip(parameters, before, strict=True):
        parameter[:] = old
    for parameter, gradient in zip(parameters, gradients, strict=True):
        place = (0,) * parameter.ndim
        parameter[place] += 1e-5
        above = loss()
        parameter[place] -= 2e-5
        below = loss()
        parameter[place] += 1e-5
        assert gradient[place] == pytest.approx((above - below) / 2e-5, rel=1e-3, abs=1e-7)


def test_the_model_that_is_shipped_recognises_its_digits() -> None:
    model = onnxla.compile(DIGITS)
    with np.load(DIGITS_INPUT) as sample:
        probabilities, found = model.run(None, {"image": sample["image"]})
        assert found.tolist() == sample["digit"].tolist() == list(range(10))
    np.testing.assert_allclose(probabilities.sum(1), 1, rtol=1e-6)


def test_the_model_that_is_shipped_has_the_graph_that_is_written(digits: ModuleType) -> None:
    written = digits.onnx_model(digits.Network(np.random.default_rng(0)))
    shipped = onnx.load(DIGITS)
    del written.graph.initializer[:], shipped.graph.initializer[:]
    assert written == shipped
