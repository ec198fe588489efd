"""Attention, RotaryEmbedding and TensorScatter of ai.onnx against onnxruntime."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from onnx import helper

from onnxla.errors import OnnxlaError
from onnxla.frontends.onnx.importer import import_model
from onnxla.hlo.types import Array
from tests.frontends.witness import check_against_onnxruntime, model_of, run_imported

BATCH, QUERIES, KEYS, HEADS, SIZE = 2, 4, 6, 6, 8


def normal(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def inputs_of(key_heads: int = HEADS, queries: int = QUERIES, keys: int = KEYS) -> dict[str, Array]:
    q, k, v = normal(BATCH, HEADS, queries, SIZE), *(normal(BATCH, key_heads, keys, SIZE, seed=i) for i in (1, 2))
    return {"q": q, "k": k, "v": v}


def check(inputs: Mapping[str, Array], outputs: tuple[str, ...] = ("y",), opset: int = 24, **attributes: Any) -> None:
    names = [n if not n.startswith("-") else "" for n in inputs]
    fed = {n: a for n, a in inputs.items() if n in names}
    node = helper.make_node("Attention", names, list(outputs), **attributes)
    model = model_of([node], fed, [o for o in outputs if o], opset=opset)
    check_against_onnxruntime(model, fed, rtol=1e-4, atol=1e-5)


NONE = np.zeros(0, np.float32)


@pytest.mark.parametrize("key_heads", [HEADS, 3, 1])
@pytest.mark.parametrize("opset", [23, 24])
def test_heads_in_groups(key_heads: int, opset: int) -> None:
    check(inputs_of(key_heads), opset=opset)


def test_heads_side_by_side() -> None:
    inputs = {n: a.transpose(0, 2, 1, 3).reshape(BATCH, a.shape[2], -1) for n, a in inputs_of(3).items()}
    check({n: np.ascontiguousarray(a) for n, a in inputs.items()}, q_num_heads=HEADS, kv_num_heads=3)


@pytest.mark.parametrize(
    "mask", [(QUERIES, KEYS), (1, QUERIES, KEYS), (BATCH, 1, QUERIES, KEYS), (BATCH, HEADS, QUERIES, KEYS)]
)
@pytest.mark.parametrize("flags", [False, True])
def test_masks(mask: tuple[int, ...], flags: bool) -> None:
    values = normal(*mask)
    check(inputs_of() | {"m": values > -0.5 if flags else values})


def test_causal() -> None:
    check(inputs_of(queries=KEYS), is_causal=1)
    check(inputs_of(queries=KEYS) | {"m": normal(KEYS, KEYS)}, is_causal=1)


@pytest.mark.parametrize("causal", [0, 1])
def test_past_and_present(causal: int) -> None:
    past = {n: normal(BATCH, 3, 5, SIZE, seed=i) for i, n in enumerate(("pk", "pv"))}
    check(inputs_of(3, keys=QUERIES) | {"-m": NONE} | past, ("y", "nk", "nv"), is_causal=causal)


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
def test_scores_on_request(mode: int) -> None:
    options: dict[str, Any] = {"softcap": 2.0, "scale": 0.3, "qk_matmul_output_mode": mode}
    check(inputs_of() | {"m": normal(QUERIES, KEYS)}, ("y", "", "", "qk"), **options)


def test_a_query_that_sees_nothing_gives_zero() -> None:
    mask = np.ones((QUERIES, KEYS), bool)
    mask[2] = False
    fed = inputs_of() | {"m": mask}
    node = helper.make_node("Attention", list(fed), ["y"])
    (y,) = run_imported(import_model(model_of([node], fed, ["y"], opset=24)), fed)
    assert np.isfinite(y).all() and not y[:, :, 2].any() and y[:, :, 1].all()


def test_lone_past_is_refused() -> None:
    fed = inputs_of() | {"m": normal(QUERIES, KEYS), "pk": normal(BATCH, HEADS, 2, SIZE)}
    node = helper.make_node("Attention", list(fed), ["y"])
    with pytest.raises(OnnxlaError, match="past_key and past_value come together"):
        import_model(model_of([node], fed, ["y"], opset=24))


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("positions", [False, True])
def test_rotary_embedding(interleaved: int, positions: bool) -> None:
    caches = {n: normal(*((32,) if positions else (BATCH, QUERIES)), SIZE // 2, seed=i) for i, n in enumerate("cs")}
    fed = {"x": normal(BATCH, HEADS, QUERIES, SIZE), **caches}
    if positions:
        fed["p"] = np.array([[3, 4, 5, 6], [0, 31, 2, 9]], np.int64)
    node = helper.make_node("RotaryEmbedding", list(fed), ["y"], interleaved=interleaved)
    check_against_onnxruntime(model_of([node], fed, ["y"], opset=23), fed, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["linear", "circular"])
def test_tensor_scatter(mode: str) -> None:
    starts = np.array([1, 4 if mode == "circular" else 3], np.int64)
    fed = {"c": normal(2, 3, 6, 4), "u": normal(2, 3, 3, 4), "i": starts}
    node = helper.make_node("TensorScatter", list(fed), ["y"], mode=mode, axis=-2)
    (y,) = run_imported(import_model(model_of([node], fed, ["y"], opset=24)), fed)
    expected = fed["c"].copy()
    for n, start in enumerate(starts):
        for t in range(3):
            expected[n, :, (start + t) % 6] = fed["u"][n, :, t]
    np.testing.assert_array_equal(y, expected)
