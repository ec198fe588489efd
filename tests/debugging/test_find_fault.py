"""What a search says beyond passes and kernels: rounding, onnxruntime's own ways, plans, loops, crashes, GPUs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from onnxla.debugging.budget import Budget
from onnxla.debugging.case import judged
from onnxla.debugging.find_culprit import find_culprit
from onnxla.debugging.find_fault import Finding, Model, find_fault
from onnxla.debugging.trial import Outcome, Settings, compared
from onnxla.frontends.onnx.model_file import read_model
from onnxla.passes.simplify.arithmetic import ARITHMETIC
from onnxla.runtime.tensors import Array
from tests.debugging.network import QUICK, search
from tests.debugging.planted import KERNELS, change_rule


def model_of(nodes: Sequence[Any], inputs: dict[str, Array], outputs: Sequence[str], **weights: Array) -> ModelProto:
    """A model that takes arrays like `inputs`."""
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for name, a in inputs.items()
    ]
    results = [helper.make_empty_tensor_value_info(name) for name in outputs]
    initializers = [numpy_helper.from_array(a, name) for name, a in weights.items()]
    graph = helper.make_graph(nodes, "test", infos, results, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def normal(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def found(model: ModelProto, feeds: dict[str, Array], settings: Settings = QUICK) -> Finding:
    fault = search(model, feeds, settings).fault
    assert fault is not None
    return fault


def test_what_rounding_makes_of_numbers_near_zero_is_no_fault() -> None:
    """The reciprocal of a sum of a thousand numbers that is nearly zero."""
    x = normal(1, 1000)
    weights = {"w": normal(1000, 4, seed=1)}
    weights["w"][0] -= (x.astype(np.float64) @ weights["w"] / x[0, 0]).astype(np.float32)[0]
    nodes = [helper.make_node("MatMul", ["x", "w"], ["sum"]), helper.make_node("Reciprocal", ["sum"], ["y"])]
    findings = search(model_of(nodes, {"x": x}, ["y"], **weights), {"x": x})
    assert not findings.outputs[0].agrees
    assert findings.fault is None
    assert [f.culprit.blame.value for f in findings.set_aside] == ["rounding"]


def test_where_the_reference_sides_with_us_it_is_onnxruntimes() -> None:
    """onnxruntime raises integers to powers through float64, and 3 ** 40 does not fit."""
    feeds = {"x": np.array([2, 3], np.int64)}
    nodes = [helper.make_node("Neg", ["x"], ["n"]), helper.make_node("Pow", ["n", "forty"], ["y"])]
    findings = search(model_of(nodes, feeds, ["y"], forty=np.array([40], np.int64)), feeds)
    assert not findings.outputs[0].agrees and findings.fault is None
    assert [(f.culprit.blame.value, f.node.split()[0]) for f in findings.set_aside] == [("onnxruntime", "y")]


def test_a_fault_behind_another_ones_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """What onnxruntime does in its own way comes first, and does not hide what is wrong behind it."""
    KERNELS["select takes the other"].plant(monkeypatch)
    feeds = {"x": np.array([2, 3], np.int64)}
    nodes = [
        helper.make_node("Pow", ["x", "forty"], ["p"]),
        helper.make_node("Greater", ["p", "x"], ["flag"]),
        helper.make_node("Where", ["flag", "x", "p"], ["y"]),
    ]
    findings = search(model_of(nodes, feeds, ["y"], forty=np.array([40], np.int64)), feeds)
    assert findings.fault is not None and findings.fault.node.startswith("y (Where)")
    assert [f.culprit.blame.value for f in findings.set_aside] == ["onnxruntime"]


def test_a_fault_that_no_output_shows_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    change_rule(ARITHMETIC, "negate_twice", lambda b, x: b.negate(x))(monkeypatch)
    feeds = {"x": normal(5)}
    operators, values = ("Abs", "Neg", "Neg", "Abs"), "xabcy"
    nodes = [helper.make_node(op, [values[k]], [values[k + 1]]) for k, op in enumerate(operators)]
    fault = found(model_of(nodes, feeds, ["y"]), feeds)
    assert (str(fault.culprit), fault.node.split()[0], len(fault.nodes)) == ("the pass simplify", "c", 2)


def loop_model(x: Array) -> ModelProto:
    """Three rounds of x = where(x > 0, x / 2, x + 3)."""
    info = helper.make_tensor_value_info
    body = helper.make_graph(
        [
            helper.make_node("Greater", ["before", "zero"], ["flag"]),
            helper.make_node("Div", ["before", "two"], ["half"]),
            helper.make_node("Add", ["before", "three"], ["more"]),
            helper.make_node("Where", ["flag", "half", "more"], ["after"]),
            helper.make_node("Identity", ["go"], ["on"]),
        ],
        "body",
        [
            info("round", TensorProto.INT64, ()),
            info("go", TensorProto.BOOL, ()),
            info("before", TensorProto.FLOAT, x.shape),
        ],
        [info("on", TensorProto.BOOL, ()), info("after", TensorProto.FLOAT, x.shape)],
    )
    nodes = [helper.make_node("Loop", ["count", "", "x"], ["y"], "/loop", body=body)]
    numbers = {name: np.array(n, np.float32) for n, name in enumerate(("zero", "one", "two", "three"))}
    return model_of(nodes, {"x": x}, ["y"], count=np.array(100, np.int64), **numbers)


def test_a_kernel_inside_a_loop_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    KERNELS["select takes the other"].plant(monkeypatch)
    x = normal(6)
    fault = found(loop_model(x), {"x": x})
    assert fault.node.startswith("/loop (Loop)") and fault.culprit.blame.value == "kernel"
    assert "select" in fault.culprit.name
    assert any("of the loop" in detail for detail in fault.culprit.details)


def test_where_every_kernel_is_right_it_is_the_plan() -> None:
    """Results that no kernel gives: as if one had been written over by what came after."""
    feeds = {"x": normal(7)}
    nodes = [helper.make_node("Neg", ["x"], ["n"]), helper.make_node("Sin", ["x"], ["s"])]
    case = judged(model_of(nodes, feeds, ["n", "s"]), feeds, 1)
    results = {"n": case.expected["s"], "s": case.expected["s"]}
    outcome = Outcome(compared(results, case.expected, QUICK), results)
    assert str(find_culprit(case, outcome, QUICK)).startswith("the plan")


@pytest.mark.parametrize("error", [KeyError("x"), ZeroDivisionError("none")])
def test_a_pass_that_fails_is_named(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(b: Any, x: Any) -> Any:
        raise error

    change_rule(ARITHMETIC, "negate_twice", wrong)(monkeypatch)
    feeds = {"x": normal(5)}
    operators, values = ("Abs", "Sin", "Neg", "Neg", "Cos"), "xabcdy"
    nodes = [helper.make_node(op, [values[k]], [values[k + 1]]) for k, op in enumerate(operators)]
    fault = found(model_of(nodes, feeds, ["y"]), feeds)
    assert str(fault.culprit) == "the pass simplify" and type(error).__name__ in fault.culprit.details[0]
    assert len(fault.nodes) == 2 and fault.difference is None


def test_a_kernel_that_cannot_be_made_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from onnxla.codegen.kernels import elementwise

    def wrong(*arguments: Any) -> Any:
        raise IndexError("no")

    monkeypatch.setitem(elementwise._OPERATIONS, "floor", wrong)
    feeds = {"x": normal(5)}
    nodes = [helper.make_node("Neg", ["x"], ["n"]), helper.make_node("Floor", ["n"], ["f"])]
    nodes.append(helper.make_node("Sin", ["f"], ["y"]))
    fault = found(model_of(nodes, feeds, ["y"]), feeds)
    assert fault.culprit.blame.value == "code generation" and "IndexError" in fault.culprit.name
    assert fault.nodes == ("f (Floor), node 1",)


def test_without_time_the_model_is_reported_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time is over when the search begins: nothing is tried, and nobody is blamed without having been asked."""
    change_rule(ARITHMETIC, "negate_twice", lambda b, x: b.negate(x))(monkeypatch)
    x = normal(400, 400)
    values = "xabcdy"
    nodes = [helper.make_node("Neg", [values[k]], [values[k + 1]]) for k in range(4)]
    nodes.append(helper.make_node("MatMul", ["d", "x"], ["y"]))
    model = read_model(model_of(nodes, {"x": x}, ["y"]))
    fault = find_fault(Model(model, Path("."), {"x": x}), QUICK, Budget(1e-6)).fault
    assert fault is not None and not fault.in_time and len(fault.nodes) == 5
    assert str(fault.culprit).startswith("nobody knows")


def test_a_sequence_is_not_cut_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    KERNELS["select takes the other"].plant(monkeypatch)
    feeds = {"x": normal(4, 6)}
    nodes = [
        helper.make_node("SplitToSequence", ["x"], ["parts"], axis=0),
        helper.make_node("ConcatFromSequence", ["parts"], ["joined"], axis=0),
        helper.make_node("Greater", ["joined", "zero"], ["flag"]),
        helper.make_node("Where", ["flag", "joined", "zero"], ["y"]),
    ]
    model = model_of(nodes, feeds, ["y", "parts"], zero=np.array(0, np.float32))
    kind = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    model.graph.output[1].type.CopyFrom(helper.make_sequence_type_proto(kind))
    fault = found(model, feeds)
    assert fault.node == "y (Where), node 3" and len(fault.nodes) == 1


def test_a_kernel_for_a_gpu_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled for a GPU, run by the simulator."""
    from onnxla.runtime import cuda_device
    from tests.gpu.simulated_device import SimulatedDevice

    monkeypatch.setattr(cuda_device, "CudaDevice", SimulatedDevice)
    KERNELS["select takes the other"].plant(monkeypatch)
    feeds = {"x": normal(9)}
    nodes = [
        helper.make_node("Sin", ["x"], ["s"]),
        helper.make_node("Greater", ["s", "zero"], ["flag"]),
        helper.make_node("Where", ["flag", "s", "x"], ["y"]),
    ]
    model = model_of(nodes, feeds, ["y"], zero=np.array(0, np.float32))
    fault = found(model, feeds, Settings(target="gpu"))
    assert fault.culprit.blame.value == "kernel" and "select" in fault.culprit.name
    assert fault.nodes == ("y (Where), node 2",)
