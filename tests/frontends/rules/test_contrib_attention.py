"""onnxruntime's attention operators (com.microsoft) against onnxruntime, and ai.onnx's RotaryEmbedding beside them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper

from onnxla.frontends.onnx.importer import import_model
from onnxla.hlo.types import Array
from tests.frontends.witness import check_against_onnxruntime, model_of, run_imported

MICROSOFT = "com.microsoft"
BATCH, LENGTH, HEADS, SIZE = 2, 5, 4, 16
HIDDEN = HEADS * SIZE


def normal(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def model_with(op: str, inputs: Mapping[str, Array], outputs: list[str], **attributes: Any) -> ModelProto:
    """A model of one node; inputs whose names start with `-` are left out."""
    held = {n: inputs[n] for n in attributes.pop("held", ())}
    names = [n if not n.startswith("-") else "" for n in inputs]
    node = helper.make_node(op, names, outputs, domain=MICROSOFT, **attributes)
    fed = {n: a for n, a in inputs.items() if n in names and n not in held}
    return model_of([node], fed, [o for o in outputs if o], initializers=held, domains={MICROSOFT: 1})


def check(op: str, inputs: Mapping[str, Array], outputs: list[str], rtol: float = 1e-4, **attributes: Any) -> None:
    model = model_with(op, inputs, outputs, **attributes)
    fed = {i.name: inputs[i.name] for i in model.graph.input}
    check_against_onnxruntime(model, fed, rtol=rtol, atol=1e-5)


NONE = np.zeros(0, np.float32)
MASKS = {
    "lengths": np.array([3, 5], np.int32),
    "ends and starts": np.array([4, 5, 1, 0], np.int32),
    "keys": np.array([[1, 1, 0, 1, 0], [1, 1, 1, 1, 1]], np.int32),
    "pairs": np.tril(np.ones((BATCH, LENGTH, LENGTH), np.int32)),
}


class TestAttention:
    @pytest.mark.parametrize("unidirectional", [0, 1])
    @pytest.mark.parametrize("mask", [*MASKS, "none"])
    def test_masks(self, mask: str, unidirectional: int) -> None:
        inputs = {"x": normal(BATCH, LENGTH, 6), "w": normal(6, 3 * HIDDEN), "b": normal(3 * HIDDEN)}
        if mask != "none":
            inputs["m"] = MASKS[mask]
        check("Attention", inputs, ["y"], num_heads=HEADS, unidirectional=unidirectional, held=("w", "b"))

    def test_past_and_present(self) -> None:
        past = normal(2, BATCH, HEADS, 3, SIZE)
        inputs = {
            "x": normal(BATCH, 2, 6),
            "w": normal(6, 3 * HIDDEN),
            "b": normal(3 * HIDDEN),
            "-m": NONE,
            "past": past,
        }
        check("Attention", inputs, ["y", "present"], num_heads=HEADS, unidirectional=1)

    def test_bias_scale_and_sizes(self) -> None:
        inputs = {
            "x": normal(BATCH, LENGTH, 6),
            "w": normal(6, 2 * HIDDEN + 12),
            "b": normal(2 * HIDDEN + 12),
            "-m": NONE,
            "-past": NONE,
            "bias": normal(1, HEADS, LENGTH, LENGTH),
        }
        check("Attention", inputs, ["y"], num_heads=HEADS, scale=0.3, qkv_hidden_sizes=[HIDDEN, HIDDEN, 12])

    @pytest.mark.parametrize("columns", [False, True])
    def test_quantised(self, columns: bool) -> None:
        """Weights of seven bits: without VNNI, onnxruntime adds pairs of products in 16 bits, which saturate."""
        rng = np.random.default_rng(0)
        inputs = {
            "x": rng.integers(0, 256, (BATCH, LENGTH, 6)).astype(np.uint8),
            "w": rng.integers(-64, 64, (6, 3 * HIDDEN)).astype(np.int8),
            "b": normal(3 * HIDDEN),
            "sx": np.array(0.02, np.float32),
            "sw": np.linspace(0.01, 0.02, 3 * HIDDEN, dtype=np.float32) if columns else np.array(0.01, np.float32),
            "m": MASKS["lengths"],
            "zx": np.array(128, np.uint8),
            "zw": np.zeros(3 * HIDDEN if columns else (), np.int8),
        }
        check("QAttention", inputs, ["y"], num_heads=HEADS, held=("w", "sw", "zw"))


class TestMultiHeadAttention:
    def test_three_projections_with_bias(self) -> None:
        q, k, v = (normal(BATCH, n, HIDDEN, seed=i) for i, n in enumerate((LENGTH, 7, 7)))
        check("MultiHeadAttention", {"q": q, "k": k, "v": v, "b": normal(3 * HIDDEN)}, ["y"], num_heads=HEADS)

    @pytest.mark.parametrize("mask", ["lengths", "keys"])
    def test_padding_and_bias_of_scores(self, mask: str) -> None:
        inputs = {n: normal(BATCH, LENGTH, HIDDEN, seed=i) for i, n in enumerate("qkv")}
        inputs |= {"-b": NONE, "m": MASKS[mask], "a": normal(BATCH, HEADS, LENGTH, LENGTH)}
        check("MultiHeadAttention", inputs, ["y"], num_heads=HEADS)

    def test_packed_is_the_same_as_apart(self) -> None:
        """onnxruntime's CPU kernels take no packed inputs, so the witness is our own import of separate ones."""
        q, k, v = (normal(BATCH, LENGTH, HEADS, SIZE, seed=i) for i in range(3))
        apart = {n: x.reshape(BATCH, LENGTH, HIDDEN) for n, x in (("q", q), ("k", k), ("v", v))}
        all_packed = {"q": np.stack([q, k, v], axis=3)}
        pair_packed = {"q": apart["q"], "kv": np.stack([k, v], axis=3)}
        results = []
        for inputs in (apart, all_packed, pair_packed):
            model = model_with("MultiHeadAttention", inputs, ["y"], num_heads=HEADS)
            results.append(run_imported(import_model(model), inputs)[0])
        np.testing.assert_array_equal(results[0], results[1])
        np.testing.assert_array_equal(results[0], results[2])

    @pytest.mark.parametrize("unidirectional", [0, 1])
    def test_past(self, unidirectional: int) -> None:
        inputs = {n: normal(BATCH, LENGTH, HIDDEN, seed=i) for i, n in enumerate("qkv")}
        inputs |= {"-b": NONE, "-m": NONE, "-a": NONE}
        inputs |= {n: normal(BATCH, HEADS, 3, SIZE, seed=i) for i, n in enumerate(("pk", "pv"))}
        outputs = ["y", "present_k", "present_v"]
        check("MultiHeadAttention", inputs, outputs, num_heads=HEADS, unidirectional=unidirectional)

    def test_keys_of_another_sequence(self) -> None:
        inputs = {"q": normal(BATCH, LENGTH, HIDDEN)}
        inputs |= {n: normal(BATCH, HEADS, 7, SIZE, seed=i) for i, n in enumerate("kv")}
        check("MultiHeadAttention", inputs, ["y"], num_heads=HEADS)


def grouped(past: int, length: int, room: int | None = None, batch: int = 1, packed: bool = False) -> dict[str, Array]:
    """Inputs of GroupQueryAttention with 4 query heads and 2 key heads."""
    room = past if room is None else room
    q, k, v = normal(batch, length, HIDDEN), normal(batch, length, 2 * SIZE, seed=1), normal(batch, length, 2 * SIZE)
    apart = {"q": q, "k": k, "v": v}
    merged = {"q": np.concatenate([q, k, v], axis=2), "-k": NONE, "-v": NONE}
    return {
        **(merged if packed else apart),
        "pk": normal(batch, 2, room, SIZE, seed=3),
        "pv": normal(batch, 2, room, SIZE, seed=4),
        "last": np.full(batch, past + length - 1, np.int32),
        "total": np.array(past + length, np.int32),
    }


CACHES = {"cos": np.cos(normal(32, SIZE // 2)), "sin": np.sin(normal(32, SIZE // 2))}


class TestGroupQueryAttention:
    outputs = ["y", "present_k", "present_v"]

    def check(self, inputs: dict[str, Array], **attributes: Any) -> None:
        heads = {"num_heads": HEADS, "kv_num_heads": 2}
        check("GroupQueryAttention", inputs, self.outputs, held=("total",), **heads, **attributes)

    @pytest.mark.parametrize("packed", [False, True])
    def test_prompt(self, packed: bool) -> None:
        self.check(grouped(0, LENGTH, packed=packed, batch=BATCH))

    @pytest.mark.parametrize("batch", [1, 2])
    def test_next_token(self, batch: int) -> None:
        self.check(grouped(6, 1, batch=batch))

    @pytest.mark.parametrize("interleaved", [0, 1])
    def test_rotary(self, interleaved: int) -> None:
        self.check(grouped(6, 1) | CACHES, do_rotary=1, rotary_interleaved=interleaved)
        self.check(grouped(0, LENGTH) | CACHES, do_rotary=1, rotary_interleaved=interleaved)

    def test_window_and_softcap(self) -> None:
        self.check(grouped(6, 1), local_window_size=3)
        self.check(grouped(0, LENGTH), local_window_size=2)
        self.check(grouped(0, LENGTH), softcap=2.0, scale=0.5)

    def test_smooth_softmax(self) -> None:
        self.check(grouped(0, LENGTH), smooth_softmax=1)


class TestRotaryEmbedding:
    @pytest.mark.parametrize("interleaved", [0, 1])
    @pytest.mark.parametrize("places", [np.array([3], np.int64), np.arange(10).reshape(2, 5)])
    def test_by_features(self, interleaved: int, places: Array) -> None:
        inputs = {"x": normal(BATCH, LENGTH, HIDDEN), "p": places.astype(np.int64), **CACHES}
        check("RotaryEmbedding", inputs, ["y"], interleaved=interleaved)

    def test_by_heads_and_of_some_features(self) -> None:
        places = np.arange(10).reshape(2, 5)
        check("RotaryEmbedding", {"x": normal(BATCH, HEADS, LENGTH, SIZE), "p": places, **CACHES}, ["y"])
        half = {n: np.ascontiguousarray(c[:, :2]) for n, c in CACHES.items()}
        inputs = {"x": normal(BATCH, LENGTH, HIDDEN), "p": places, **half}
        check("RotaryEmbedding", inputs, ["y"], num_heads=HEADS, rotary_embedding_dim=4)
