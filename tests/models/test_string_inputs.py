"""Inputs of strings that are looked up: categories of scikit-learn's encoders, labels, and words that nobody knows."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper

import onnxla
from onnxla.errors import InputError, UnsupportedOpError
from onnxla.hlo.types import Array
from tests.frontends.witness import tensor

ML = "ai.onnx.ml"
STRING, FLOAT, INT = TensorProto.STRING, TensorProto.FLOAT, TensorProto.INT64


def words(*values: str) -> Array:
    return np.array(values, object).reshape(-1, 1)


def model_of(
    nodes: list[NodeProto],
    inputs: Mapping[str, tuple[int, list[Any]]],
    outputs: Mapping[str, int],
    constants: Mapping[str, Array] | None = None,
) -> ModelProto:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, code, shape) for name, (code, shape) in inputs.items()],
        [helper.make_tensor_value_info(name, code, None) for name, code in outputs.items()],
        [tensor(name, value) for name, value in (constants or {}).items()],
    )
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid(ML, 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def pipeline(rows: int | str) -> ModelProto:
    """One hot categories of two columns, an ordinal one, a scaled number, and a classifier with named classes."""
    nodes = [
        helper.make_node(
            "OneHotEncoder", ["colour"], ["c3"], domain=ML, cats_strings=["red", "green", "blue"], zeros=1
        ),
        helper.make_node("Flatten", ["c3"], ["c"]),
        helper.make_node(
            "LabelEncoder", ["size"], ["s"], domain=ML, keys_strings=["S", "M", "L"], values_floats=[0.0, 1.0, 2.0]
        ),
        helper.make_node("Concat", ["c", "s", "x"], ["all"], axis=1),
        helper.make_node(
            "LinearClassifier",
            ["all"],
            ["label", "scores"],
            domain=ML,
            coefficients=np.random.default_rng(0).standard_normal(3 * 6).tolist(),
            intercepts=[0.1, -0.2, 0.3],
            classlabels_strings=["cheap", "fair", "dear"],
            post_transform="SOFTMAX",
        ),
    ]
    inputs = {"colour": (STRING, [rows, 1]), "size": (STRING, [rows, 1]), "x": (FLOAT, [rows, 2])}
    return model_of(nodes, inputs, {"label": STRING, "scores": FLOAT})


def table(count: int, seed: int = 0) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    return {
        "colour": words(*rng.choice(["red", "green", "blue", "mauve", ""], count)),
        "size": words(*rng.choice(["S", "M", "L"], count)),
        "x": rng.standard_normal((count, 2)).astype(np.float32),
    }


def assert_as_onnxruntime(model: ModelProto, compiled: onnxla.CompiledModel, feeds: Mapping[str, Array]) -> None:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for ours, theirs in zip(compiled.run(None, feeds), session.run(None, feeds), strict=True):
        if theirs.dtype == object:
            assert ours.tolist() == theirs.tolist()
        else:
            assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_a_pipeline_with_categories(tmp_path: Path) -> None:
    model = pipeline(6)
    compiled = onnxla.compile(model)
    assert [t.type for t in compiled.get_inputs()] == ["tensor(string)", "tensor(string)", "tensor(float)"]
    compiled.save(tmp_path / "m.onnxla")
    loaded = onnxla.load_compiled(tmp_path / "m.onnxla")
    for seed in range(4):
        assert_as_onnxruntime(model, compiled, table(6, seed))
        assert_as_onnxruntime(model, loaded, table(6, seed))
    assert len(compiled.programs) == 1  # other words are no reason to compile again
    assert loaded.profile(table(6)).rows


def test_the_number_of_rows_may_be_open() -> None:
    model = pipeline("rows")
    compiled = onnxla.compile(model)
    for count in (1, 5, 1):
        assert_as_onnxruntime(model, compiled, table(count, count))
    assert len(compiled.programs) == 2


def test_any_text_is_taken() -> None:
    node = helper.make_node(
        "LabelEncoder", ["s"], ["y"], domain=ML, keys_strings=["é", "", "b"], values_int64s=[1, 2, 3], default_int64=-1
    )
    compiled = onnxla.compile(model_of([node], {"s": (STRING, [2, 2])}, {"y": INT}))
    for given in (
        np.array([["é", "z"], ["", "b"]], object),
        np.array([["é", "z"], ["", "b"]]),
        [["é", "z"], ["", "b"]],
        np.array([["é".encode(), b"z"], [b"", b"b"]], object),
    ):
        (y,) = compiled.run(None, {"s": given})
        assert y.tolist() == [[1, -1], [2, 3]]
    with pytest.raises(InputError, match="s: dtype float64, the model takes strings"):
        compiled.run(None, {"s": np.zeros((2, 2))})
    with pytest.raises(InputError, match="s: shape"):
        compiled.run(None, {"s": np.array(["a"], object)})


def test_a_name_like_the_stand_in_is_a_name() -> None:
    node = helper.make_node(
        "LabelEncoder", ["s"], ["y"], domain=ML, keys_strings=["a", "\0"], values_int64s=[7, 8], default_int64=0
    )
    (y,) = onnxla.compile(model_of([node], {"s": (STRING, [2])}, {"y": INT})).run(
        None, {"s": np.array(["\0", "x"], object)}
    )
    assert y.tolist() == [8, 0]


@pytest.mark.parametrize(
    ("op_type", "attributes"),
    [
        ("LabelEncoder", {"classes_strings": ["a", "b"], "default_int64": -5}),
        ("CategoryMapper", {"cats_strings": ["a", "b"], "cats_int64s": [0, 1], "default_int64": -5}),
    ],
)
def test_encoders_of_the_first_version(op_type: str, attributes: dict[str, Any]) -> None:
    node = helper.make_node(op_type, ["s"], ["y"], domain=ML, **attributes)
    model = model_of([node], {"s": (STRING, [3])}, {"y": INT})
    model.opset_import[1].version = 1
    compiled = onnxla.compile(model)
    assert_as_onnxruntime(model, compiled, {"s": np.array(["b", "?", "a"], object)})
    assert compiled.programs


@pytest.mark.parametrize(
    ("op_type", "attributes"),
    [
        ("LabelEncoder", {"classes_strings": ["a", "b"]}),
        ("CategoryMapper", {"cats_strings": ["a", "b"], "cats_int64s": [0, 1]}),
    ],
)
def test_encoders_of_the_first_version_backwards(op_type: str, attributes: dict[str, Any]) -> None:
    node = helper.make_node(op_type, ["n"], ["y"], domain=ML, **attributes)
    model = model_of([node], {"n": (INT, [3])}, {"y": STRING})
    model.opset_import[1].version = 1
    assert_as_onnxruntime(model, onnxla.compile(model), {"n": np.array([1, 7, 0])})


def test_strings_to_other_strings() -> None:
    node = helper.make_node(
        "LabelEncoder", ["s"], ["y"], domain=ML, keys_strings=["a", "b"], values_strings=["A", "B"], default_string="?"
    )
    model = model_of([node], {"s": (STRING, [3])}, {"y": STRING})
    compiled = onnxla.compile(model)
    (y,) = compiled.run(None, {"s": np.array(["b", "c", "a"], object)})
    assert y.tolist() == ["B", "?", "A"]


def test_strings_that_are_moved_first() -> None:
    nodes = [
        helper.make_node("Transpose", ["s"], ["t"]),
        helper.make_node("Gather", ["t", "i"], ["g"], axis=0),
        helper.make_node("LabelEncoder", ["g"], ["y"], domain=ML, keys_strings=["a", "b"], values_int64s=[1, 2]),
        helper.make_node("Shape", ["s"], ["n"]),
    ]
    model = model_of(nodes, {"s": (STRING, [2, 2])}, {"y": INT, "n": INT}, {"i": np.array([1, 0], np.int64)})
    y, n = onnxla.compile(model).run(None, {"s": np.array([["a", "b"], ["b", "c"]], object)})
    assert y.tolist() == [[2, -1], [1, 2]] and n.tolist() == [2, 2]


def test_strings_inside_branches_and_loops() -> None:
    def encoder(number: float, output: str) -> NodeProto:
        return helper.make_node(
            "LabelEncoder", ["s"], [output], domain=ML, keys_strings=["a", "b"], values_floats=[number, -number]
        )

    def body(nodes: list[NodeProto], inputs: list[Any], outputs: list[Any]) -> GraphProto:
        return helper.make_graph(nodes, "body", inputs, outputs)

    info = helper.make_tensor_value_info
    branches = {
        name: body([encoder(number, name)], [], [info(name, FLOAT, [2])])
        for name, number in (("then_branch", 1.0), ("else_branch", 5.0))
    }
    loop = body(
        [
            encoder(2.0, "e"),
            helper.make_node("Add", ["v", "e"], ["w"]),
            helper.make_node("Identity", ["c"], ["d"]),
        ],
        [info("i", INT, []), info("c", TensorProto.BOOL, []), info("v", FLOAT, [2])],
        [info("d", TensorProto.BOOL, []), info("w", FLOAT, [2])],
    )
    nodes = [
        helper.make_node("If", ["which"], ["start"], **branches),
        helper.make_node("Loop", ["n", "", "start"], ["y"], body=loop),
    ]
    inputs = {"s": (STRING, [2]), "which": (TensorProto.BOOL, []), "n": (INT, [])}
    model = model_of(nodes, inputs, {"y": FLOAT})
    compiled = onnxla.compile(model)
    for which in (True, False):
        feeds = {"s": np.array(["b", "a"], object), "which": np.array(which), "n": np.array(3)}
        assert_as_onnxruntime(model, compiled, feeds)
    assert len(compiled.programs) == 1


def test_what_needs_the_strings_themselves_is_compiled_for_their_values() -> None:
    nodes = [
        helper.make_node("LabelEncoder", ["s"], ["y"], domain=ML, keys_strings=["a", "b"], values_int64s=[1, 2]),
        helper.make_node("StringConcat", ["s", "suffix"], ["c"]),
    ]
    model = model_of(nodes, {"s": (STRING, [2])}, {"y": INT, "c": STRING}, {"suffix": np.array(["!"], object)})
    compiled = onnxla.compile(model)
    for given in (["a", "x"], ["x", "b"]):
        y, c = compiled.run(None, {"s": np.array(given, object)})
        assert y.tolist() == [{"a": 1, "b": 2}.get(w, -1) for w in given]
        assert c.tolist() == [w + "!" for w in given]


def test_an_output_that_is_the_input_again_is_compiled_for_its_value() -> None:
    nodes = [
        helper.make_node("LabelEncoder", ["s"], ["y"], domain=ML, keys_strings=["a"], values_int64s=[1]),
        helper.make_node("Identity", ["s"], ["t"]),
    ]
    compiled = onnxla.compile(model_of(nodes, {"s": (STRING, [2])}, {"y": INT, "t": STRING}))
    y, t = compiled.run(None, {"s": np.array(["a", "unknown"], object)})
    assert y.tolist() == [1, -1] and t.tolist() == ["a", "unknown"]


def test_a_library_for_c_has_no_strings(tmp_path: Path) -> None:
    from onnxla.ahead.library import write_library
    from onnxla.errors import ArtifactError

    with pytest.raises(ArtifactError, match="a library for C has arrays only"):
        write_library(onnxla.compile(pipeline(2)), tmp_path, "words")


def test_the_text_of_the_refusal() -> None:
    from onnxla.frontends.onnx.importer import import_model

    nodes = [
        helper.make_node("LabelEncoder", ["s"], ["y"], domain=ML, keys_strings=["a"], values_int64s=[1]),
        helper.make_node("StringNormalizer", ["s"], ["n"], name="/normalizer"),
    ]
    model = model_of(nodes, {"s": (STRING, [2])}, {"y": INT, "n": STRING})
    with pytest.raises(UnsupportedOpError) as caught:
        import_model(model)
    assert str(caught.value) == (
        "StringNormalizer needs the strings of the input s, which are not known before the model runs\n"
        "  node   /normalizer (StringNormalizer, opset 20), node 1\n"
        '  hint   give its value while compiling, constants={"s": ...} (--constant), or leave it to the first run'
    )
    assert caught.value.needs_constants == ("s",)
