"""onnxruntime's attention of one token: DecoderMaskedMultiHeadAttention against onnxruntime, and
DecoderMaskedSelfAttention, which it has for GPUs only, against that."""

from typing import Any

import numpy as np
import pytest

from onnxla.errors import OnnxlaError
from onnxla.frontends.onnx.importer import import_model
from onnxla.hlo.types import Array
from tests.frontends.rules.test_contrib_attention import NONE, check, model_with, normal
from tests.frontends.witness import run_imported, s32

BATCH, HEADS, SIZE, ROOM = 2, 3, 8, 7
HIDDEN = HEADS * SIZE
MULTI_HEAD = "DecoderMaskedMultiHeadAttention"
PAST = [0, 3, ROOM - 1]


def step(past: int, rows: int = BATCH, **changed: Array) -> dict[str, Array]:
    """The inputs of one step in their order; those named with `-` are left out, `changed` replaces them."""
    inputs = {
        "q": normal(rows, 1, HIDDEN),
        "k": normal(rows, 1, HIDDEN, seed=1),
        "v": normal(rows, 1, HIDDEN, seed=2),
        "-mask": NONE,
        "-bias": NONE,
        "past_key": normal(rows, HEADS, ROOM, SIZE, seed=3),
        "past_value": normal(rows, HEADS, ROOM, SIZE, seed=4),
        "length": s32([past]),
        "-beams": NONE,
        "-indirection": NONE,
        "-projection": NONE,
    }
    given = {n.lstrip("-"): n for n in inputs}
    for name, value in changed.items():
        inputs = {(name if n == given[name] else n): (value if n == given[name] else v) for n, v in inputs.items()}
    return inputs


def flags(past: int, rows: int = BATCH) -> Array:
    mask = np.ones((rows, past + 1), np.int32)
    mask[0, :past:2] = 0
    return mask


def shared(inputs: dict[str, Array], outputs: str = "y k2 v2", **attributes: Any) -> None:
    check(MULTI_HEAD, inputs, outputs.split(), num_heads=HEADS, past_present_share_buffer=1, **attributes)


@pytest.mark.parametrize("past", PAST)
class TestSelfAttention:
    @pytest.mark.parametrize("held", [(), ("length",)], ids=["computed", "constant"])
    def test_caches_with_room(self, past: int, held: tuple[str, ...]) -> None:
        shared(step(past), held=held)

    def test_mask_scale_and_scores(self, past: int) -> None:
        masked = step(past, mask=flags(past))
        shared(masked, "y k2 v2 qk", output_qk=1, scale=0.3, mask_filter_value=-50.0)

    def test_scores_without_mask(self, past: int) -> None:
        shared(step(past), "y k2 v2 qk", output_qk=1, held=("length",))

    def test_biases(self, past: int) -> None:
        bias = normal(1, HEADS, 1, past + 1, seed=5)
        shared(step(past, bias=bias, mask=flags(past), projection=normal(3 * HIDDEN, seed=6)))

    def test_beams(self, past: int) -> None:
        """Each beam's past tokens are in the caches that cache_indirection names."""
        rows, beams = 6, 3
        indirection = np.random.default_rng(past).integers(0, beams, (2, beams, ROOM)).astype(np.int32)
        bias = np.zeros((1, 1, 1, past + 1), np.float32)
        inputs = step(past, rows, mask=flags(past, rows), bias=bias, beams=s32([beams]), indirection=indirection)
        shared(inputs)

    def test_packed_is_apart(self, past: int) -> None:
        """onnxruntime's kernel fails on packed queries, keys and values; they are what they are apart."""
        apart = step(past)
        packed = {"qkv": np.concatenate([apart["q"], apart["k"], apart["v"]], 2), "-k": NONE, "-v": NONE}
        packed |= {n: v for n, v in apart.items() if n not in ("q", "k", "v")}
        results = [
            run_imported(import_model(model), {i.name: inputs[i.name] for i in model.graph.input})
            for inputs in (apart, packed)
            for model in [
                model_with(MULTI_HEAD, inputs, ["y", "k2", "v2"], num_heads=HEADS, past_present_share_buffer=1)
            ]
        ]
        for a, p in zip(*results, strict=True):
            np.testing.assert_array_equal(a, p)


CROSS = {
    "q": normal(BATCH, 1, HIDDEN),
    "k": normal(BATCH, HEADS, 5, SIZE, seed=1),
    "v": normal(BATCH, HEADS, 5, SIZE, seed=2),
}


class TestCrossAttention:
    def test_output_and_scores(self) -> None:
        check(MULTI_HEAD, CROSS, ["y", "", "", "qk"], num_heads=HEADS, output_qk=1)

    def test_mask_and_bias(self) -> None:
        left_out = {f"-{i}": NONE for i in range(6)}
        inputs = CROSS | {"mask": s32([[1, 1, 0, 1, 1], [0, 1, 1, 1, 1]])} | left_out
        check(MULTI_HEAD, inputs | {"projection": normal(3 * HIDDEN)}, ["y"], num_heads=HEADS)


def self_attention(past: Array, **attributes: Any) -> list[Array]:
    inputs = {
        "x": normal(BATCH, 1, 5),
        "w": normal(5, 3 * HIDDEN, seed=1),
        "b": normal(3 * HIDDEN, seed=2),
        "mask": flags(3),
        "past": past,
        "-bias": NONE,
        "length": s32([3]),
    }
    model = model_with("DecoderMaskedSelfAttention", inputs, ["y", "present"], num_heads=HEADS, **attributes)
    return run_imported(import_model(model), {i.name: inputs[i.name] for i in model.graph.input})


class TestDecoderMaskedSelfAttention:
    def expected(self) -> list[Array]:
        """The product with the weights by numpy, and the operator above behind it."""
        merged = normal(BATCH, 1, 5) @ normal(5, 3 * HIDDEN, seed=1) + normal(3 * HIDDEN, seed=2)
        q, k, v = np.split(merged, 3, axis=2)
        inputs = step(3, q=q, k=k, v=v, mask=flags(3))
        model = model_with(MULTI_HEAD, inputs, ["y", "k2", "v2"], num_heads=HEADS, past_present_share_buffer=1)
        return run_imported(import_model(model), {i.name: inputs[i.name] for i in model.graph.input})

    def test_past_grows(self) -> None:
        y, keys, values = self.expected()
        caches = step(3)
        past = np.stack([caches["past_key"], caches["past_value"]])[:, :, :, :3]
        ours, present = self_attention(past)
        np.testing.assert_allclose(ours, y, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(present, np.stack([keys, values])[:, :, :, :4], rtol=1e-5, atol=1e-6)

    def test_keys_of_a_shared_buffer_are_reordered(self) -> None:
        """[size / 4, room, 4] in the place of [room, size], four numbers of 4 bytes being 16 bytes."""

        def reordered(keys: Array) -> Array:
            grouped = keys.reshape(BATCH, HEADS, ROOM, SIZE // 4, 4)
            return np.ascontiguousarray(grouped.transpose(0, 1, 3, 2, 4)).reshape(keys.shape)

        y, keys, values = self.expected()
        caches = step(3)
        past = np.stack([reordered(caches["past_key"]), caches["past_value"]])
        ours, present = self_attention(past, past_present_share_buffer=1)
        np.testing.assert_allclose(ours, y, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(present, np.stack([reordered(keys), values]), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("inputs", "outputs", "attributes", "message"),
    [
        (step(3, q=normal(BATCH, 2, HIDDEN)), "y", {}, "is not one token"),
        ({n: v for n, v in step(3).items() if n in "qkv"}, "y", {}, "past_key and past_value are missing"),
        ({n: v for n, v in step(3).items() if n[:4] in "q k v -mask -bias past"}, "y", {}, "past_sequence_length is"),
        (step(3, mask=flags(ROOM)), "y", {}, "does not fit caches with room for 7"),
        (CROSS, "y k2", {}, "cross attention with attention_bias or a present key is not known"),
    ],
)
def test_refusals(inputs: dict[str, Array], outputs: str, attributes: dict[str, Any], message: str) -> None:
    model = model_with(MULTI_HEAD, inputs, outputs.split(), num_heads=HEADS, past_present_share_buffer=1, **attributes)
    with pytest.raises(OnnxlaError, match=message):
        import_model(model)
