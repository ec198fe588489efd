"""Whole training steps as ONNX graphs: forward pass, gradients in plain operators or by Gradient, an optimizer.

The witness is the same training in numpy, in float64, from the operators' definitions: onnxruntime's inference builds
have no optimizers.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxla
from onnxla.hlo.types import Array

TRAINING = "ai.onnx.preview.training"
SHAPES = {"w1": (64, 24), "b1": (24,), "w2": (24, 10), "b2": (10,)}
BATCH = 32
OPTIONS: dict[str, dict[str, Any]] = {
    "Adam": {"alpha": 0.9, "beta": 0.999, "epsilon": 1e-6, "norm_coefficient": 0.001},
    "Adagrad": {"decay_factor": 0.01, "epsilon": 1e-6, "norm_coefficient": 0.0},
    "Momentum": {"alpha": 0.9, "beta": 0.8, "mode": "nesterov", "norm_coefficient": 0.001},
}
STATES = {"Adam": ("v", "h"), "Adagrad": ("h",), "Momentum": ("v",)}
RATES = {"Adam": 0.003, "Adagrad": 0.05, "Momentum": 0.05}


def forward() -> list[onnx.NodeProto]:
    node = helper.make_node
    return [
        node("MatMul", ["x", "w1"], ["m1"]),
        node("Add", ["m1", "b1"], ["z1"]),
        node("Relu", ["z1"], ["a1"]),
        node("MatMul", ["a1", "w2"], ["m2"]),
        node("Add", ["m2", "b2"], ["z2"]),
        node("LogSoftmax", ["z2"], ["log_p"], axis=1),
        node("Mul", ["log_p", "y"], ["chosen"]),
        node("ReduceSum", ["chosen", "rows"], ["sums"], keepdims=0),
        node("ReduceMean", ["sums"], ["mean"], keepdims=0),
        node("Neg", ["mean"], ["loss"]),
    ]


def backward() -> list[onnx.NodeProto]:
    """As training artifacts have it: the derivatives in plain operators."""
    node = helper.make_node
    return [
        node("Exp", ["log_p"], ["p"]),
        node("Sub", ["p", "y"], ["d"]),
        node("Div", ["d", "batch"], ["dz2"]),
        node("Transpose", ["a1"], ["a1_t"]),
        node("MatMul", ["a1_t", "dz2"], ["dw2"]),
        node("ReduceSum", ["dz2", "columns"], ["db2"], keepdims=0),
        node("Transpose", ["w2"], ["w2_t"]),
        node("MatMul", ["dz2", "w2_t"], ["da1"]),
        node("Greater", ["z1", "zero"], ["open"]),
        node("Where", ["open", "da1", "zero"], ["dz1"]),
        node("Transpose", ["x"], ["x_t"]),
        node("MatMul", ["x_t", "dz1"], ["dw1"]),
        node("ReduceSum", ["dz1", "columns"], ["db1"], keepdims=0),
    ]


def gradient_operator() -> list[onnx.NodeProto]:
    """As ONNX has it: one operator that derives the loss."""
    names = list(SHAPES)
    return [helper.make_node("Gradient", names, [f"d{n}" for n in names], domain=TRAINING, xs=names, y="loss")]


def training_step(optimizer: str, derivatives: list[onnx.NodeProto]) -> onnx.ModelProto:
    """(x, y, rate, count, tensors, states) -> (loss, tensors, states)."""
    states = [f"{s}_{n}" for s in STATES[optimizer] for n in SHAPES]
    moving = [*SHAPES, *states]
    update = helper.make_node(
        optimizer,
        ["rate", "count", *SHAPES, *(f"d{n}" for n in SHAPES), *states],
        [f"new_{n}" for n in moving],
        domain=TRAINING,
        **OPTIONS[optimizer],
    )
    info = helper.make_tensor_value_info
    shapes = {**SHAPES, **{s: SHAPES[s.partition("_")[2]] for s in states}}
    inputs = [
        info("x", TensorProto.FLOAT, [BATCH, 64]),
        info("y", TensorProto.FLOAT, [BATCH, 10]),
        info("rate", TensorProto.FLOAT, []),
        info("count", TensorProto.INT64, []),
        *(info(n, TensorProto.FLOAT, shapes[n]) for n in moving),
    ]
    outputs = [info("loss", TensorProto.FLOAT, []), *(info(f"new_{n}", TensorProto.FLOAT, shapes[n]) for n in moving)]
    constants: dict[str, Array] = {
        "rows": np.array([1], np.int64),
        "columns": np.array([0], np.int64),
        "zero": np.array(0, np.float32),
        "batch": np.array(BATCH, np.float32),
    }
    held = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph([*forward(), *derivatives, update], "step", inputs, outputs, held)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(TRAINING, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


# The witness


def loss_and_gradients(tensors: dict[str, Array], x: Array, y: Array) -> tuple[float, dict[str, Array]]:
    z1 = x @ tensors["w1"] + tensors["b1"]
    a1 = np.maximum(z1, 0)
    z2 = a1 @ tensors["w2"] + tensors["b2"]
    log_p = z2 - z2.max(1, keepdims=True)
    log_p -= np.log(np.exp(log_p).sum(1, keepdims=True))
    dz2 = (np.exp(log_p) - y) / BATCH
    dz1 = (dz2 @ tensors["w2"].T) * (z1 > 0)
    gradients = {"w1": x.T @ dz1, "b1": dz1.sum(0), "w2": a1.T @ dz2, "b2": dz2.sum(0)}
    return -float((log_p * y).sum(1).mean()), gradients


def adam(x: Array, g: Array, rate: float, count: int, v: Array, h: Array, o: dict[str, Any]) -> tuple[Array, ...]:
    g = g + o["norm_coefficient"] * x
    v, h = o["alpha"] * v + (1 - o["alpha"]) * g, o["beta"] * h + (1 - o["beta"]) * g * g
    if count > 0:
        rate = rate * np.sqrt(1 - o["beta"] ** count) / (1 - o["alpha"] ** count)
    return x - rate * v / (np.sqrt(h) + o["epsilon"]), v, h


def adagrad(x: Array, g: Array, rate: float, count: int, h: Array, o: dict[str, Any]) -> tuple[Array, ...]:
    g = g + o["norm_coefficient"] * x
    h = h + g * g
    return x - rate / (1 + count * o["decay_factor"]) * g / (np.sqrt(h) + o["epsilon"]), h


def momentum(x: Array, g: Array, rate: float, count: int, v: Array, o: dict[str, Any]) -> tuple[Array, ...]:
    g = g + o["norm_coefficient"] * x
    v = o["alpha"] * v + (o["beta"] if count > 0 else 1) * g
    return x - rate * (g + o["alpha"] * v), v


WITNESSES: dict[str, Callable[..., tuple[Array, ...]]] = {"Adam": adam, "Adagrad": adagrad, "Momentum": momentum}


@pytest.mark.parametrize("derivatives", [backward, gradient_operator])
@pytest.mark.parametrize("optimizer", WITNESSES)
def test_a_training_step_learns_as_the_definitions_say(
    optimizer: str, derivatives: Callable[[], list[onnx.NodeProto]]
) -> None:
    from sklearn.datasets import load_digits

    digits = load_digits()
    images, labels = (digits.data / 16).astype(np.float32), np.eye(10, dtype=np.float32)[digits.target]
    rng = np.random.default_rng(0)
    tensors = {n: (rng.standard_normal(s) / np.sqrt(s[0])).astype(np.float32) * (len(s) > 1) for n, s in SHAPES.items()}
    state = {**tensors, **{f"{s}_{n}": np.zeros(SHAPES[n], np.float32) for s in STATES[optimizer] for n in SHAPES}}
    exact = {name: value.astype(np.float64) for name, value in state.items()}
    step = onnxla.compile(training_step(optimizer, derivatives()))
    names = [o.name for o in step.get_outputs()]
    first = last = 0.0
    for count in range(60):
        batch = rng.integers(0, 1500, BATCH)
        scalars: dict[str, Array] = {"rate": np.array(RATES[optimizer], np.float32), "count": np.array(count, np.int64)}
        found = dict(
            zip(names, step.run(None, {"x": images[batch], "y": labels[batch], **scalars, **state}), strict=True)
        )
        loss, gradients = loss_and_gradients(exact, images[batch].astype(np.float64), labels[batch].astype(np.float64))
        for n in SHAPES:
            old = [exact[f"{s}_{n}"] for s in STATES[optimizer]]
            new = WITNESSES[optimizer](exact[n], gradients[n], float(scalars["rate"]), count, *old, OPTIONS[optimizer])
            exact |= dict(zip([n, *(f"{s}_{n}" for s in STATES[optimizer])], new, strict=True))
        state = {name: found[f"new_{name}"] for name in state}
        assert abs(float(found["loss"]) - loss) < 2e-3 * max(loss, 0.1), f"loss at step {count}"
        first, last = (loss if count == 0 else first), loss
    assert last < 0.7 * first
    for name in SHAPES:
        np.testing.assert_allclose(state[name], exact[name], rtol=5e-3, atol=5e-4)
