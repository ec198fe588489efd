"""onnxruntime's batches without padding and its position biases, against numpy: it has them for GPUs only."""

import math
from typing import Any

import numpy as np
import pytest

import onnxla
from onnxla.errors import DynamicShapeError, OnnxlaError
from onnxla.frontends.onnx.importer import import_model
from onnxla.hlo.types import Array
from tests.frontends.rules.test_contrib_attention import NONE, model_with, normal
from tests.frontends.witness import f32, run_imported, s32, s64

LENGTHS = s32([1, 2, 4, 0])
BATCH, LENGTH = 4, 4
REAL = np.arange(LENGTH) < LENGTHS[:, None]
OFFSETS = np.concatenate([np.flatnonzero(REAL), np.flatnonzero(~REAL)]).astype(np.int32).reshape(BATCH, LENGTH)
ENDS = np.concatenate([[0], np.cumsum(LENGTHS)]).astype(np.int32)
TOKENS = int(ENDS[-1])


def run(
    op: str, inputs: dict[str, Array], outputs: str = "y", *, native: bool = False, **attributes: Any
) -> list[Array]:
    """By the interpreter; natively too where that is asked for, and both must agree."""
    model = model_with(op, inputs, outputs.split(), **attributes)
    feeds = {i.name: inputs[i.name] for i in model.graph.input}
    results = run_imported(import_model(model), feeds)
    if native:
        for ours, compiled in zip(results, onnxla.compile(model).run(None, feeds), strict=True):
            np.testing.assert_allclose(compiled, ours, rtol=2e-5, atol=1e-5, equal_nan=True)
    return results


class TestPadding:
    @pytest.mark.parametrize("lengths", [LENGTHS, s32([4, 4, 4, 4]), s32([0, 0, 0, 0])])
    def test_removed(self, lengths: Array) -> None:
        x = normal(BATCH, LENGTH, 5)
        y, offsets, ends, longest = run(
            "RemovePadding", {"x": x, "lengths": lengths}, "y offsets ends longest", held=("lengths",)
        )
        kept = [x[i, :n] for i, n in enumerate(lengths)]
        np.testing.assert_array_equal(y, np.concatenate(kept))
        assert longest.tolist() == [max(lengths)] and ends.tolist() == [0, *np.cumsum(lengths)]
        assert sorted(offsets.reshape(-1)) == list(range(BATCH * LENGTH))
        np.testing.assert_array_equal(x.reshape(-1, 5)[offsets.reshape(-1)[: len(y)]], y)

    def test_the_numbers_of_the_documentation(self) -> None:
        inputs = {"x": normal(3, 4, 2), "lengths": s32([1, 2, 4])}
        _, offsets, ends, _ = run("RemovePadding", inputs, "y offsets ends longest", held=("lengths",))
        assert offsets.reshape(-1).tolist() == [0, 4, 5, 8, 9, 10, 11, 1, 2, 3, 6, 7]
        assert ends.tolist() == [0, 1, 3, 7]

    def test_removing_must_know_how_many(self) -> None:
        inputs = {"x": normal(BATCH, LENGTH, 5), "lengths": LENGTHS}
        model = model_with("RemovePadding", inputs, ["y", "offsets", "ends", "longest"])
        with pytest.raises(DynamicShapeError, match="the number of tokens decides the shape"):
            import_model(model)
        feeds = {n: inputs[n] for n in ("x", "lengths")}
        assert onnxla.compile(model, constants={"lengths": LENGTHS}).run(None, feeds)[0].shape == (TOKENS, 5)

    def test_too_many_tokens(self) -> None:
        model = model_with("RemovePadding", {"x": normal(2, 3, 5), "n": s32([4, 0])}, ["y", "o", "e", "l"], held=("n",))
        with pytest.raises(OnnxlaError, match=r"\[4, 0\] tokens do not fit 2 sequences of 3"):
            import_model(model)

    def test_restored(self) -> None:
        packed = normal(TOKENS, 5)
        (y,) = run("RestorePadding", {"x": packed, "offsets": OFFSETS}, native=True)
        expected = np.zeros((BATCH, LENGTH, 5), np.float32)
        expected[REAL] = packed
        np.testing.assert_array_equal(y, expected)


def attention(q: Array, k: Array, v: Array, heads: int, bias: Array | None, scale: float | None = None) -> Array:
    """Of each sequence by itself; q, k and v are [tokens, heads * size], bias [1, heads, length, length]."""
    output = np.zeros((TOKENS, v.shape[1]), np.float32)
    for low, high in zip(ENDS[:-1], ENDS[1:], strict=True):
        n = high - low
        a, c, w = (
            x[low:high].reshape(n, heads, x.shape[1] // heads).transpose(1, 0, 2).astype(np.float64) for x in (q, k, v)
        )
        scores = a @ c.transpose(0, 2, 1) * (scale or 1 / math.sqrt(a.shape[2]))
        scores += 0 if bias is None else bias[0, :, :n, :n]
        weights = np.exp(scores - scores.max(2, keepdims=True, initial=-np.inf))
        weights /= weights.sum(2, keepdims=True)
        output[low:high] = (weights @ w).transpose(1, 0, 2).reshape(n, v.shape[1])
    return output


class TestPackedAttention:
    @pytest.mark.parametrize("biased", [False, True])
    def test_attention(self, biased: bool) -> None:
        heads, x, w, b = 2, normal(TOKENS, 6), normal(6, 28, seed=1), normal(28, seed=2)
        inputs = {"x": x, "w": w, "b": b, "offsets": OFFSETS, "ends": ENDS}
        bias = normal(1, heads, LENGTH, LENGTH) if biased else None
        if bias is not None:
            inputs["bias"] = bias
        (y,) = run("PackedAttention", inputs, native=biased, num_heads=heads, qkv_hidden_sizes=[8, 8, 12])
        q, k, v = np.split(x @ w + b, [8, 16], axis=1)
        np.testing.assert_allclose(y, attention(q, k, v, heads, bias), rtol=2e-5, atol=1e-5)

    @pytest.mark.parametrize("layout", ["apart", "packed"])
    def test_multi_head_attention(self, layout: str) -> None:
        heads, size, b = 3, 4, normal(36, seed=2)
        parts = normal(TOKENS, heads, 3, size)
        q, k, v = (np.ascontiguousarray(parts[:, :, i]).reshape(TOKENS, -1) for i in range(3))
        inputs = {"q": q, "k": k, "v": v} if layout == "apart" else {"qkv": parts, "-k": NONE, "-v": NONE}
        inputs |= {"b": b, "offsets": OFFSETS, "ends": ENDS}
        (y,) = run("PackedMultiHeadAttention", inputs, num_heads=heads, scale=0.4)
        q, k, v = q + b[:12], k + b[12:24], v + b[24:]
        np.testing.assert_allclose(y, attention(q, k, v, heads, None, 0.4), rtol=2e-5, atol=1e-5)


class TestRelativePositionBias:
    @pytest.mark.parametrize(
        ("both_ways", "expected"),
        [(1, [[[1, 7], [3, 1]], [[2, 8], [4, 2]]]), (0, [[[1, 1], [3, 1]], [[2, 2], [4, 2]]])],
    )
    def test_the_numbers_of_the_reference(self, both_ways: int, expected: list[Any]) -> None:
        """The table of Hugging Face's T5 is [[1, 2], [3, 4], [5, 6], [7, 8]], laid out by columns."""
        inputs = {"t": f32([[1, 3], [5, 7], [2, 4], [6, 8]]), "q": s64([2]), "k": s64([2])}
        (y,) = run("RelativePositionBias", inputs, max_distance=128, is_bidirectional=both_ways, held=("q", "k"))
        assert y.tolist() == [expected]

    @pytest.mark.parametrize("both_ways", [0, 1])
    def test_every_distance(self, both_ways: int) -> None:
        """Near ones have a bucket each, far ones share, and nothing is out of range."""
        buckets, longest, n = 32, 20, 50
        table = np.arange(buckets, dtype=np.float32).reshape(buckets, 1)
        inputs = {"t": table, "q": s64([n]), "k": s64([n])}
        (y,) = run("RelativePositionBias", inputs, max_distance=longest, is_bidirectional=both_ways, held=("q", "k"))

        def bucket(distance: int) -> int:
            half = buckets // 2 if both_ways else buckets
            start = half if both_ways and distance > 0 else 0
            near = abs(distance) if both_ways else max(-distance, 0)
            exact = half // 2
            if near < exact:
                return start + near
            return start + min(
                exact + int(math.log(near / exact) / math.log(longest / exact) * (half - exact)), half - 1
            )

        expected = [[bucket(k - q) for k in range(n)] for q in range(n)]
        assert y.reshape(n, n).astype(int).tolist() == expected

    def test_lengths_must_be_known(self) -> None:
        model = model_with(
            "RelativePositionBias", {"t": normal(4, 2), "q": s64([2]), "k": s64([2])}, ["y"], max_distance=8
        )
        with pytest.raises(DynamicShapeError, match="input 1"):
            import_model(model)


@pytest.mark.parametrize("packed", [False, True])
def test_gated_relative_position_bias(packed: bool) -> None:
    heads, size, width = 2, 4, 8
    padded = normal(BATCH, LENGTH, heads * size)
    padded[~REAL] = 0
    query_bias, relative = normal(heads * size, seed=1), normal(1, heads, LENGTH, LENGTH, seed=2)
    weight, bias, eco = normal(size, width, seed=3), normal(width, seed=4), normal(1, heads, 1, 1, seed=5)
    inputs = {"q": padded[REAL] if packed else padded, "qb": query_bias, "rel": relative}
    inputs |= {"w": weight, "b": bias, "eco": eco} | ({"offsets": OFFSETS} if packed else {})
    (y,) = run("GatedRelativePositionBias", inputs, native=packed, num_heads=heads)
    query = (padded + query_bias).reshape(BATCH, LENGTH, heads, size).transpose(0, 2, 1, 3)
    sums = (query @ weight + bias).reshape(BATCH, heads, LENGTH, 2, width // 2).sum(-1)
    u, r = np.split(1 / (1 + np.exp(-sums)), 2, axis=-1)
    np.testing.assert_allclose(y, (u * (r * eco - 1) + 2) * relative, rtol=2e-5, atol=1e-5)
