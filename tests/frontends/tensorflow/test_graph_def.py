"""GraphDefs: text and binary, which values are inputs and outputs, and what is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format

import onnxla
from onnxla.errors import CompileError, DynamicShapeError, InputError, ModelFormatError, UnsupportedOpError
from onnxla.frontends.tensorflow.importer import import_tensorflow
from onnxla.frontends.tensorflow.messages import GraphDef
from onnxla.frontends.tensorflow.model_file import read_tensorflow
from onnxla.frontends.tensorflow.report import explain
from tests.frontends.tensorflow.graphs import graph

TEXT = """
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "shape" value { shape { dim { size: -1 } dim { size: 3 } } } } }
node { name: "two" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 2.0 } } } }
node { name: "y" op: "Mul" input: "x" input: "two" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "z" op: "Relu" input: "y" }
node { name: "unused" op: "NoOp" input: "^x" }
versions { producer: 2000 }
"""


def test_text_and_binary_files_give_the_same(tmp_path: Path) -> None:
    (tmp_path / "graph.pbtxt").write_text(TEXT)
    (tmp_path / "graph.pb").write_bytes(text_format.Parse(TEXT, GraphDef()).SerializeToString())
    x = np.array([[1, -2, 3]], np.float32)
    for name in ("graph.pbtxt", "graph.pb"):
        model = onnxla.compile(tmp_path / name)
        assert [t.name for t in model.get_inputs()] == ["x"] and [t.name for t in model.get_outputs()] == ["z"]
        np.testing.assert_array_equal(model(x), [[2, 0, 6]])


def test_outputs_may_be_any_values(tmp_path: Path) -> None:
    (tmp_path / "graph.pbtxt").write_text(TEXT)
    model = onnxla.compile(tmp_path / "graph.pbtxt", outputs=["y:0", "x"], dims={"x.0": 2})
    y, x = model(np.ones((2, 3), np.float32))
    np.testing.assert_array_equal(y, 2 * x)
    assert [t.name for t in model.get_outputs()] == ["y", "x"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"outputs": ["nothing"]}, "has no value 'nothing'"),
        ({"inputs": ["y"]}, "is computed by Mul; only placeholders can be inputs"),
        ({"signature": "serve"}, "a graph without signatures"),
        ({"state": {"w": 0.0}}, "has no variable 'w'"),
    ],
)
def test_wrong_names_are_refused(tmp_path: Path, arguments: dict[str, Any], message: str) -> None:
    (tmp_path / "graph.pbtxt").write_text(TEXT)
    with pytest.raises(InputError, match=message):
        onnxla.compile(tmp_path / "graph.pbtxt", **arguments)


def test_a_placeholder_that_is_no_input_is_named() -> None:
    g = graph(("x", "Placeholder", []), ("y", "Relu", ["x"]))
    with pytest.raises(UnsupportedOpError, match="the graph reads x, which is not among the inputs"):
        import_tensorflow(g, inputs=[], outputs=["y"])


def test_every_problem_is_reported_at_once() -> None:
    """Unknown operations, shapes that depend on data and strings, each by its node; what reads them is not blamed."""
    g = graph(
        ("x", "Placeholder", []),
        ("u", "Unique", ["x"]),
        ("w", "Where", ["x"]),
        ("s", "AsString", ["x"]),
        ("m", "Mystery", ["x"]),
        ("after", "AddV2", ["u", "m"]),
    )
    with pytest.raises(CompileError) as found:
        import_tensorflow(g, inputs=["x"], outputs=["after", "w", "s"], shapes={"x": (4,)})
    causes = {p.node.name: (p.kind, p.cause) for p in found.value.problems if p.node is not None}
    assert causes == {
        "u": (DynamicShapeError, "tf.unique gives as many values as are different"),
        "w": (DynamicShapeError, "tf.where with one operand gives as many rows as there are nonzero elements"),
        "s": (UnsupportedOpError, "AsString works on strings, which compiled code does not"),
        "m": (UnsupportedOpError, "Mystery has no import rule"),
    }


END = "write it in other operations, or end the graph before it, outputs=[...] (--to), and do the rest outside"


def test_what_is_certain_behind_failed_nodes_is_reported_too() -> None:
    """Of NonMaxSuppression and strings always; of Where since Mystery computes; nothing of a Where over a shape."""
    g = graph(
        ("x", "Placeholder", []),
        ("m", "Mystery", ["x"]),
        ("r", "Relu", ["m"]),
        ("c", "Conv2", ["r"]),
        ("w", "Where", ["r"]),
        ("n", "NonMaxSuppressionV3", ["r"]),
        ("s", "Shape", ["r"]),
        ("ws", "Where", ["s"]),
        ("t", "AsString", ["r"]),
    )
    with pytest.raises(CompileError) as found:
        import_tensorflow(g, inputs=["x"], outputs=["c", "w", "n", "ws", "t"], shapes={"x": (4,)})
    assert str(found.value) == (
        "5 problems\n"
        "Mystery has no import rule\n"
        "  node   m (Mystery), node 1\n"
        "  input  x:0 f32[4]\n"
        f"  hint   {END}\n"
        "Conv2 has no import rule\n"
        "  node   c (Conv2), node 3\n"
        "  input  r:0 (not known: what gives it failed)\n"
        f"  hint   Conv2D has one; {END}\n"
        "tf.where with one operand gives as many rows as there are nonzero elements\n"
        "  node   w (Where), node 4\n"
        "  input  r:0 (not known: what gives it failed)\n"
        "  hint   replace it by operations of fixed size, such as a mask\n"
        "non-max suppression keeps as many boxes as the data says\n"
        "  node   n (NonMaxSuppressionV3), node 5\n"
        "  input  r:0 (not known: what gives it failed)\n"
        "  hint   replace it by operations of fixed size, such as a mask\n"
        "AsString works on strings, which compiled code does not\n"
        "  node   t (AsString), node 8\n"
        "  input  r:0 (not known: what gives it failed)\n"
        "  hint   do it before the model runs"
    )
    assert explain(
        read_tensorflow(g), inputs=["x"], outputs=["c", "w", "n", "ws", "t"], shapes={"x": (4,)}
    ).problems == (found.value.problems)


def test_problems_are_in_the_order_of_the_graph() -> None:
    """Whatever is imported first: u is needed by the last output alone."""
    g = graph(
        ("x", "Placeholder", []),
        ("u", "Unique", ["x"]),
        ("m", "Mystery", ["x"]),
        ("w", "Where", ["x"]),
        ("r", "Relu", ["u"]),
    )
    with pytest.raises(CompileError) as found:
        import_tensorflow(g, inputs=["x"], outputs=["w", "m", "r"], shapes={"x": (4,)})
    assert [p.node.name for p in found.value.problems if p.node] == ["u", "m", "w"]


def test_functions_behind_failed_nodes_are_looked_into() -> None:
    """Calls and branches that run; not the branch that a constant rules out."""
    g = graph(
        ("x", "Placeholder", []), ("m", "Mystery", ["x"]), ("call", "PartitionedCall", ["m"]), constants={"no": 0}
    )
    for name, op in (("inner", "Surf"), ("then", "Wave"), ("other", "Swim")):
        function = g.library.function.add()
        function.signature.name = name
        function.signature.input_arg.add(name="a")
        function.signature.output_arg.add(name="b")
        function.node_def.add(name=op, op=op, input=["a"])
        function.ret["b"] = f"{op}:y:0"
    g.node[-1].attr["f"].func.name = "inner"
    chosen = g.node.add(name="if", op="If", input=["no", "m"])
    chosen.attr["then_branch"].func.name = "then"
    chosen.attr["else_branch"].func.name = "other"
    with pytest.raises(UnsupportedOpError) as found:
        import_tensorflow(g, inputs=["x"], outputs=["call", "if"], shapes={"x": (4,)})
    assert [p.node.name for p in found.value.problems if p.node] == ["m", "call/Surf", "if/Swim"]


def test_everything_that_a_graph_lacks_is_said_beside_its_other_faults() -> None:
    g = graph(
        ("x", "Placeholder", []),
        ("a", "Mystery", ["gone"]),
        ("b", "AddV2", ["x", "lost", "^never"]),
        ("y", "AddV2", ["a", "b"]),
    )
    with pytest.raises(ModelFormatError) as found:
        import_tensorflow(g, inputs=["x"], outputs=["y"], shapes={"x": (4,)})
    assert str(found.value) == (
        "graph is not a valid model\n"
        "  a reads from gone, which graph does not have\n"
        "  b reads from lost, which graph does not have\n"
        "  b reads from never, which graph does not have\n"
        "  hint   freeze or cut the graph again with all that its outputs need\n"
        "Mystery has no import rule\n"
        "  node   a (Mystery), node 1\n"
        "  input  gone:0 (not known: what gives it failed)\n"
        f"  hint   {END}"
    )
    broken = graph(("x", "Placeholder", []), ("x", "Relu", ["a:b:c:0"]), ("y", "Add", ["x:1:2:3", "gone"]))
    with pytest.raises(ModelFormatError) as found:
        import_tensorflow(broken, inputs=["x"], outputs=["y"])
    assert str(found.value) == (
        "two nodes are called x\n  y (Add): 'x:1:2:3' is no name of a value\n"
        "  y reads from gone, which graph does not have"
    )


def test_a_shape_from_an_input_tells_the_chain() -> None:
    nodes: list[Any] = [("n", "Placeholder", [], "int32"), ("r", "Range", ["zero", "n", "one"])]
    g = graph(*nodes, constants={"zero": 0, "one": 1})
    with pytest.raises(DynamicShapeError) as found:
        import_tensorflow(g, inputs=["n"], outputs=["r"], shapes={"n": ()})
    (problem,) = found.value.problems
    assert ("chain", "n (input) -> r") in problem.details and problem.needs_constants == ("n",)
    model = onnxla.compile(g, inputs=["n"], outputs=["r"], constants={"n": np.int32(3)})
    np.testing.assert_array_equal(model(), [0, 1, 2])


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([("a", "Relu", ["b"]), ("b", "Relu", ["a"])], "waits for itself"),
        ([("a", "Relu", ["b"])], "a reads from b, which graph does not have"),
        ([("a", "Placeholder", []), ("a", "Relu", [])], "two nodes are called a"),
        ([("a", "Relu", ["x:y:z:0"])], "is no name of a value"),
    ],
)
def test_graphs_that_are_none_are_refused(nodes: list[Any], message: str) -> None:
    with pytest.raises(ModelFormatError, match=message):
        import_tensorflow(graph(*nodes), outputs=["a"])


def test_bytes_that_are_no_graph_are_refused(tmp_path: Path) -> None:
    (tmp_path / "graph.pb").write_bytes(b"\x0a\xff\xff\xff\xff")
    with pytest.raises(ModelFormatError, match="cannot be read as a GraphDef"):
        onnxla.compile(tmp_path / "graph.pb")


def test_a_loop_of_known_length_may_change_its_shapes() -> None:
    """It is written out; one of unknown length is refused."""
    arrays = np.load(Path(__file__).parent / "operations" / "growing_loop.npz")
    g = GraphDef.FromString(arrays["graph"].tobytes())
    cut: dict[str, Any] = {key: [str(n) for n in arrays[key]] for key in ("inputs", "outputs")}
    assert onnxla.compile(g, **cut)(np.array([1, 2], np.float32)).shape == (5,)
    _let_the_data_say_how_often(g)
    with pytest.raises(DynamicShapeError, match="and how often the loop runs is known at run time only"):
        import_tensorflow(g, **cut)


def _let_the_data_say_how_often(g: Any) -> None:
    """The loop's condition compares its counter with the sum of the loop variable."""
    function = next(f for f in g.library.function if any(n.op == "Less" for n in f.node_def))
    less = next(n for n in function.node_def if n.op == "Less")
    axis = function.node_def.add(name="axis", op="Const")
    axis.attr["value"].tensor.dtype = 3
    axis.attr["value"].tensor.tensor_shape.dim.add(size=1)
    function.node_def.add(name="sum", op="Sum", input=[function.signature.input_arg[3].name, "axis:output:0"])
    cast = function.node_def.add(name="cast", op="Cast", input=["sum:output:0"])
    cast.attr["DstT"].type = 3
    less.input[1] = "cast:y:0"


@pytest.mark.parametrize(
    ("op", "kernel"),
    [("_FusedConv2D", (3, 3, 2, 4)), ("_FusedDepthwiseConv2dNative", (3, 3, 2, 2)), ("_FusedMatMul", (2, 4))],
)
def test_fused_operations_are_what_they_are_made_of(op: str, kernel: tuple[int, ...]) -> None:
    """With a bias and a leaky relu, against the operations one after another."""
    plain = {"_FusedConv2D": "Conv2D", "_FusedDepthwiseConv2dNative": "DepthwiseConv2dNative", "_FusedMatMul": "MatMul"}
    inputs = ["x", "w", "bias"]
    placeholders: list[Any] = [(name, "Placeholder", []) for name in inputs]
    one = graph(*placeholders, ("y", op, inputs))
    several = graph(
        *placeholders, ("p", plain[op], ["x", "w"]), ("q", "BiasAdd", ["p", "bias"]), ("y", "LeakyRelu", ["q"])
    )
    fused = next(n for n in one.node if n.name == "y")
    fused.attr["fused_ops"].list.s.extend([b"BiasAdd", b"LeakyRelu"])
    fused.attr["leakyrelu_alpha"].f = 0.3
    next(n for n in several.node if n.name == "y").attr["alpha"].f = 0.3
    for node in (fused, next(n for n in several.node if n.name == "p")):
        node.attr["padding"].s = b"SAME"
        node.attr["strides"].list.i.extend([1, 1, 1, 1])
    rng = np.random.default_rng(0)
    image = (5, 2) if op == "_FusedMatMul" else (1, 5, 6, 2)
    arrays = [rng.normal(size=s).astype(np.float32) for s in (image, kernel, (4,))]
    shapes = {name: a.shape for name, a in zip(inputs, arrays, strict=True)}
    ours, theirs = (
        import_tensorflow(g, inputs=inputs, outputs=["y"], shapes=shapes).module.entry.evaluate(*arrays)[0]
        for g in (one, several)
    )
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)
