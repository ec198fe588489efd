"""Parts of a model: what is cut, what stays a weight, and which part is the smallest. Nothing is compiled."""

from collections.abc import Callable

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, checker, helper, numpy_helper

from onnxla.debugging.budget import Budget
from onnxla.debugging.model_part import ModelGraph, Part
from onnxla.debugging.smallest_part import smallest_part
from onnxla.frontends.onnx.model_file import read_model
from onnxla.runtime.tensors import Array
from tests.debugging.network import network

NUMBERS: dict[str, Array] = {"x": np.ones((2, 3), np.float32)}


def graph_of(model: ModelProto) -> ModelGraph:
    """The graph of a model as it is read from a file, weights left in it."""
    return ModelGraph(read_model(model.SerializeToString()))


def branching() -> ModelProto:
    """y = w + 1, by a branch that reads `b` and `w` from around it; what w is depends on x's shape only."""
    branch = helper.make_graph(
        [helper.make_node("Add", ["b", "w"], ["sum"])], "branch", [], [helper.make_empty_tensor_value_info("sum")]
    )
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Cast", ["shape"], ["w"], to=TensorProto.FLOAT),
        helper.make_node("ReduceMax", ["x"], ["b"]),
        helper.make_node("Not", ["no"], ["yes"]),
        helper.make_node("If", ["yes"], ["y"], then_branch=branch, else_branch=branch),
    ]
    graph = helper.make_graph(
        nodes,
        "branching",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (2, 3))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.array(False), "no")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def test_a_body_reads_from_around_it() -> None:
    graph = graph_of(branching())
    part = graph.part([4], ["y"])
    assert graph.cut_values(part) == ["yes", "b", "w"]
    assert graph.known(["yes", "b", "w", "shape"]) == {"yes", "w", "shape"}


def test_known_values_become_weights_and_others_inputs() -> None:
    graph = graph_of(branching())
    values = {"yes": np.array(True), "b": np.array(1, np.float32), "w": np.array([2, 3], np.float32)}
    model = graph.extract(graph.part([4], ["y"]), values, {"y": values["w"]}).proto
    checker.check_model(model, full_check=True)
    assert [i.name for i in model.graph.input] == ["b"]
    assert {t.name for t in model.graph.initializer} == {"yes", "w"}
    assert [n.op_type for n in model.graph.node] == ["If"]


def test_a_part_keeps_its_weights_where_they_lie() -> None:
    big = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("Neg", ["x"], ["n"]), helper.make_node("MatMul", ["n", "big"], ["y"])],
        "big",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 64))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(a, name) for name, a in {"unused": big, "big": big}.items()],
    )
    whole = graph_of(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9))
    part = whole.extract(whole.part([1], ["y"]), {"n": np.ones((1, 64), np.float32)}, {})
    assert part.proto.ByteSize() < 1000 and part.raw[0].obj is whole.model.raw[1].obj
    assert np.array_equal(part.initializer(0), big)


def test_only_what_an_output_needs_is_kept() -> None:
    graph = graph_of(network())
    part = graph.part(range(len(graph.nodes)), ["column"])
    assert {graph.nodes[k].op_type for k in part.nodes} == {"Relu", "Transpose", "ReduceSum"}
    assert graph.part([0, 1], ["nothing"]) == Part((), ())


def contains(*operators: str) -> Callable[[ModelGraph, Part], bool]:
    return lambda graph, part: set(operators) <= {graph.nodes[k].op_type for k in part.nodes}


@pytest.mark.parametrize("seconds", [0.0, 1e9], ids=["from the beginning", "by halves"])
@pytest.mark.parametrize(
    ("wanted", "count"), [(("Tanh",), 1), (("Add", "Tanh"), 2), (("Relu", "Reshape"), 4), (("Reciprocal",), 1)]
)
def test_the_smallest_part_is_found(wanted: tuple[str, ...], count: int, seconds: float) -> None:
    graph = graph_of(network())
    shows = contains(*wanted)
    part = smallest_part(graph, graph.whole(), lambda p: shows(graph, p), Budget(60), seconds)
    assert shows(graph, part)
    assert len(part.nodes) == count


def test_without_time_a_part_is_left_as_it_is() -> None:
    graph = graph_of(network())
    whole = graph.whole()
    assert smallest_part(graph, whole, lambda p: True, Budget(0)) == whole
