"""Every problem of a model in one report, by its whole text; and broken or hostile bytes."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, NodeProto, TensorProto, helper

from onnxla.config import Limits
from onnxla.errors import (
    CompileError,
    DynamicShapeError,
    ModelFormatError,
    OnnxlaError,
    ResourceLimitError,
    ShapeError,
    UnsupportedOpError,
)
from onnxla.frontends.onnx.importer import import_model
from tests.frontends.witness import body_of, model_of, s32

F, INT = TensorProto.FLOAT, TensorProto.INT64
X = np.arange(6, dtype=np.float32).reshape(2, 3)
node = helper.make_node


# One report


def test_all_problems_of_different_kinds_are_listed_once() -> None:
    nodes = [
        node("Wave", ["x"], ["a"], name="first"),
        node("Neg", ["a"], ["skipped"]),
        node("MatMul", ["x", "x"], ["b"], name="second"),
        node("NonZero", ["x"], ["c"], name="third"),
        node("Concat", ["skipped", "b"], ["d"], axis=0),
    ]
    with pytest.raises(CompileError) as caught:
        import_model(model_of(nodes, {"x": X}, {"d": F, "c": INT}))
    assert [p.kind for p in caught.value.problems] == [UnsupportedOpError, ShapeError, DynamicShapeError]
    assert [p.node.name for p in caught.value.problems if p.node] == ["first", "second", "third"]
    assert str(caught.value).startswith("3 problems\nWave at opset 21 has no import rule\n")


def test_problems_of_one_kind_raise_that_kind() -> None:
    nodes = [node("Wave", ["x"], ["a"]), node("Surf", ["x"], ["b"], domain="beach")]
    with pytest.raises(UnsupportedOpError) as caught:
        import_model(model_of(nodes, {"x": X}, ["a", "b"], domains={"beach": 2}))
    assert str(caught.value) == (
        "2 problems\n"
        "Wave at opset 21 has no import rule\n"
        "  node   Wave:a (Wave, opset 21), node 0\n"
        "  input  x f32[2,3]\n"
        "  hint   define Wave as a function in the model, or export it in operators of ONNX\n"
        "beach.Surf at opset 2 has no import rule\n"
        "  node   Surf:b (beach.Surf, opset 2), node 1\n"
        "  input  x f32[2,3]\n"
        "  hint   define beach.Surf as a function in the model, or export it in operators of ONNX"
    )


def test_problems_inside_both_branches_of_an_if_are_listed() -> None:
    branches = {
        name: body_of([node(op, ["x"], [f"{name}_out"], name=op)], {}, {f"{name}_out": F})
        for name, op in (("then_branch", "Wave"), ("else_branch", "Surf"))
    }
    model = model_of([node("If", ["c"], ["y"], name="/if", **branches)], {"x": X, "c": np.array(True)}, ["y"])
    with pytest.raises(UnsupportedOpError) as caught:
        import_model(model)
    assert [p.node.name for p in caught.value.problems if p.node] == ["/if/Wave", "/if/Surf"]


def test_a_shape_that_depends_on_an_input_tells_the_chain_and_the_way_out() -> None:
    nodes = [
        node("Cast", ["k"], ["k64"], to=INT, name="cast"),
        node("Concat", ["k64", "rest"], ["target"], axis=0, name="concat"),
        node("Reshape", ["x", "target"], ["y"], name="reshape"),
    ]
    model = model_of(nodes, {"x": X, "k": s32([3])}, ["y"], initializers={"rest": np.array([-1])})
    with pytest.raises(DynamicShapeError) as caught:
        import_model(model)
    assert str(caught.value) == (
        "input 1 (target) of Reshape decides a shape and depends on the value of k\n"
        "  node   reshape (Reshape, opset 21), node 2\n"
        "  chain  k (input) -> cast -> concat -> reshape\n"
        '  hint   give the value while compiling, constants={"k": ...}, or leave it to the first run'
    )
    assert caught.value.needs_constants == ("k",)


def test_needs_constants_is_empty_while_another_problem_remains() -> None:
    nodes = [node("Reshape", ["x", "k"], ["y"]), node("Wave", ["x"], ["z"])]
    with pytest.raises(CompileError) as caught:
        import_model(model_of(nodes, {"x": X, "k": np.array([3, 2])}, ["y", "z"]))
    assert caught.value.needs_constants == ()


def test_a_shape_decided_by_a_picture_is_not_offered_for_specialisation() -> None:
    big = np.zeros((100, 100), np.float32)
    nodes = [
        node("ReduceMax", ["x"], ["m"], keepdims=0),
        node("Cast", ["m"], ["n"], to=INT),
        node("Reshape", ["n", "one"], ["shape"]),
        node("ConstantOfShape", ["shape"], ["y"]),
    ]
    with pytest.raises(DynamicShapeError, match="depends on the value of x") as caught:
        import_model(model_of(nodes, {"x": big}, ["y"], initializers={"one": np.array([1])}))
    assert caught.value.needs_constants == ()


@pytest.mark.parametrize("op_type", ["NonZero", "Unique"])
def test_data_dependent_shapes_are_refused_and_fold_where_the_data_is_known(op_type: str) -> None:
    model = model_of([node(op_type, ["x"], ["y"])], {"x": X}, {"y": INT if op_type == "NonZero" else F})
    with pytest.raises(DynamicShapeError, match=f"decides the shape of {op_type}'s output") as caught:
        import_model(model)
    assert f"chain  x (input) -> {op_type}:y" in str(caught.value)
    import_model(model, constants={"x": X})


def test_an_encoded_image_has_a_dynamic_shape() -> None:
    model = model_of([node("ImageDecoder", ["x"], ["y"])], {"x": np.zeros(9, np.uint8)}, {"y": TensorProto.UINT8})
    with pytest.raises(DynamicShapeError, match="the encoded image decides the size of the picture"):
        import_model(model)


def test_a_wrong_attribute_is_a_problem_of_its_node() -> None:
    with pytest.raises(CompileError, match="Concat: the attribute axis is FLOAT, not INT"):
        import_model(model_of([node("Concat", ["x"], ["y"], axis=1.5)], {"x": X}, ["y"]))
    with pytest.raises(CompileError, match="Concat: the attribute axis is missing"):
        import_model(model_of([node("Concat", ["x"], ["y"])], {"x": X}, ["y"]))
    with pytest.raises(CompileError, match="Add: input 1 is missing"):
        import_model(model_of([node("Add", ["x"], ["y"])], {"x": X}, ["y"]))


def test_the_declared_type_of_an_output_must_be_true() -> None:
    with pytest.raises(ShapeError, match="output y is declared s64 and computed as f32"):
        import_model(model_of([node("Neg", ["x"], ["y"])], {"x": X}, {"y": INT}))


# Structure


@pytest.mark.parametrize(
    ("nodes", "outputs", "message"),
    [
        (
            [node("Neg", ["nowhere"], ["y"], name="n")],
            ["y"],
            "node n (Neg) of the graph reads 'nowhere', which nothing makes",
        ),
        ([node("Neg", ["x"], ["y"]), node("Abs", ["x"], ["y"])], ["y"], "two nodes of the graph make 'y'"),
        ([node("Neg", ["x"], ["y"])], ["z"], "the graph gives 'z', which nothing makes"),
        (
            [node("Neg", ["b"], ["a"]), node("Neg", ["a"], ["b"])],
            ["a"],
            "the nodes Neg:a, Neg:b form a cycle in the graph",
        ),
        ([node("Neg", ["a"], ["a"])], ["a"], "the nodes Neg:a form a cycle in the graph"),
        (
            [node("If", ["x"], ["y"], name="n", then_branch=body_of([node("Neg", ["no"], ["t"])], {}, {"t": F}))],
            ["y"],
            "node Neg:t (Neg) of then_branch of n reads 'no', which nothing makes",
        ),
    ],
)
def test_a_graph_that_is_none_is_refused(nodes: list[NodeProto], outputs: list[str], message: str) -> None:
    with pytest.raises(ModelFormatError) as caught:
        import_model(model_of(nodes, {"x": X}, outputs))
    assert str(caught.value) == f"test is not a valid model\n  {message}"


def test_a_graph_that_is_none_is_refused_with_its_unknown_operators() -> None:
    """Surf is needed by no output, and in a cycle it is not known what is."""
    nodes = [
        node("Wave", ["x"], ["a"], name="wave"),
        node("Neg", ["ghost"], ["b"], name="n"),
        node("Surf", ["x"], ["c"]),
    ]
    model = model_of([*nodes, node("Add", ["a", "b"], ["y"])], {"x": X}, ["y"])
    with pytest.raises(ModelFormatError) as caught:
        import_model(model)
    assert str(caught.value) == (
        "test is not a valid model\n"
        "  node n (Neg) of the graph reads 'ghost', which nothing makes\n"
        "Wave at opset 21 has no import rule\n"
        "  node   wave (Wave, opset 21), node 0\n"
        "  hint   define Wave as a function in the model, or export it in operators of ONNX"
    )
    cycle = [node("Wave", ["b"], ["a"], name="wave"), node("Neg", ["a"], ["b"], name="n")]
    with pytest.raises(ModelFormatError) as caught:
        import_model(model_of(cycle, {"x": X}, ["a"]))
    assert str(caught.value) == "test is not a valid model\n  the nodes wave, n form a cycle in the graph"


def test_two_inputs_of_one_name_are_refused() -> None:
    model = model_of([node("Neg", ["x"], ["y"])], {"x": X}, ["y"])
    model.graph.input.append(model.graph.input[0])
    with pytest.raises(ModelFormatError, match="two inputs of the graph are named 'x'"):
        import_model(model)


def test_an_unknown_opset_is_refused() -> None:
    for opset in (0, 29, 1 << 20):
        model = model_of([node("Neg", ["x"], ["y"])], {"x": X}, ["y"], opset=opset)
        with pytest.raises(UnsupportedOpError, match=f"opset {opset} of ai.onnx is not known"):
            import_model(model)


def test_a_function_that_calls_itself_is_refused() -> None:
    model = model_of([node("A", ["x"], ["y"], domain="mine")], {"x": X}, ["y"], domains={"mine": 1})
    for name, callee in (("A", "B"), ("B", "A")):
        opsets = [helper.make_opsetid("mine", 1)]
        call = node(callee, ["x"], ["y"], domain="mine")
        model.functions.append(helper.make_function("mine", name, ["x"], ["y"], [call], opsets))
    with pytest.raises(CompileError, match="the function mine.A calls itself"):
        import_model(model)


def test_functions_that_multiply_meet_the_node_limit() -> None:
    """Thirty functions of two calls each would write out a billion nodes."""
    model = model_of([node("F0", ["x"], ["y"], domain="mine")], {"x": X}, ["y"], domains={"mine": 1})
    for i in range(30):
        callee = {"op_type": f"F{i + 1}", "domain": "mine"} if i < 29 else {"op_type": "Neg"}
        nodes = [node(inputs=["x"], outputs=["h"], **callee), node(inputs=["h"], outputs=["y"], **callee)]
        opsets = [helper.make_opsetid("mine", 1), helper.make_opsetid("", 21)]
        model.functions.append(helper.make_function("mine", f"F{i}", ["x"], ["y"], nodes, opsets))
    with pytest.raises(ResourceLimitError, match=r"^the model has 2147483647 nodes with its functions written out; "):
        import_model(model)


def test_calls_that_nobody_reads_do_not_count() -> None:
    nodes = [node("Mine", ["x"], ["dead"], domain="mine"), node("Neg", ["x"], ["y"])]
    model = model_of(nodes, {"x": X}, ["y"], domains={"mine": 1})
    body = [node("Neg", [f"x{i}"], [f"x{i + 1}"]) for i in range(5)]
    opsets = [helper.make_opsetid("", 21)]
    model.functions.append(helper.make_function("mine", "Mine", ["x0"], ["x5"], body, opsets))
    import_model(model, limits=Limits(nodes=2))
    model.graph.output[0].name = "dead"
    assert import_model(model, limits=Limits(nodes=6)).outputs[0].name == "dead"
    with pytest.raises(ResourceLimitError, match="the model has 6 nodes with its functions written out"):
        import_model(model, limits=Limits(nodes=5))


def test_of_the_branches_of_an_if_the_smaller_counts() -> None:
    long = body_of([node("Neg", [a], [b]) for a, b in (("x", "p"), ("p", "q"), ("q", "r"))], {}, {"r": 1})
    short = body_of([node("Neg", ["x"], ["s"])], {}, {"s": 1})
    nodes = [node("If", ["c"], ["y"], then_branch=short, else_branch=long), node("F", ["y"], ["z"], domain="mine")]
    model = model_of(nodes, {"x": X}, ["z"], initializers={"c": np.array(True)}, domains={"mine": 1})
    opsets = [helper.make_opsetid("", 21)]
    model.functions.append(helper.make_function("mine", "F", ["a"], ["b"], [node("Abs", ["a"], ["b"])], opsets))
    import_model(model, limits=Limits(nodes=4))
    with pytest.raises(ResourceLimitError, match="the model has 4 nodes"):
        import_model(model, limits=Limits(nodes=3))


def test_more_dimensions_than_arrays_have_are_refused() -> None:
    shape = np.array([1] * 70)
    model = model_of([node("Reshape", ["x"], ["y"])], {"x": X[:1, :1]}, ["y"], initializers={"s": shape})
    model.graph.node[0].input.append("s")
    model.graph.input.append(helper.make_tensor_value_info("z", F, [1] * 65))
    with pytest.raises(UnsupportedOpError, match="the input z has 65 dimensions; arrays have at most 64"):
        import_model(model)
    del model.graph.input[1]
    with pytest.raises(UnsupportedOpError) as caught:
        import_model(model)
    assert str(caught.value) == (
        "the output y has 70 dimensions; arrays have at most 64\n  hint   merge dimensions by a Reshape"
    )
    model.graph.node.append(node("Flatten", ["y"], ["flat"]))
    model.graph.output[0].name = "flat"
    assert import_model(model).outputs[0].shape == (1, 1)


def test_functions_nested_too_deeply_are_refused() -> None:
    model = model_of([node("F0", ["x"], ["y"], domain="mine")], {"x": X}, ["y"], domains={"mine": 1})
    opsets = [helper.make_opsetid("mine", 1), helper.make_opsetid("", 21)]
    for i in range(2000):
        call = node(f"F{i + 1}", ["x"], ["y"], domain="mine") if i < 1999 else node("Neg", ["x"], ["y"])
        model.functions.append(helper.make_function("mine", f"F{i}", ["x"], ["y"], [call], opsets))
    with pytest.raises(ResourceLimitError, match="nested"):
        import_model(model)


def test_giant_values_meet_the_element_limit() -> None:
    model = model_of(
        [node("ConstantOfShape", ["n"], ["y"])], {}, ["y"], initializers={"n": np.array([1 << 40, 1 << 20])}
    )
    with pytest.raises(ResourceLimitError, match=r"gives f32\[1099511627776,1048576\]"):
        import_model(model)


# Bytes


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0",
        b"not a model at all",
        b"\x08\x07",
        b"\xff" * 40,
        b"<html></html>",
        b"PK\x03\x04" + b"\0" * 60,
        b"\x3a\x80",
    ],
)
def test_bytes_that_are_no_model_are_refused(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    for source in (data, path):
        with pytest.raises(ModelFormatError):
            import_model(source)


def test_names_that_are_not_text_are_refused() -> None:
    data = model_of([node("Neg", ["x"], ["y"], name="abcd")], {"x": X}, ["y"]).SerializeToString()
    for name in (b"abcd", b"Neg"):
        with pytest.raises(ModelFormatError, match="a name that is not UTF-8"):
            import_model(data.replace(name, b"\xff" * len(name)))


def test_paths_that_are_no_file_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing.onnx", "a\0b", "/dev/null"):
        with pytest.raises(ModelFormatError):
            import_model(path)


def serialized() -> bytes:
    body = body_of([node("Add", ["x", "w"], ["t"])], {}, {"t": F})
    other = body_of([node("Sub", ["x", "w"], ["e"])], {}, {"e": F})
    nodes = [
        node("Reshape", ["x", "shape"], ["r"]),
        node("Transpose", ["r"], ["h"], perm=[1, 0]),
        node("If", ["c"], ["y"], then_branch=body, else_branch=other),
        node("Concat", ["y", "h"], ["z"], axis=0),
    ]
    constants = {"shape": np.array([3, 2]), "w": np.ones((2, 3), np.float32)}
    model = model_of(nodes, {"x": X, "c": np.array(True)}, ["z"], initializers=constants)
    return bytes(model.SerializeToString())


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, len(serialized()) - 1), st.integers(0, 255)), min_size=1, max_size=6),
    st.integers(0, 3),
)
def test_a_damaged_model_imports_or_is_refused(edits: list[tuple[int, int]], cut: int) -> None:
    data = bytearray(serialized())
    for place, value in edits:
        data[place] = value
    if cut == 0:
        del data[edits[0][0] :]
    try:
        import_model(bytes(data), limits=Limits(elements=1 << 20))
    except OnnxlaError:
        pass


def nested(depth: int) -> ModelProto:
    """An If in an If in an If ..."""
    body = body_of([node("Neg", ["x"], ["y"])], {}, {"y": F})
    for _ in range(depth):
        plain = body_of([node("Abs", ["x"], ["y"])], {}, {"y": F})
        body = body_of([node("If", ["c"], ["y"], then_branch=body, else_branch=plain)], {}, {"y": F})
    model = model_of([], {"x": X, "c": np.array(True)}, ["y"])
    model.graph.node.extend(body.node)
    return model


def test_deep_nesting_meets_a_limit() -> None:
    import_model(nested(20))
    with pytest.raises(ResourceLimitError, match="nested deeper than 16"):
        import_model(nested(20), limits=Limits(nesting=16))


def test_nesting_beyond_what_protobuf_reads_is_refused() -> None:
    """Each level wraps the one before: ModelProto.graph.node.attribute.g.node.attribute.g ..."""
    graph = b""
    for _ in range(10_000):
        for field in (6, 5, 1):  # AttributeProto.g, NodeProto.attribute, GraphProto.node
            graph = bytes([field << 3 | 2]) + varint(len(graph)) + graph
    with pytest.raises(ModelFormatError):
        import_model(bytes([7 << 3 | 2]) + varint(len(graph)) + graph)


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])
