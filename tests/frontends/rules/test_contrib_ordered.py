"""onnxruntime's quantised operators of ordered matrices: it has no kernels of them for CPUs, so against numpy."""

import math
from typing import Any

import numpy as np
import pytest

from onnxla.errors import UnsupportedOpError
from onnxla.frontends.onnx.importer import import_model
from onnxla.hlo.types import Array
from tests.frontends.rules.test_contrib_attention import NONE, model_with, normal
from tests.frontends.rules.test_contrib_padding import run
from tests.frontends.witness import f32, s32

BY_COLUMNS, BY_ROWS = 0, 1


def bytes_of(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng([seed, *shape]).integers(-128, 128, shape).astype(np.int8)


def by_columns(x: Array) -> Array:
    """`x` as the operators declare a matrix that lies by columns: its shape, with its memory in the other order."""
    return np.ascontiguousarray(np.swapaxes(x, -1, -2)).reshape(x.shape)


def rounded(x: Array) -> Array:
    return np.clip(np.rint(x), -128, 127).astype(np.int8)


def assert_near(ours: Array, expected: Array) -> None:
    """Sums in f32 may fall to the other side of a half."""
    assert ours.dtype == np.int8
    difference = np.abs(ours.astype(int) - expected.astype(int))
    assert difference.max(initial=0) <= 1 and np.count_nonzero(difference) <= 1 + 0.01 * ours.size


class TestOrders:
    @pytest.mark.parametrize("shape", [(3, 5), (2, 3, 5)])
    def test_quantise_and_back(self, shape: tuple[int, ...]) -> None:
        x, scale = normal(*shape) * 40, f32(0.7)
        orders: dict[str, Any] = {"order_input": BY_ROWS, "order_output": BY_COLUMNS}
        (q,) = run("QuantizeWithOrder", {"x": x, "s": scale}, **orders)
        np.testing.assert_array_equal(q, by_columns(rounded(x / scale)))
        orders = {"order_input": BY_COLUMNS, "order_output": BY_ROWS}
        (back,) = run("DequantizeWithOrder", {"x": q, "s": scale}, to=1, **orders)
        np.testing.assert_allclose(back, rounded(x / scale) * scale, rtol=1e-6)

    def test_tiled_orders_are_refused(self) -> None:
        inputs = {"x": normal(3, 5), "s": f32(1)}
        model = model_with("QuantizeWithOrder", inputs, ["y"], order_input=1, order_output=2)
        with pytest.raises(UnsupportedOpError) as refusal:
            import_model(model)
        assert "order_output=2 (COL32) is not known" in str(refusal.value)
        assert "0 (by columns) and 1 (by rows) can be read" in str(refusal.value)


def test_gelu() -> None:
    x = np.arange(-128, 128, dtype=np.int8).reshape(4, 64)
    (y,) = run("QOrderedGelu", {"x": x, "sx": f32(0.05), "sy": f32(0.03)}, native=True)
    wide = x.reshape(-1) * 0.05
    expected = [v / 2 * (1 + math.erf(v / math.sqrt(2))) / 0.03 for v in wide]
    assert_near(y, rounded(np.array(expected)).reshape(x.shape))


@pytest.mark.parametrize("with_bias", [False, True])
def test_layer_normalization(with_bias: bool) -> None:
    x, gamma, beta = bytes_of(2, 3, 16), normal(16), normal(16, seed=1)
    inputs = {"x": x, "sx": f32(0.1), "g": gamma, ("b" if with_bias else "-b"): beta, "sy": f32(0.02)}
    (y,) = run("QOrderedLayerNormalization", inputs, native=with_bias)
    wide = x * 0.1
    deviation = np.sqrt(wide.var(-1, keepdims=True) + 1e-5)
    expected = (wide - wide.mean(-1, keepdims=True)) / deviation * gamma + (beta if with_bias else 0)
    assert_near(y, rounded(expected / 0.02))


class TestMatMul:
    ORDERS: dict[str, Any] = {"order_A": BY_ROWS, "order_B": BY_COLUMNS, "order_Y": BY_ROWS}

    @pytest.mark.parametrize("scales", ["one", "columns"])
    @pytest.mark.parametrize(
        ("a", "w", "c"),
        [((5, 7), (7, 6), (5, 6)), ((3, 5, 7), (1, 7, 6), (1, 5, 6)), ((2, 5, 7), (2, 7, 6), (2, 5, 6))],
    )
    def test_product(self, a: tuple[int, ...], w: tuple[int, ...], c: tuple[int, ...], scales: str) -> None:
        left, right, third, bias = bytes_of(*a), bytes_of(*w, seed=1), bytes_of(*c, seed=2), normal(6)
        scale_b = f32(0.02) if scales == "one" else np.linspace(0.01, 0.03, 6, dtype=np.float32)
        inputs = {"a": left, "sa": f32(0.05), "b": by_columns(right), "sb": scale_b, "sy": f32(0.4)}
        product = 0.05 * scale_b / 0.4 * (left.astype(int) @ right.astype(int))
        (y,) = run("QOrderedMatMul", inputs, **self.ORDERS)
        assert_near(y, rounded(product))
        (y,) = run(
            "QOrderedMatMul", inputs | {"bias": bias, "c": third, "sc": f32(0.3)}, native=len(w) == 2, **self.ORDERS
        )
        assert_near(y, rounded(product + bias + 0.3 / 0.4 * third))


MASKS = {
    "none": None,
    "flags": s32([[1, 1, 0, 1], [1, 0, 0, 0]]),
    "lengths": s32([3, 4]),
    "nothing": s32([[1, 1, 1, 1], [0, 0, 0, 0]]),
}


@pytest.mark.parametrize("unidirectional", [0, 1])
@pytest.mark.parametrize("mask", MASKS)
def test_attention(mask: str, unidirectional: int) -> None:
    batch, length, width, heads, size = 2, 4, 6, 2, 3
    hidden = heads * size
    x, weights = bytes_of(batch, length, width), [bytes_of(width, hidden, seed=i) for i in range(3)]
    biases = [normal(hidden, seed=i) for i in range(3)]
    scales = [0.02, 0.03, 0.025]
    inputs: dict[str, Array] = {"x": x, "sx": f32(0.01)}
    inputs |= {f"s{i}": f32(scales[i]) for i in range(3)} | {f"w{i}": by_columns(weights[i]) for i in range(3)}
    inputs |= {f"sw{i}": f32(0.01 * (i + 1)) for i in range(3)} | {f"b{i}": biases[i] for i in range(3)}
    inputs |= {"scores": f32(0.05), "softmax": f32(1 / 127), "output": f32(0.02)}
    flags = MASKS[mask]
    inputs["mask" if flags is not None else "-mask"] = NONE if flags is None else flags
    orders: dict[str, Any] = {"order_input": BY_ROWS, "order_weight": BY_COLUMNS, "order_output": BY_ROWS}
    (y,) = run(
        "QOrderedAttention", inputs, native=mask == "flags", num_heads=heads, unidirectional=unidirectional, **orders
    )

    def projected(i: int) -> Array:
        wide = 0.01 * 0.01 * (i + 1) * (x.astype(int) @ weights[i].astype(int)) + biases[i]
        return rounded(wide / scales[i]).reshape(batch, length, heads, size).transpose(0, 2, 1, 3).astype(int)

    q, k, v = (projected(i) for i in range(3))
    scores = rounded(scales[0] * scales[1] / 0.05 * (q @ k.transpose(0, 1, 3, 2))) * 0.05 / math.sqrt(size)
    seen = np.ones((batch, 1, length, length), bool)
    if mask == "lengths":
        assert flags is not None
        seen = seen & (np.arange(length) < flags[:, None, None, None])
    elif flags is not None:
        seen = seen & (flags[:, None, None, :] > 0)
    seen = seen & (np.tri(length, dtype=bool) if unidirectional else True)
    weight = np.where(seen, np.exp(scores), 0)
    weight = weight / np.maximum(weight.sum(-1, keepdims=True), 1e-30)
    expected = rounded(scales[2] / 127 / 0.02 * (rounded(weight * 127).astype(int) @ v))
    assert_near(y, expected.transpose(0, 2, 1, 3).reshape(batch, length, hidden))
