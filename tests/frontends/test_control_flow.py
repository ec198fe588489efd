"""If, Loop and Scan, against onnxruntime."""

from collections.abc import Sequence

import numpy as np
import pytest
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper

from onnxla.errors import DynamicShapeError, ShapeError
from onnxla.frontends.onnx.importer import import_model
from onnxla.hlo.module import Module
from onnxla.hlo.types import Array
from tests.frontends.witness import body_of, check_against_onnxruntime, f32, model_of

F, INT, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
X = np.arange(6, dtype=np.float32).reshape(2, 3)
node = helper.make_node


def opcodes(module: Module) -> set[str]:
    return {i.op.opcode for c in module.computations() for i in c.instructions()}


# If


def branch(op_type: str, *inputs: str) -> GraphProto:
    return body_of([node(op_type, list(inputs), ["result"])], {}, {"result": F})


def if_model(condition: Array | None = None, then: GraphProto | None = None) -> ModelProto:
    """`y = If(c) then x + w else x - w`, with w captured from outside."""
    nodes = [node("If", ["c"], ["y"], then_branch=then or branch("Add", "x", "w"), else_branch=branch("Sub", "x", "w"))]
    inputs = {"x": X} if condition is not None else {"x": X, "c": np.array(True)}
    weights = {"w": np.ones((2, 3), np.float32), **({"c": condition} if condition is not None else {})}
    return model_of(nodes, inputs, {"y": F}, initializers=weights)


@pytest.mark.parametrize("condition", [True, False])
def test_if_runs_the_branch_that_the_condition_names(condition: bool) -> None:
    check_against_onnxruntime(if_model(), {"x": X, "c": np.array(condition)})


@pytest.mark.parametrize("condition", [True, False])
def test_if_with_a_constant_condition_is_its_branch(condition: bool) -> None:
    model = if_model(np.array(condition))
    check_against_onnxruntime(model, {"x": X})
    assert "conditional" not in opcodes(import_model(model).module)


def test_branches_of_different_shapes_need_the_condition_while_compiling() -> None:
    model = if_model(then=branch("ReduceSum", "x"))
    with pytest.raises(DynamicShapeError) as caught:
        import_model(model)
    assert caught.value.needs_constants == ("c",)
    assert "c (input) -> If:y" in str(caught.value)
    check_against_onnxruntime(model, {"x": X, "c": np.array(True)}, constants=["c"])


def test_a_branch_with_impossible_shapes_needs_the_condition_while_compiling() -> None:
    model = if_model(then=branch("MatMul", "x", "w"))
    with pytest.raises(DynamicShapeError, match="the condition of If") as caught:
        import_model(model)
    assert caught.value.needs_constants == ("c",)
    with pytest.raises(ShapeError):
        import_model(model, constants={"c": np.array(True)})
    (y,) = import_model(model, constants={"c": np.array(False)}).module.entry.evaluate(X)
    assert (y == X - 1).all()


def test_if_inside_if_reads_the_outermost_values() -> None:
    inner = body_of(
        [node("If", ["c"], ["result"], then_branch=branch("Mul", "x", "w"), else_branch=branch("Add", "x", "x"))],
        {},
        {"result": F},
    )
    model = if_model(then=inner)
    # The branches of an inner node must not repeat the names of the outer ones.
    for graph in (a.g for n in inner.node for a in n.attribute):
        graph.node[0].output[0] = graph.output[0].name = "inner"
    check_against_onnxruntime(model, {"x": X, "c": np.array(True)})
    check_against_onnxruntime(model, {"x": X, "c": np.array(False)})


# Loop


def loop_body(
    nodes: list[NodeProto],
    carried: dict[str, tuple[int, Sequence[int | None]]],
    results: dict[str, int],
    condition: str = "goes",
) -> GraphProto:
    inputs = {"i": (INT, []), "goes": (BOOL, []), **carried}
    return body_of([*nodes, node("Identity", [condition], ["goes_on"])], inputs, {"goes_on": BOOL, **results})


def accumulate(stack: bool = True) -> GraphProto:
    """c <- c + x * i, and each c is stacked."""
    nodes = [
        node("Cast", ["i"], ["f"], to=F),
        node("Mul", ["x", "f"], ["xf"]),
        node("Add", ["c", "xf"], ["c2"]),
        node("Neg", ["c2"], ["each"]),
    ]
    return loop_body(nodes, {"c": (F, [2, 3])}, {"c2": F, **({"each": F} if stack else {})})


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_loop_with_a_constant_count_stacks_its_values(count: int) -> None:
    model = model_of(
        [node("Loop", ["n", "", "x"], ["last", "all"], body=accumulate())],
        {"x": X},
        {"last": F, "all": F},
        initializers={"n": np.array(count)},
    )
    check_against_onnxruntime(model, {"x": X})
    assert ("while" in opcodes(import_model(model).module)) == (count > 1)


@pytest.mark.parametrize("count", [0, 1, 7])
def test_loop_without_stacks_may_run_as_often_as_an_input_says(count: int) -> None:
    model = model_of(
        [node("Loop", ["n", "", "x"], ["last"], body=accumulate(stack=False))],
        {"x": X, "n": np.array(0)},
        {"last": F},
    )
    check_against_onnxruntime(model, {"x": X, "n": np.array(count)})


def test_stacks_of_unknown_length_name_the_input_that_decides() -> None:
    model = model_of(
        [node("Loop", ["n", "", "x"], ["last", "all"], body=accumulate())],
        {"x": X, "n": np.array(0)},
        {"last": F, "all": F},
    )
    with pytest.raises(DynamicShapeError) as caught:
        import_model(model)
    assert caught.value.needs_constants == ("n",)
    check_against_onnxruntime(model, {"x": X, "n": np.array(3)}, constants=["n"])


def test_growing_shapes_and_an_unknown_count_need_the_count_while_compiling() -> None:
    body = loop_body([node("Concat", ["c", "x"], ["c2"], axis=0)], {"c": (F, [None, 3])}, {"c2": F})
    model = model_of([node("Loop", ["n", "", "x"], ["last"], body=body)], {"x": X, "n": np.array(0)}, {"last": F})
    with pytest.raises(DynamicShapeError) as caught:
        import_model(model)
    assert caught.value.needs_constants == ("n",)
    check_against_onnxruntime(model, {"x": X, "n": np.array(2)}, constants=["n"])


def doubling() -> GraphProto:
    """c <- 2c while the sum of c stays below the limit."""
    nodes = [
        node("Add", ["c", "c"], ["c2"]),
        node("ReduceSum", ["c2"], ["sum"], keepdims=0),
        node("Less", ["sum", "limit"], ["below"]),
    ]
    return loop_body(nodes, {"c": (F, [2, 3])}, {"c2": F}, condition="below")


@pytest.mark.parametrize("start", [True, False])
@pytest.mark.parametrize("most", [None, 2, 100])
def test_loop_ends_when_its_condition_does(start: bool, most: int | None) -> None:
    model = model_of(
        [node("Loop", ["n" if most else "", "start", "x"], ["last"], body=doubling())],
        {"x": X, "start": np.array(True), "limit": f32(0)},
        {"last": F},
        initializers={"n": np.array(most)} if most else {},
    )
    check_against_onnxruntime(model, {"x": X, "start": np.array(start), "limit": np.array(1000, np.float32)})


def test_values_to_stack_with_an_end_decided_by_data_are_refused() -> None:
    body = doubling()
    body.node.append(node("Neg", ["c2"], ["each"]))
    body.output.append(helper.make_tensor_value_info("each", F, None))
    model = model_of(
        [node("Loop", ["", "start", "x"], ["last", "all"], body=body)],
        {"x": X, "start": np.array(True), "limit": np.array(0, np.float32)},
        {"last": F, "all": F},
    )
    with pytest.raises(DynamicShapeError, match="data decides how often it runs") as caught:
        import_model(model)
    assert not caught.value.needs_constants


def test_a_loop_whose_shapes_grow_is_written_out() -> None:
    body = loop_body([node("Concat", ["c", "x"], ["c2"], axis=0)], {"c": (F, [None, 3])}, {"c2": F})
    model = model_of(
        [node("Loop", ["n", "", "x"], ["last"], body=body)], {"x": X}, {"last": F}, initializers={"n": np.array(3)}
    )
    (last,) = check_against_onnxruntime(model, {"x": X})
    assert last.shape == (8, 3)


def test_a_loop_whose_shapes_grow_too_often_is_refused() -> None:
    body = loop_body([node("Concat", ["c", "x"], ["c2"], axis=0)], {"c": (F, [None, 3])}, {"c2": F})
    model = model_of(
        [node("Loop", ["n", "", "x"], ["last"], body=body)], {"x": X}, {"last": F}, initializers={"n": np.array(1000)}
    )
    with pytest.raises(DynamicShapeError, match=r"f32\[2,3\] before an iteration, f32\[4,3\] after it"):
        import_model(model)


def test_shapes_in_the_body_may_follow_the_iteration_number() -> None:
    nodes = [
        node("Unsqueeze", ["i", "zero"], ["end"]),
        node("Slice", ["x", "zero", "end", "one"], ["part"]),
        node("ReduceSum", ["part"], ["sum"], keepdims=0),
        node("Add", ["c", "sum"], ["c2"]),
    ]
    body = loop_body(nodes, {"c": (F, [])}, {"c2": F})
    model = model_of(
        [node("Loop", ["n", "", "c0"], ["last"], body=body)],
        {"x": X},
        {"last": F},
        initializers={
            "n": np.array(4),
            "c0": np.array(0, np.float32),
            "zero": np.array([0]),
            "one": np.array([1]),
        },
    )
    check_against_onnxruntime(model, {"x": X})


def test_a_sequence_carried_by_a_loop() -> None:
    sequence = helper.make_tensor_sequence_value_info
    body = loop_body([node("SequenceInsert", ["s", "x"], ["s2"])], {}, {})
    body.input.append(sequence("s", F, None))
    body.output.append(sequence("s2", F, None))
    model = model_of(
        [
            node("SequenceEmpty", [], ["empty"]),
            node("Loop", ["n", "", "empty"], ["s3"], body=body),
            node("ConcatFromSequence", ["s3"], ["y"], axis=0),
        ],
        {"x": X},
        {"y": F},
        initializers={"n": np.array(3)},
    )
    check_against_onnxruntime(model, {"x": X})


def test_a_loop_in_a_loop_reads_values_of_both() -> None:
    inner = body_of(
        [
            node("Add", ["d", "c"], ["d1"]),
            node("Add", ["d1", "x"], ["d2"]),
            node("Identity", ["goes_inner"], ["on_inner"]),
        ],
        {"j": (INT, []), "goes_inner": (BOOL, []), "d": (F, [2, 3])},
        {"on_inner": BOOL, "d2": F},
    )
    body = loop_body([node("Loop", ["m", "", "c"], ["c2"], body=inner)], {"c": (F, [2, 3])}, {"c2": F})
    model = model_of(
        [node("Loop", ["n", "", "x"], ["last"], body=body)],
        {"x": X, "m": np.array(0)},
        {"last": F},
        initializers={"n": np.array(3)},
    )
    check_against_onnxruntime(model, {"x": X, "m": np.array(2)})


# Scan


def running_sum() -> GraphProto:
    nodes = [node("Add", ["s", "e"], ["s2"]), node("Mul", ["s2", "w"], ["each"])]
    return body_of(nodes, {"s": (F, [3]), "e": (F, [3])}, {"s2": F, "each": F})


@pytest.mark.parametrize("reverse_in", [0, 1])
@pytest.mark.parametrize("reverse_out", [0, 1])
@pytest.mark.parametrize(("axis_in", "axis_out"), [(0, 0), (1, 1), (-2, -1)])
def test_scan_walks_and_stacks_along_any_axis(reverse_in: int, reverse_out: int, axis_in: int, axis_out: int) -> None:
    walked = np.arange(12, dtype=np.float32).reshape((4, 3) if axis_in in (0, -2) else (3, 4))
    scan = node(
        "Scan",
        ["s0", "walked"],
        ["last", "all"],
        body=running_sum(),
        num_scan_inputs=1,
        scan_input_axes=[axis_in],
        scan_input_directions=[reverse_in],
        scan_output_axes=[axis_out],
        scan_output_directions=[reverse_out],
    )
    start = np.ones(3, np.float32)
    model = model_of([scan], {"s0": start, "walked": walked}, {"last": F, "all": F}, initializers={"w": f32([1, 2, 3])})
    check_against_onnxruntime(model, {"s0": start, "walked": walked})


def test_scan_of_nothing_gives_empty_stacks() -> None:
    scan = node("Scan", ["s0", "walked"], ["last", "all"], body=running_sum(), num_scan_inputs=1)
    start = np.ones(3, np.float32)
    model = model_of(
        [scan],
        {"s0": start, "walked": np.zeros((0, 3), np.float32)},
        {"last": F, "all": F},
        initializers={"w": f32([1, 2, 3])},
    )
    last, stack = import_model(model).module.entry.evaluate(start, np.zeros((0, 3), np.float32))
    assert (last == start).all() and stack.shape == (0, 3)


def test_scan_of_opset_8_has_a_batch() -> None:
    scan = node("Scan", ["", "s0", "walked"], ["last", "all"], body=running_sum(), num_scan_inputs=1)
    start, walked = np.ones((2, 3), np.float32), np.arange(24, dtype=np.float32).reshape(2, 4, 3)
    model = model_of(
        [scan],
        {"s0": start, "walked": walked},
        {"last": F, "all": F},
        initializers={"w": f32([1, 2, 3])},
        opset=8,
    )
    check_against_onnxruntime(model, {"s0": start, "walked": walked})
