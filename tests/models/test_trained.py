"""Models with the weights of estimators that scikit-learn trained: its own predictions are a fourth witness."""

from typing import Any

import numpy as np
import pytest
from onnx import helper
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier

from onnxla.hlo.types import Array
from tests.frontends.witness import model_of
from tests.models.witnesses import check, model


@pytest.fixture(scope="module")
def digits() -> tuple[Array, Array]:
    """Pictures of digits [1797, 64], from 0 to 1, and what they show."""
    data = load_digits()
    return (data.data / 16).astype(np.float32), data.target


@pytest.mark.filterwarnings("ignore")
def test_logistic_regression(digits: tuple[Array, Array]) -> None:
    x, target = digits
    fitted = LogisticRegression(max_iter=50).fit(x, target)
    network = model(
        """<ir_version: 10, opset_import: ["": 17]>
        regression (float[N,64] x) => (int64[N] digit, float[N,10] probability) {
            scores = Gemm<transB = 1>(x, w, b)
            probability = Softmax(scores)
            digit = ArgMax<axis = 1, keepdims = 0>(scores)
        }""",
        {"w": fitted.coef_.astype(np.float32), "b": fitted.intercept_.astype(np.float32)},
    )
    digit, probability = check(network, {"x": x[:200]})
    np.testing.assert_array_equal(digit, fitted.predict(x[:200]))
    np.testing.assert_allclose(probability, fitted.predict_proba(x[:200]), rtol=1e-3, atol=1e-5)


@pytest.mark.filterwarnings("ignore")
def test_multilayer_perceptron(digits: tuple[Array, Array]) -> None:
    x, target = digits
    fitted = MLPClassifier((32, 16), max_iter=30, random_state=0).fit(x[:600], target[:600])
    weights = {f"w{i}": w.astype(np.float32) for i, w in enumerate(fitted.coefs_)}
    weights |= {f"b{i}": b.astype(np.float32) for i, b in enumerate(fitted.intercepts_)}
    network = model(
        """<ir_version: 10, opset_import: ["": 17]>
        perceptron (float[N,64] x) => (float[N,10] y) {
            h0 = Gemm(x, w0, b0)
            a0 = Relu(h0)
            h1 = Gemm(a0, w1, b1)
            a1 = Relu(h1)
            h2 = Gemm(a1, w2, b2)
            y = Softmax(h2)
        }""",
        weights,
    )
    (y,) = check(network, {"x": x[:77]})
    np.testing.assert_allclose(y, fitted.predict_proba(x[:77]), rtol=1e-3, atol=1e-5)


def test_decision_tree(digits: tuple[Array, Array]) -> None:
    x, target = digits
    fitted = DecisionTreeClassifier(max_depth=6, random_state=0).fit(x, target)
    node = helper.make_node(
        "TreeEnsembleClassifier", ["x"], ["digit", "score"], domain="ai.onnx.ml", **tree_attributes(fitted.tree_)
    )
    network = model_of([node], {"x": x[:150]}, {"digit": 7, "score": 1}, opset=17, domains={"ai.onnx.ml": 3})
    digit, score = check(network, {"x": x[:150]})
    np.testing.assert_array_equal(digit, fitted.predict(x[:150]))
    np.testing.assert_allclose(score, fitted.predict_proba(x[:150]), rtol=1e-4, atol=1e-6)


def tree_attributes(tree: Any) -> dict[str, Any]:
    """The attributes of TreeEnsembleClassifier for one tree of scikit-learn's."""
    count = tree.node_count
    leaves = [i for i in range(count) if tree.children_left[i] < 0]
    shares = tree.value[:, 0] / tree.value[:, 0].sum(axis=1, keepdims=True)
    classes = range(shares.shape[1])
    # x <= threshold in doubles, for values and thresholds that are floats, is x <= the float next below
    thresholds = np.array(tree.threshold, np.float32)
    thresholds = np.where(thresholds > tree.threshold, np.nextafter(thresholds, np.float32(-np.inf)), thresholds)
    return {
        "nodes_treeids": [0] * count,
        "nodes_nodeids": list(range(count)),
        "nodes_featureids": [max(int(f), 0) for f in tree.feature],
        "nodes_values": [float(t) for t in thresholds],
        "nodes_modes": ["LEAF" if i in leaves else "BRANCH_LEQ" for i in range(count)],
        "nodes_truenodeids": [max(int(c), 0) for c in tree.children_left],
        "nodes_falsenodeids": [max(int(c), 0) for c in tree.children_right],
        "class_treeids": [0 for _ in leaves for _ in classes],
        "class_nodeids": [i for i in leaves for _ in classes],
        "class_ids": [c for _ in leaves for c in classes],
        "class_weights": [float(shares[i, c]) for i in leaves for c in classes],
        "classlabels_int64s": list(classes),
        "post_transform": "NONE",
    }
