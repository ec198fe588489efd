"""LSTM, GRU and RNN against onnxruntime: directions, lengths, activations, clipping, layouts."""

from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, helper

from onnxla.frontends.onnx.importer import import_model
from onnxla.hlo.types import Array
from tests.frontends.witness import check_against_onnxruntime, model_of, run_imported

STEPS, BATCH, INPUTS, HIDDEN = 5, 3, 4, 6
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
OPERATORS = sorted(GATES)


def arrays_of(op: str, directions: int, seed: int = 0) -> dict[str, Array]:
    """Inputs of every kind that `op` takes, small enough that gates do not saturate."""
    rng = np.random.default_rng(seed)
    gates = GATES[op] * HIDDEN

    def normal(*shape: int) -> Array:
        return (rng.standard_normal(shape) * 0.5).astype(np.float32)

    arrays = {
        "X": normal(STEPS, BATCH, INPUTS),
        "W": normal(directions, gates, INPUTS),
        "R": normal(directions, gates, HIDDEN),
        "B": normal(directions, 2 * gates),
        "lengths": np.array([5, 2, 4], np.int32),
        "h0": normal(directions, BATCH, HIDDEN),
    }
    if op == "LSTM":
        arrays |= {"c0": normal(directions, BATCH, HIDDEN), "P": normal(directions, 3 * HIDDEN)}
    return arrays


def node_of(op: str, inputs: list[str], **attributes: Any) -> NodeProto:
    outputs = ["Y", "Y_h", "Y_c"] if op == "LSTM" else ["Y", "Y_h"]
    return helper.make_node(op, inputs, outputs, hidden_size=HIDDEN, **attributes)


def check(
    op: str,
    wanted: list[str],
    *,
    direction: str = "forward",
    weights_are_inputs: bool = False,
    opset: int = 21,
    **attributes: Any,
) -> None:
    """Compare a node that is given the inputs `wanted`; the others are left out."""
    arrays = arrays_of(op, 2 if direction == "bidirectional" else 1)
    inputs = [name if name in ("X", "W", "R", *wanted) else "" for name in arrays]
    fed = {n: a for n, a in arrays.items() if n in inputs and (weights_are_inputs or n not in ("W", "R", "B", "P"))}
    held = {n: a for n, a in arrays.items() if n in inputs and n not in fed}
    outputs = ["Y", "Y_h", "Y_c"] if op == "LSTM" else ["Y", "Y_h"]
    node = node_of(op, inputs, direction=direction, **attributes)
    check_against_onnxruntime(model_of([node], fed, outputs, initializers=held, opset=opset), fed)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("op", OPERATORS)
class TestDirections:
    def test_all_inputs(self, op: str, direction: str) -> None:
        check(op, ["B", "lengths", "h0", "c0"], direction=direction)

    def test_no_optional_input(self, op: str, direction: str) -> None:
        check(op, [], direction=direction, weights_are_inputs=True)


@pytest.mark.parametrize("op", OPERATORS)
def test_weights_given_at_run_time(op: str) -> None:
    check(op, ["B", "h0"], weights_are_inputs=True)


@pytest.mark.parametrize("op", OPERATORS)
def test_opset_7(op: str) -> None:
    check(op, ["B", "lengths"], opset=7)


@pytest.mark.parametrize("op", OPERATORS)
def test_clip_bounds_the_input_of_gates(op: str) -> None:
    check(op, ["B", "h0"], clip=0.3)


@pytest.mark.parametrize("name", ["Relu", "Tanh", "Sigmoid", "LeakyRelu", "HardSigmoid", "Elu", "Softsign", "Softplus"])
def test_activation(name: str) -> None:
    check("RNN", ["B"], activations=[name])


def test_thresholded_relu() -> None:
    check("RNN", ["B"], activations=["ThresholdedRelu"], activation_alpha=[0.5])


@pytest.mark.parametrize("name", ["Affine", "ScaledTanh"])
def test_activation_with_alpha_and_beta(name: str) -> None:
    check("RNN", ["B"], activations=[name], activation_alpha=[0.7], activation_beta=[0.4])


def test_alpha_goes_to_the_functions_that_have_one() -> None:
    activations = ["HardSigmoid", "Tanh", "LeakyRelu"]
    check("LSTM", ["B"], activations=activations, activation_alpha=[0.3, 0.05], activation_beta=[0.6])


@pytest.mark.parametrize("before_reset", [0, 1])
@pytest.mark.parametrize("biased", [False, True])
def test_gru_reset_gate_before_or_after_the_product(before_reset: int, biased: bool) -> None:
    wanted = ["B", "h0"] if biased else ["h0"]
    check("GRU", wanted, linear_before_reset=before_reset, direction="bidirectional")
    check("GRU", wanted, linear_before_reset=before_reset, weights_are_inputs=True)


def test_lstm_peepholes() -> None:
    check("LSTM", ["B", "P", "c0"], direction="bidirectional")
    check("LSTM", ["P"], weights_are_inputs=True)


def test_lstm_coupled_input_and_forget_gate() -> None:
    check("LSTM", ["B", "P"], input_forget=1)


@pytest.mark.parametrize("op", OPERATORS)
def test_one_step_makes_no_loop(op: str) -> None:
    arrays = arrays_of(op, 1)
    fed = {"X": arrays["X"][:1]}
    held = {n: arrays[n] for n in ("W", "R", "B")}
    model = model_of([node_of(op, ["X", "W", "R", "B"])], fed, ["Y", "Y_h"], initializers=held)
    del model.graph.node[0].output[2:]
    check_against_onnxruntime(model, fed)
    opcodes = {i.op.opcode for i in import_model(model).module.entry.instructions()}
    assert "while" not in opcodes


@pytest.mark.parametrize("op", OPERATORS)
def test_batchwise_layout_is_the_transposed_result(op: str) -> None:
    """onnxruntime has no layout=1, so the witness is our own layout=0."""
    arrays = arrays_of(op, 2)
    states = [n for n in ("h0", "c0") if n in arrays]
    held = {n: arrays[n] for n in ("W", "R", "B")}
    inputs = ["X", "W", "R", "B", "", *states]
    outputs = ["Y", "Y_h", "Y_c"] if op == "LSTM" else ["Y", "Y_h"]

    def run(layout: int, fed: dict[str, Array]) -> list[Array]:
        node = node_of(op, inputs, direction="bidirectional", layout=layout)
        return run_imported(import_model(model_of([node], fed, outputs, initializers=held)), fed)

    fed = {n: arrays[n] for n in ("X", *states)}
    y, *finals = run(0, fed)
    y_by_batch, *finals_by_batch = run(1, {n: a.transpose(1, 0, 2) for n, a in fed.items()})
    np.testing.assert_allclose(y_by_batch, y.transpose(2, 0, 1, 3), rtol=1e-6)
    for ours, theirs in zip(finals_by_batch, finals, strict=True):
        np.testing.assert_allclose(ours, theirs.transpose(1, 0, 2), rtol=1e-6)


@pytest.mark.parametrize("op", OPERATORS)
def test_no_steps_give_the_initial_state(op: str) -> None:
    arrays = arrays_of(op, 1)
    fed = {"X": np.zeros((0, BATCH, INPUTS), np.float32), "h0": arrays["h0"]}
    held = {n: arrays[n] for n in ("W", "R")}
    node = node_of(op, ["X", "W", "R", "", "", "h0"])
    y, y_h, *_ = run_imported(import_model(model_of([node], fed, list(node.output), initializers=held)), fed)
    assert y.shape == (0, 1, BATCH, HIDDEN)
    np.testing.assert_array_equal(y_h, arrays["h0"])


def test_constant_weights_stand_inside_the_loop_body() -> None:
    arrays = arrays_of("LSTM", 1)
    model = model_of(
        [node_of("LSTM", ["X", "W", "R"])], {"X": arrays["X"]}, ["Y"], initializers={n: arrays[n] for n in ("W", "R")}
    )
    del model.graph.node[0].output[1:]
    (body,) = [c for c in import_model(model).module.computations() if c.name == "time_step"]
    assert any(i.op.opcode == "constant" and i.shape == (4 * HIDDEN, HIDDEN) for i in body.instructions())
