"""Random operators: shapes, types, distributions, and the same numbers in every run."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from onnx import TensorProto, helper

from onnxla.frontends.onnx.importer import import_model
from onnxla.frontends.onnx.rules.random import threefry
from onnxla.hlo.builder import Builder
from onnxla.hlo.types import Array
from tests.frontends.witness import model_of, run_imported

COUNT = 4000


def draw(op: str, x: Array | None = None, name: str = "node", **attributes: Any) -> Array:
    inputs = {} if x is None else {"x": x}
    node = helper.make_node(op, list(inputs), ["y"], name=name, **attributes)
    (y,) = run_imported(import_model(model_of([node], inputs, ["y"])), inputs)
    return y


@pytest.mark.parametrize("code", [TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16])
def test_uniform(code: int) -> None:
    y = draw("RandomUniform", shape=[COUNT], dtype=code, low=-2.0, high=6.0, seed=3.0)
    assert y.dtype == helper.tensor_dtype_to_np_dtype(code)
    assert -2 <= y.min() < -1.9 and 5.9 < y.max() <= 6
    np.testing.assert_allclose([y.astype(float).mean(), y.astype(float).std()], [2, 8 / np.sqrt(12)], rtol=0.1)


@pytest.mark.parametrize("code", [TensorProto.FLOAT, TensorProto.DOUBLE])
def test_normal(code: int) -> None:
    y = draw("RandomNormal", shape=[COUNT], dtype=code, mean=5.0, scale=2.0, seed=1.0)
    np.testing.assert_allclose([y.mean(), y.std()], [5, 2], rtol=0.05)
    within = [np.mean(abs(y - 5) < 2 * k) for k in (1, 2, 3)]
    np.testing.assert_allclose(within, [0.683, 0.954, 0.997], atol=0.03)


def test_like_takes_shape_and_type_of_its_input() -> None:
    assert draw("RandomUniformLike", np.zeros((3, 4), np.float64)).dtype == np.float64
    y = draw("RandomNormalLike", np.zeros((3, 4), np.int32), dtype=TensorProto.FLOAT)
    assert y.shape == (3, 4) and y.dtype == np.float32


def test_bernoulli() -> None:
    p = np.linspace(0, 1, COUNT).astype(np.float32)
    y = draw("Bernoulli", p, dtype=TensorProto.INT32, seed=7.0)
    assert set(y.tolist()) == {0, 1} and y.dtype == np.int32
    assert y[0] == 0 and y[-1] == 1
    np.testing.assert_allclose([y[: COUNT // 2].mean(), y[COUNT // 2 :].mean()], [0.25, 0.75], atol=0.05)


def test_multinomial() -> None:
    probabilities = np.array([[0.1, 0.6, 0.3], [0.5, 0.0, 0.5]])
    with np.errstate(divide="ignore"):
        logits = np.log(probabilities).astype(np.float32)
    y = draw("Multinomial", logits, sample_size=COUNT, dtype=TensorProto.INT64, seed=2.0)
    assert y.shape == (2, COUNT) and y.dtype == np.int64
    shares: npt.NDArray[Any] = np.stack([np.bincount(row, minlength=3) / COUNT for row in y])
    np.testing.assert_allclose(shares, probabilities, atol=0.03)


def test_the_seed_decides() -> None:
    options: dict[str, Any] = {"shape": [8], "name": "a"}
    np.testing.assert_array_equal(
        draw("RandomUniform", seed=1.0, **options), draw("RandomUniform", seed=1.0, **options)
    )
    assert (draw("RandomUniform", seed=1.0, **options) != draw("RandomUniform", seed=2.0, **options)).any()


def test_without_a_seed_the_name_decides() -> None:
    np.testing.assert_array_equal(
        draw("RandomUniform", shape=[8], name="a"), draw("RandomUniform", shape=[8], name="a")
    )
    assert (draw("RandomUniform", shape=[8], name="a") != draw("RandomUniform", shape=[8], name="b")).any()


def test_threefry_has_the_published_values() -> None:
    """Counter 0 of the test vectors that come with Random123 (threefry2x32, 20 rounds)."""
    b = Builder()
    first, second = threefry(b, (0, 0), 1)
    words = b.build(b.tuple(first, second)).evaluate()
    assert [int(w[0]) for w in words] == [0x6B200159, 0x99BA4EFE]
