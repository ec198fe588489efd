"""Gradient: derivatives against finite differences."""

from typing import Any

import numpy as np
import pytest
from onnx import helper

import onnxla
from tests.frontends.rules.one_node import normal
from tests.frontends.witness import model_of

CHAINS: dict[str, list[tuple[str, list[str | int], dict[str, Any]]]] = {
    "arithmetic": [("Mul", ["x", "w"], {}), ("Sub", [0, "x"], {}), ("Div", [1, "w"], {})],
    "activations": [("Tanh", ["x"], {}), ("Sigmoid", [0], {}), ("Exp", [1], {}), ("Add", [2, 0], {})],
    "products": [("MatMul", ["x", "w"], {}), ("Transpose", [0], {"perm": [1, 0]}), ("MatMul", [0, 1], {})],
    "extremes": [("ReduceMax", ["x"], {"axes": [1]}), ("ReduceMin", ["w"], {"axes": [0]}), ("Mul", [0, 1], {})],
    "softmax": [("Softmax", ["x"], {"axis": 1}), ("LogSoftmax", ["w"], {"axis": 0}), ("Mul", [0, 1], {})],
    "sums": [("ReduceSum", ["x"], {"keepdims": 1}), ("Mul", [0, "w"], {}), ("Max", [1, "x"], {})],
}


@pytest.mark.parametrize("chain", CHAINS)
def test_against_finite_differences(chain: str) -> None:
    x, w = normal(3, 3, dtype=np.float64), normal(3, 3, dtype=np.float64, seed=1) + 3
    nodes = [
        helper.make_node(op, [i if isinstance(i, str) else f"v{i}" for i in inputs], [f"v{k}"], **attributes)
        for k, (op, inputs, attributes) in enumerate(CHAINS[chain])
    ]
    y = f"v{len(nodes) - 1}"
    node = helper.make_node("Gradient", ["x", "w"], ["dx", "dw"], domain="ai.onnx.preview.training", xs=["x", "w"], y=y)
    feeds = {"x": x, "w": w}
    model = model_of([*nodes, node], feeds, [y, "dx", "dw"], opset=17, domains={"ai.onnx.preview.training": 1})
    compiled = onnxla.compile(model)
    _, *derivatives = compiled.run(None, feeds)
    for name, derivative in zip(feeds, derivatives, strict=True):
        for place in np.ndindex(3, 3):
            step = np.zeros((3, 3))
            step[place] = 1e-6
            above, below = (compiled.run([y], {**feeds, name: feeds[name] + s})[0].sum() for s in (step, -step))
            np.testing.assert_allclose(derivative[place], (above - below) / 2e-6, rtol=1e-5, atol=1e-6)
