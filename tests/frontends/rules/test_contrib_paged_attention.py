"""com.microsoft.PagedAttention, which onnxruntime has for GPUs only: against its documented semantics in numpy."""

import math
from typing import Any

import numpy as np
import pytest

from onnxla.errors import OnnxlaError
from onnxla.frontends.onnx.importer import import_model
from onnxla.hlo.types import Array
from tests.frontends.rules.test_contrib_attention import NONE, model_with, normal
from tests.frontends.rules.test_contrib_padding import run
from tests.frontends.witness import f32, s32

HEADS, KEY_HEADS, SIZE, BLOCK, BLOCKS = 4, 2, 8, 4, 9
NEW, PAST = [1, 3, 0, 2], [5, 0, 3, 7]
PAGES = s32([[2, 0, -1], [5, -1, -1], [7, -1, -1], [8, 1, 4]])
STARTS = np.concatenate([[0], np.cumsum(NEW)]).astype(np.int32)
TOKENS = sum(NEW)
COS = np.cos(np.arange(12)[:, None] * 0.3 / (1 + np.arange(SIZE // 2))).astype(np.float32)
SIN = np.sin(np.arange(12)[:, None] * 0.3 / (1 + np.arange(SIZE // 2))).astype(np.float32)


def given(tokens: int = TOKENS) -> dict[str, Array]:
    """All inputs in their order; those that start with `-` are left out."""
    return {
        "q": normal(tokens, HEADS * SIZE),
        "k": normal(tokens, KEY_HEADS * SIZE, seed=1),
        "v": normal(tokens, KEY_HEADS * SIZE, seed=2),
        "keys": normal(BLOCKS, BLOCK, KEY_HEADS, SIZE, seed=3),
        "values": normal(BLOCKS, BLOCK, KEY_HEADS, SIZE, seed=4),
        "starts": STARTS,
        "past": s32(PAST),
        "pages": PAGES,
        **{f"-{name}": NONE for name in ("cos", "sin", "slots", "sink", "q_norm", "k_norm")},
    }


def with_inputs(inputs: dict[str, Array], **added: Array) -> dict[str, Array]:
    names = {f"-{n}": n for n in added}
    return {names.get(n, n): added.get(names.get(n, n), v) for n, v in inputs.items()}


def turned(x: Array, place: int) -> Array:
    half = SIZE // 2
    low, high, c, s = x[:, :half], x[:, half:], COS[place], SIN[place]
    return np.concatenate([low * c - high * s, high * c + low * s], 1)


def reference(inputs: dict[str, Array], scale: float = 1 / math.sqrt(SIZE), **attributes: Any) -> list[Array]:
    """Token by token: write all keys first, then let each token read those of its sequence."""
    keys, values = inputs["keys"].copy(), inputs["values"].copy()
    q = inputs["q"].reshape(-1, HEADS, SIZE)
    k, v = (inputs[n].reshape(-1, KEY_HEADS, SIZE) for n in "kv")
    if "q_norm" in inputs:
        q, k = (
            x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * w
            for x, w in ((q, inputs["q_norm"]), (k, inputs["k_norm"]))
        )
    places = [(s, PAST[s] + i) for s, n in enumerate(NEW) for i in range(n)]
    if attributes.get("do_rotary"):
        q, k = (np.stack([turned(x[t], place) for t, (_, place) in enumerate(places)]) for x in (q, k))
    for t, (s, place) in enumerate(places):
        slot = int(inputs["slots"][t]) if "slots" in inputs else int(PAGES[s, place // BLOCK]) * BLOCK + place % BLOCK
        if slot >= 0:
            keys[slot // BLOCK, slot % BLOCK], values[slot // BLOCK, slot % BLOCK] = k[t], v[t]
    output = np.zeros((len(q), HEADS, SIZE))
    window = attributes.get("local_window_size", -1)
    for t, (s, place) in enumerate(places):
        last = place if attributes.get("is_causal", 1) else PAST[s] + NEW[s] - 1
        first = max(0, place - window + 1) if window > 0 else 0
        seen = [(int(PAGES[s, p // BLOCK]), p % BLOCK) for p in range(first, last + 1)]
        for h in range(HEADS):
            scores = np.array([keys[at][h * KEY_HEADS // HEADS] @ q[t, h] for at in seen]) * scale
            cap = attributes.get("softcap", 0)
            scores = cap * np.tanh(scores / cap) if cap else scores
            total = np.exp(scores).sum() + (np.exp(inputs["sink"][h]) if "sink" in inputs else 0)
            output[t, h] = (
                sum(e * values[at][h * KEY_HEADS // HEADS] for e, at in zip(np.exp(scores), seen, strict=True)) / total
            )
    return [output.reshape(len(q), -1), keys, values]


def check(inputs: dict[str, Array], *, native: bool = False, **attributes: Any) -> None:
    heads: dict[str, Any] = {"num_heads": HEADS, "kv_num_heads": KEY_HEADS}
    ours = run("PagedAttention", inputs, "y keys_out values_out", native=native, **heads, **attributes)
    for result, expected in zip(ours, reference(inputs, **attributes), strict=True):
        np.testing.assert_allclose(result, expected, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"is_causal": 0},
        {"local_window_size": 3},
        {"local_window_size": 2, "is_causal": 0},
        {"softcap": 0.7},
        {"scale": 0.1},
    ],
    ids=str,
)
def test_sequences_see_their_own_pages(attributes: dict[str, Any]) -> None:
    check(given(), **attributes)


def test_keys_turn_before_they_are_cached() -> None:
    check(with_inputs(given(), cos=COS, sin=SIN), do_rotary=1)


def test_slots_say_where_keys_go() -> None:
    """-1 writes nothing, as for a prefix that is in the cache already."""
    check(with_inputs(given(), slots=s32([1, -1, 21, 22, 4 * BLOCK - 1, 4 * BLOCK])))


def test_sink_and_norms() -> None:
    norms = {"q_norm": normal(SIZE, seed=5), "k_norm": normal(SIZE, seed=6)}
    check(with_inputs(given(), sink=normal(HEADS, seed=7), **norms), native=True)


def test_packed_is_apart() -> None:
    apart = given()
    packed = {"qkv": np.concatenate([apart["q"], apart["k"], apart["v"]], 1), "-k": NONE, "-v": NONE}
    packed |= {n: v for n, v in apart.items() if n not in ("q", "k", "v")}
    heads: dict[str, Any] = {"num_heads": HEADS, "kv_num_heads": KEY_HEADS}
    for ours, expected in zip(run("PagedAttention", packed, "y k2 v2", **heads), reference(apart), strict=True):
        np.testing.assert_allclose(ours, expected, rtol=2e-5, atol=2e-5)


def test_tokens_behind_the_last_sequence_are_nothing() -> None:
    """Their output is zero, and the caches are as without them."""
    longer, short = given(TOKENS + 2), given()
    longer = {n: np.concatenate([short[n], v[TOKENS:]]) if n in ("q", "k", "v") else v for n, v in longer.items()}
    heads: dict[str, Any] = {"num_heads": HEADS, "kv_num_heads": KEY_HEADS}
    y, keys, values = run("PagedAttention", longer, "y k2 v2", **heads)
    expected, *caches = reference(short)
    np.testing.assert_allclose(y, np.concatenate([expected, np.zeros((2, HEADS * SIZE))]), rtol=2e-5, atol=2e-5)
    for ours, theirs in zip((keys, values), caches, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_latent_cache() -> None:
    """One cache of one head: values are its first features."""
    width, row = 5, normal(TOKENS, SIZE, seed=1)
    inputs = given() | {"k": row, "keys": normal(BLOCKS, BLOCK, 1, SIZE, seed=3)}
    inputs = {("-" + n if n in ("v", "values") else n): v for n, v in inputs.items()}
    attributes: dict[str, Any] = {"kv_cache_layout": "LATENT", "v_head_size": width, "scale": 0.2}
    y, keys = run("PagedAttention", inputs, "y keys_out", num_heads=HEADS, kv_num_heads=1, **attributes)
    doubled = {n: inputs[n] for n in ("q", "starts", "past", "pages")}
    doubled |= {n: np.tile(row, (1, KEY_HEADS)) for n in "kv"}
    doubled |= {n: np.repeat(inputs["keys"], KEY_HEADS, 2) for n in ("keys", "values")}
    expected, expected_keys, _ = reference(doubled, scale=0.2)
    expected = expected.reshape(TOKENS, HEADS, SIZE)[:, :, :width].reshape(TOKENS, -1)
    np.testing.assert_allclose(y, expected, rtol=2e-5, atol=2e-5)
    np.testing.assert_array_equal(keys, expected_keys[:, :, :1])


@pytest.mark.parametrize(
    ("changed", "attributes", "message"),
    [
        ({"keys": np.zeros((BLOCKS, BLOCK, KEY_HEADS, SIZE), np.int8)}, {}, "a quantised cache is not known"),
        ({}, {"kv_cache_layout": "LATENT"}, "wants the attribute scale, and no value"),
        ({}, {"kv_cache_layout": "MIXED"}, "kv_cache_layout='MIXED' is not known"),
        ({"values": normal(BLOCKS, BLOCK, KEY_HEADS, 2)}, {}, "a cache is not"),
        ({"starts": STARTS[1:]}, {}, "do not fit 4 sequences"),
        ({"k": normal(TOKENS, 3)}, {}, "do not fit heads of size 8"),
    ],
)
def test_refusals(changed: dict[str, Array], attributes: dict[str, Any], message: str) -> None:
    inputs = given() | changed
    if "keys" in changed:
        inputs["values"] = changed["keys"]
    heads: dict[str, Any] = {"num_heads": HEADS, "kv_num_heads": KEY_HEADS}
    with pytest.raises(OnnxlaError, match=message):
        import_model(model_with("PagedAttention", inputs, ["y"], **heads, **attributes))


def test_quantisation_scales_are_refused() -> None:
    inputs = given() | {"k_scale": f32([1])}
    model = model_with("PagedAttention", inputs, ["y"], num_heads=HEADS, kv_num_heads=KEY_HEADS)
    with pytest.raises(OnnxlaError, match="the input k_scale is not known"):
        import_model(model)
