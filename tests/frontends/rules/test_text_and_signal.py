"""TfIdfVectorizer, string operators on known strings, MelWeightMatrix and the optimizers."""

from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper

import onnxla
from onnxla.errors import OnnxlaError
from onnxla.frontends.onnx.importer import import_model
from onnxla.hlo.types import Array
from tests.frontends.witness import check_against_onnxruntime, model_of, run_imported, run_onnxruntime

TOKENS = np.array([[1, 1, 3, 3, 3, 7], [8, 6, 7, 5, 6, 8]], np.int64)
POOL: dict[str, Any] = {
    "ngram_counts": [0, 4],
    "ngram_indexes": [0, 1, 2, 3, 4, 5, 6],
    "pool_int64s": [2, 3, 5, 4, 5, 6, 7, 8, 6, 7],
    "min_gram_length": 1,
    "max_gram_length": 2,
}


class TestTfIdf:
    @pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
    @pytest.mark.parametrize("skips", [0, 1, 5])
    @pytest.mark.parametrize("x", [TOKENS, TOKENS[0]])
    def test_numbers(self, mode: str, skips: int, x: Array) -> None:
        weights = [0.5, 2.0, 1.5, 1.0, 3.0, 0.25, 4.0]
        node = helper.make_node(
            "TfIdfVectorizer", ["x"], ["y"], mode=mode, max_skip_count=skips, weights=weights, **POOL
        )
        check_against_onnxruntime(model_of([node], {"x": x}, ["y"]), {"x": x})

    def test_known_strings(self) -> None:
        words = {1: "one", 2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven", 8: "eight"}
        pool = {k: v for k, v in POOL.items() if k != "pool_int64s"}
        pool["pool_strings"] = [words[n] for n in POOL["pool_int64s"]]
        node = helper.make_node("TfIdfVectorizer", ["x"], ["y"], mode="TF", max_skip_count=1, **pool)
        held = {"x": np.array([[words[n] for n in row] for row in TOKENS.tolist()], object)}
        (ours,) = run_imported(import_model(model_of([node], {}, ["y"], initializers=held)), {})
        plain = helper.make_node("TfIdfVectorizer", ["x"], ["y"], mode="TF", max_skip_count=1, **POOL)
        (expected,) = check_against_onnxruntime(model_of([plain], {"x": TOKENS}, ["y"]), {"x": TOKENS})
        np.testing.assert_array_equal(ours, expected)

    def test_any_strings_when_it_runs(self) -> None:
        """Code is made once, for words of the pool and others alike."""
        pool = {k: v for k, v in POOL.items() if k != "pool_int64s"}
        pool["pool_strings"] = ["two", "three", "five", "four", "five", "six", "seven", "eight", "six", "seven"]
        node = helper.make_node("TfIdfVectorizer", ["x"], ["y"], mode="TF", max_skip_count=1, **pool)
        info = helper.make_tensor_value_info("x", TensorProto.STRING, [2, 5])
        model = model_of([node], {"x": info}, {"y": TensorProto.FLOAT})
        compiled = onnxla.compile(model)
        for words in ("five six seven eight two two three nine  five", "\0 six seven seven é two five six five six"):
            x = np.array(words.split(" "), object).reshape(2, 5)
            np.testing.assert_array_equal(compiled.run(None, {"x": x})[0], run_onnxruntime(model, {"x": x})[0])
        assert len(compiled.programs) == 1


def lengths_of(nodes: list[NodeProto], held: dict[str, Array], result: str) -> Array:
    """Run string operators and tell the results apart by a table of numbers, since strings cannot come out."""
    keys = ["ab", "b", "a", "", "B", "AB", "a,b", "c"]
    encode = helper.make_node(
        "LabelEncoder", [result], ["y"], domain="ai.onnx.ml", keys_strings=keys, values_int64s=list(range(len(keys)))
    )
    model = model_of([*nodes, encode], {}, ["y"], initializers=held, domains={"ai.onnx.ml": 3})
    return run_imported(import_model(model), {})[0]


def strings(*values: str) -> Array:
    return np.array(values, object)


class TestStrings:
    def test_concat(self) -> None:
        node = helper.make_node("StringConcat", ["p", "q"], ["s"])
        held = {"p": strings("a", ""), "q": strings("b")}
        np.testing.assert_array_equal(lengths_of([node], held, "s"), [0, 1])

    def test_split(self) -> None:
        node = helper.make_node("StringSplit", ["p"], ["s", "n"], delimiter=",")
        np.testing.assert_array_equal(lengths_of([node], {"p": strings("a,b", "c")}, "s"), [[2, 1], [7, 3]])

    def test_normalizer(self) -> None:
        node = helper.make_node(
            "StringNormalizer", ["p"], ["s"], case_change_action="UPPER", is_case_sensitive=1, stopwords=["c"]
        )
        np.testing.assert_array_equal(lengths_of([node], {"p": strings("ab", "c", "b")}, "s"), [5, 4])

    def test_strings_at_run_time_are_refused(self) -> None:
        info = helper.make_tensor_value_info("p", 8, [2])
        node = helper.make_node("RegexFullMatch", ["p"], ["y"], pattern="a.*")
        with pytest.raises(OnnxlaError, match="constants="):
            import_model(model_of([node], {"p": info}, ["y"]))


@pytest.mark.parametrize("bins, length, rate, low, high", [(8, 16, 8192, 0.0, 4096.0), (40, 512, 16000, 20.0, 7600.0)])
def test_mel_weights(bins: int, length: int, rate: int, low: float, high: float) -> None:
    held: dict[str, Array] = {
        "bins": np.array(bins, np.int64),
        "length": np.array(length, np.int64),
        "rate": np.array(rate, np.int64),
        "low": np.array(low, np.float32),
        "high": np.array(high, np.float32),
    }
    node = helper.make_node("MelWeightMatrix", list(held), ["y"])
    check_against_onnxruntime(model_of([node], {}, ["y"], initializers=held), {})


def test_momentum_of_two_tensors() -> None:
    """The formula of the operator in numpy: onnxruntime has no optimizers in inference builds."""
    rng = np.random.default_rng(0)
    groups = {n: rng.standard_normal(4).astype(np.float32) for n in ("x1", "x2", "g1", "g2", "v1", "v2")}
    fed: dict[str, Array] = {"rate": np.array(0.1, np.float32), "count": np.array(3, np.int64), **groups}
    options: dict[str, Any] = {"alpha": 0.9, "beta": 0.8, "mode": "standard", "norm_coefficient": 0.01}
    outputs = ["nx1", "nx2", "nv1", "nv2"]
    node = helper.make_node("Momentum", list(fed), outputs, domain="ai.onnx.preview.training", **options)
    model = model_of([node], fed, outputs, domains={"ai.onnx.preview.training": 1})
    results = run_imported(import_model(model), fed)
    for i in (1, 2):
        gradient = groups[f"g{i}"] + 0.01 * groups[f"x{i}"]
        velocity = 0.9 * groups[f"v{i}"] + 0.8 * gradient
        np.testing.assert_allclose(results[i + 1], velocity, rtol=1e-5)
        np.testing.assert_allclose(results[i - 1], groups[f"x{i}"] - 0.1 * velocity, rtol=1e-5)
