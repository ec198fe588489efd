"""Operators of ai.onnx.ml against onnxruntime."""

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper

from onnxla.errors import OnnxlaError
from onnxla.frontends.onnx.importer import import_model
from onnxla.hlo.types import Array
from tests.frontends.witness import check_against_onnxruntime, model_of, run_imported

ML = "ai.onnx.ml"
TRANSFORMS = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"]


def rows(count: int = 7, features: int = 4, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal((count, features)).astype(np.float32)


def model_with(op: str, x: Array, outputs: list[str], version: int = 3, **attributes: Any) -> ModelProto:
    node = helper.make_node(op, ["x"], outputs, domain=ML, **attributes)
    return model_of([node], {"x": x}, outputs, domains={ML: version})


def check(
    op: str, x: Array, outputs: list[str] | None = None, rtol: float = 1e-5, version: int = 3, **attributes: Any
) -> None:
    check_against_onnxruntime(
        model_with(op, x, outputs or ["y"], version, **attributes), {"x": x}, rtol=rtol, atol=1e-6
    )


def numbers(count: int, seed: int = 0) -> list[float]:
    return [float(v) for v in np.random.default_rng(seed).standard_normal(count).astype(np.float32)]


class TestFeatures:
    def test_scaler(self) -> None:
        check("Scaler", rows(), offset=numbers(4), scale=numbers(4, 1))
        check("Scaler", rows(), offset=[0.5], scale=[2.0])

    @pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
    def test_normalizer(self, norm: str) -> None:
        x = rows()
        x[2] = 0
        check("Normalizer", x, norm=norm)

    def test_binarizer(self) -> None:
        check("Binarizer", rows(), threshold=0.25)

    def test_imputer(self) -> None:
        x = rows()
        x[x > 0.5] = np.nan
        check("Imputer", x, imputed_value_floats=numbers(4), replaced_value_float=float("nan"))
        whole = np.array([[1, -1, 3], [-1, 5, 6]], np.int64)
        check("Imputer", whole, imputed_value_int64s=[7], replaced_value_int64=-1)

    def test_one_hot_encoder(self) -> None:
        check("OneHotEncoder", np.array([[1, 3], [9, 2]], np.int64), cats_int64s=[3, 1, 2])

    def test_feature_vectorizer(self) -> None:
        node = helper.make_node("FeatureVectorizer", ["x", "z"], ["y"], domain=ML, inputdimensions=[4, 2])
        fed = {"x": rows(3), "z": rows(3, 2, 1)}
        check_against_onnxruntime(model_of([node], fed, ["y"], domains={ML: 1}), fed)

    def test_array_feature_extractor(self) -> None:
        node = helper.make_node("ArrayFeatureExtractor", ["x", "i"], ["y"], domain=ML)
        fed = {"x": rows(), "i": np.array([3, 0, 3], np.int64)}
        check_against_onnxruntime(model_of([node], fed, ["y"], domains={ML: 1}), fed)

    def test_zip_map_needs_a_label_for_each_score(self) -> None:
        with pytest.raises(OnnxlaError, match="3 class labels do not fit 4 scores"):
            import_model(model_with("ZipMap", rows(), ["y"], classlabels_int64s=[0, 1, 2]))

    @pytest.mark.parametrize("op", ["DictVectorizer", "CastMap"])
    def test_maps_as_inputs_are_refused(self, op: str) -> None:
        with pytest.raises(OnnxlaError, match="a map is not a tensor"):
            import_model(model_with(op, rows(), ["y"]))


class TestLabels:
    def test_numbers_to_numbers(self) -> None:
        x = np.array([[4, 7], [1, 99]], np.int64)
        check("LabelEncoder", x, keys_int64s=[1, 4, 7], values_floats=[0.5, 1.5, 2.5], default_float=-3.0)
        check("LabelEncoder", x, keys_int64s=[1, 4, 7], values_int64s=[10, 20, 30])

    def test_nan_is_a_key(self) -> None:
        x = np.array([1.5, np.nan, 2.0], np.float32)
        check("LabelEncoder", x, keys_floats=[1.5, float("nan")], values_int64s=[10, 20], version=4)

    def test_known_strings(self) -> None:
        node = helper.make_node(
            "LabelEncoder", ["s"], ["y"], domain=ML, keys_strings=["a", "b"], values_int64s=[5, 6], default_int64=9
        )
        held = {"s": np.array(["b", "a", "c"], object)}
        model = model_of([node], {}, ["y"], initializers=held, domains={ML: 3})
        np.testing.assert_array_equal(run_imported(import_model(model), {})[0], [6, 5, 9])

    def test_numbers_under_keys_that_are_strings_are_refused(self) -> None:
        model = model_with("LabelEncoder", np.array([1, 2]), ["y"], keys_strings=["a", "b"], values_int64s=[1, 2])
        with pytest.raises(OnnxlaError, match="the keys are strings, and the input is numbers"):
            import_model(model)


class TestLinear:
    @pytest.mark.parametrize("transform", [*TRANSFORMS, "PROBIT"])
    def test_regressor(self, transform: str) -> None:
        small = [v * 0.05 for v in numbers(8)]
        check("LinearRegressor", rows(), coefficients=small, intercepts=[0.4, 0.5], targets=2, post_transform=transform)

    @pytest.mark.parametrize("transform", TRANSFORMS)
    @pytest.mark.parametrize("classes, targets", [(2, 1), (2, 2), (3, 3)])
    def test_classifier(self, transform: str, classes: int, targets: int) -> None:
        check(
            "LinearClassifier",
            rows(),
            ["y", "z"],
            coefficients=numbers(4 * targets),
            intercepts=numbers(targets, 1),
            classlabels_ints=[10, 20, 30][:classes],
            post_transform=transform,
        )


class TestSupportVectors:
    @pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
    @pytest.mark.parametrize("probabilities", [False, True])
    @pytest.mark.parametrize("classes", [2, 3, 4])
    def test_classifier(self, kernel: str, probabilities: bool, classes: int) -> None:
        counts = [2, 3, 4, 2][:classes]
        total, pairs = sum(counts), classes * (classes - 1) // 2
        attributes: dict[str, Any] = {
            "kernel_type": kernel,
            "kernel_params": [0.3, 0.2, 2.0],
            "support_vectors": numbers(total * 4),
            "vectors_per_class": counts,
            "coefficients": numbers((classes - 1) * total, 1),
            "rho": numbers(pairs, 2),
            "classlabels_ints": [10, 20, 30, 40][:classes],
        }
        if probabilities:
            attributes |= {"prob_a": [-abs(v) for v in numbers(pairs, 3)], "prob_b": numbers(pairs, 4)}
        for transform in TRANSFORMS:
            check("SVMClassifier", rows(), ["y", "z"], rtol=1e-4, post_transform=transform, **attributes)

    @pytest.mark.parametrize("one_class", [0, 1])
    def test_regressor(self, one_class: int) -> None:
        check(
            "SVMRegressor",
            rows(),
            kernel_type="RBF",
            kernel_params=[0.3, 0.0, 0.0],
            support_vectors=numbers(20),
            coefficients=numbers(5, 1),
            rho=[0.2],
            n_supports=5,
            one_class=one_class,
        )


def forest(
    kind: str, targets: list[int], negative: bool, modes: tuple[str, str] = ("BRANCH_LEQ",) * 2
) -> dict[str, Any]:
    """Two trees, the second one level deeper; every leaf votes for all of `targets`."""
    rng = np.random.default_rng(5)
    leaves = [(0, 1), (0, 2), (1, 1), (1, 3), (1, 4)]
    votes = [(t, n, c) for t, n in leaves for c in targets]
    return {
        "nodes_treeids": [0, 0, 0, 1, 1, 1, 1, 1],
        "nodes_nodeids": [0, 1, 2, 0, 1, 2, 3, 4],
        "nodes_featureids": [0, 0, 0, 1, 0, 2, 0, 0],
        "nodes_modes": [modes[0], "LEAF", "LEAF", modes[1], "LEAF", modes[0], "LEAF", "LEAF"],
        "nodes_values": [0.1, 0.0, 0.0, -0.2, 0.0, 0.3, 0.0, 0.0],
        "nodes_truenodeids": [1, 0, 0, 1, 0, 3, 0, 0],
        "nodes_falsenodeids": [2, 0, 0, 2, 0, 4, 0, 0],
        f"{kind}_treeids": [t for t, _, _ in votes],
        f"{kind}_nodeids": [n for _, n, _ in votes],
        f"{kind}_ids": [c for _, _, c in votes],
        f"{kind}_weights": [float(v) for v in rng.uniform(-1 if negative else 0, 0.5, len(votes))],
    }


class TestTrees:
    @pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
    @pytest.mark.parametrize("base", [{}, {"base_values": [0.5, -0.25]}])
    def test_regressor(self, aggregate: str, base: dict[str, Any]) -> None:
        attributes = forest("target", [0, 1], True)
        check("TreeEnsembleRegressor", rows(), n_targets=2, aggregate_function=aggregate, **attributes, **base)

    @pytest.mark.parametrize(
        "modes", [("BRANCH_LT", "BRANCH_GTE"), ("BRANCH_GT", "BRANCH_LEQ"), ("BRANCH_EQ", "BRANCH_NEQ")]
    )
    def test_kinds_of_nodes(self, modes: tuple[str, str]) -> None:
        x = np.round(rows(30) * 10) / np.float32(10)
        x[3, 0] = x[4, 1] = np.nan
        check("TreeEnsembleRegressor", x, n_targets=1, **forest("target", [0], True, modes))

    def test_missing_values(self) -> None:
        x = rows()
        x[:3, 0] = np.nan
        tracks: dict[str, Any] = {"nodes_missing_value_tracks_true": [1, 0, 0, 0, 0, 0, 0, 0]}
        check("TreeEnsembleRegressor", x, n_targets=1, **forest("target", [0], True), **tracks)

    def test_double(self) -> None:
        check("TreeEnsembleRegressor", rows().astype(np.float64), n_targets=1, **forest("target", [0], True))

    @pytest.mark.parametrize("transform", TRANSFORMS)
    @pytest.mark.parametrize("voted", [[0], [1], [0, 1]])
    @pytest.mark.parametrize("negative", [False, True])
    @pytest.mark.parametrize("base", [{}, {"base_values": [0.3]}, {"base_values": [0.3, -0.4]}])
    def test_two_classes(self, transform: str, voted: list[int], negative: bool, base: dict[str, Any]) -> None:
        attributes = forest("class", voted, negative) | base
        labels: dict[str, Any] = {"classlabels_int64s": [0, 1], "post_transform": transform}
        check("TreeEnsembleClassifier", rows(), ["y", "z"], **attributes, **labels)

    @pytest.mark.parametrize("transform", TRANSFORMS)
    @pytest.mark.parametrize("voted", [[0, 1, 2], [0, 2]])
    @pytest.mark.parametrize("base", [{}, {"base_values": [0.3, -0.4, 0.1]}])
    def test_three_classes(self, transform: str, voted: list[int], base: dict[str, Any]) -> None:
        attributes = forest("class", voted, True) | base
        labels: dict[str, Any] = {"classlabels_int64s": [10, 20, 30], "post_transform": transform}
        check("TreeEnsembleClassifier", rows(), ["y", "z"], **attributes, **labels)

    def test_a_cycle_is_refused(self) -> None:
        attributes = forest("target", [0], True)
        attributes["nodes_modes"][1] = "BRANCH_LEQ"
        with pytest.raises(OnnxlaError, match="cycle"):
            import_model(model_with("TreeEnsembleRegressor", rows(), ["y"], n_targets=1, **attributes))

    def test_a_missing_child_is_refused(self) -> None:
        attributes = forest("target", [0], True)
        attributes["nodes_truenodeids"][0] = 77
        with pytest.raises(OnnxlaError, match="tree 0 has no node 77"):
            import_model(model_with("TreeEnsembleRegressor", rows(), ["y"], n_targets=1, **attributes))
