"""Outputs that are no tensors of numbers: maps, sequences, optionals and strings, as onnxruntime gives them."""

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, NodeProto, TensorProto, TypeProto, ValueInfoProto, helper

import onnxla
from onnxla.errors import InputError, ShapeError, UnsupportedOpError
from onnxla.hlo.types import Array
from tests.frontends.witness import tensor, value_info

ML = "ai.onnx.ml"
X = np.random.default_rng(3).standard_normal((5, 4)).astype(np.float32)
STRINGS = helper.make_tensor_type_proto(TensorProto.STRING, None)
FLOATS = helper.make_tensor_type_proto(TensorProto.FLOAT, None)


def seq(type: TypeProto) -> TypeProto:
    return helper.make_sequence_type_proto(type)


def maps(key: int) -> TypeProto:
    return seq(helper.make_map_type_proto(key, FLOATS))


def model_of(
    nodes: list[NodeProto],
    inputs: dict[str, Array],
    outputs: dict[str, TypeProto],
    constants: dict[str, Array] | None = None,
) -> ModelProto:
    graph = helper.make_graph(
        nodes,
        "g",
        [value_info(name, array) for name, array in inputs.items()],
        [ValueInfoProto(name=name, type=type) for name, type in outputs.items()],
        [tensor(name, array) for name, array in (constants or {}).items()],
    )
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid(ML, 3)], ir_version=10
    )


def assert_same(ours: Any, theirs: Any) -> None:
    """Equal as Python values, types included; floats nearly."""
    if isinstance(theirs, list):
        assert isinstance(ours, list) and len(ours) == len(theirs)
        for mine, other in zip(ours, theirs, strict=True):
            assert_same(mine, other)
    elif isinstance(theirs, dict):
        assert list(ours) == list(theirs) and list(map(type, ours)) == list(map(type, theirs))
        assert [type(v) for v in ours.values()] == [float] * len(ours)
        np.testing.assert_allclose(list(ours.values()), list(theirs.values()), rtol=1e-5, atol=1e-6)
    elif theirs is None:
        assert ours is None
    elif np.asarray(theirs).dtype == object:
        assert ours.dtype == object and ours.shape == theirs.shape and ours.tolist() == theirs.tolist()
    else:
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def check(model: ModelProto, feeds: dict[str, Array], folder: Path) -> list[Any]:
    """Ours against onnxruntime's, compiled and from an artifact; the declared types too. Returns ours."""
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    expected = session.run(None, feeds)
    compiled = onnxla.compile(model)
    compiled.save(folder / "model.onnxla")
    for ready in (compiled, onnxla.load_compiled(folder / "model.onnxla")):
        assert_same(ready.run(None, feeds), expected)
        assert [t.type for t in ready.get_outputs()] == [t.type for t in session.get_outputs()]
    return compiled.run(None, feeds)


def classifier(labels: dict[str, Any], classes: int) -> NodeProto:
    rng = np.random.default_rng(classes)
    return helper.make_node(
        "LinearClassifier",
        ["x"],
        ["label", "scores"],
        domain=ML,
        coefficients=rng.standard_normal(classes * 4).tolist(),
        intercepts=rng.standard_normal(classes).tolist(),
        post_transform="SOFTMAX",
        **labels,
    )


class TestMaps:
    @pytest.mark.parametrize("classes", [2, 3])
    def test_a_classifier_with_integer_labels(self, classes: int, tmp_path: Path) -> None:
        labels = [7 * i - 3 for i in range(classes)]
        nodes = [
            classifier({"classlabels_ints": labels}, classes),
            helper.make_node("ZipMap", ["scores"], ["maps"], domain=ML, classlabels_int64s=labels),
        ]
        label = helper.make_tensor_type_proto(TensorProto.INT64, None)
        _, found = check(
            model_of(nodes, {"x": X}, {"label": label, "maps": maps(TensorProto.INT64)}), {"x": X}, tmp_path
        )
        assert len(found) == 5 and list(found[0]) == labels

    def test_a_classifier_with_strings_as_labels(self, tmp_path: Path) -> None:
        labels = ["setosa", "versicolor", "a third"]
        nodes = [
            classifier({"classlabels_strings": labels}, 3),
            helper.make_node("ZipMap", ["scores"], ["maps"], domain=ML, classlabels_strings=labels),
        ]
        found = check(
            model_of(nodes, {"x": X}, {"label": STRINGS, "maps": maps(TensorProto.STRING)}), {"x": X}, tmp_path
        )
        assert found[0][0] in labels and list(found[1][0]) == sorted(labels)

    def test_one_row(self, tmp_path: Path) -> None:
        node = helper.make_node("ZipMap", ["x"], ["maps"], domain=ML, classlabels_int64s=[1, 2, 3, 4])
        check(model_of([node], {"x": X[0]}, {"maps": maps(TensorProto.INT64)}), {"x": X[0]}, tmp_path)

    def test_rows_whose_number_is_known_when_it_runs(self) -> None:
        node = helper.make_node("ZipMap", ["x"], ["maps"], domain=ML, classlabels_int64s=[1, 2, 3, 4])
        model = model_of([node], {"x": X}, {"maps": maps(TensorProto.INT64)})
        model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "rows"
        compiled = onnxla.compile(model)
        for count in (1, 4, 0, 1):
            (found,) = compiled.run(None, {"x": X[:count]})
            assert [list(row.values()) for row in found] == X[:count].tolist()

    def test_beside_an_output_by_name(self) -> None:
        node = helper.make_node("ZipMap", ["y"], ["maps"], domain=ML, classlabels_int64s=[1, 2, 3, 4])
        nodes = [helper.make_node("Neg", ["x"], ["y"]), node]
        compiled = onnxla.compile(model_of(nodes, {"x": X}, {"maps": maps(TensorProto.INT64), "y": FLOATS}))
        (y,) = compiled.run(["y"], {"x": X})
        np.testing.assert_array_equal(y, -X)
        target = np.empty_like(X)
        rows, same = compiled.run(None, {"x": X}, out={"y": target})
        assert same is target and rows[2][3] == -X[2, 2]
        np.testing.assert_array_equal(target, -X)
        with pytest.raises(InputError, match=r"^maps: out= takes tensors of numbers, and this output is none$"):
            compiled.run(None, {"x": X}, out={"maps": target})

    def test_a_map_in_the_middle_is_refused(self) -> None:
        node = helper.make_node("ZipMap", ["x"], ["maps"], domain=ML, classlabels_int64s=[1, 2, 3, 4])
        nodes = [node, helper.make_node("SequenceLength", ["maps"], ["n"])]
        with pytest.raises(onnxla.OnnxlaError, match="input maps is sequence of 5 maps, where a sequence was expected"):
            onnxla.compile(model_of(nodes, {"x": X}, {"n": helper.make_tensor_type_proto(TensorProto.INT64, None)}))


class TestStrings:
    def test_labels_of_trees(self, tmp_path: Path) -> None:
        node = helper.make_node(
            "TreeEnsembleClassifier",
            ["x"],
            ["label", "scores"],
            domain=ML,
            nodes_treeids=[0, 0, 0],
            nodes_nodeids=[0, 1, 2],
            nodes_featureids=[1, 0, 0],
            nodes_values=[0.0, 0.0, 0.0],
            nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"],
            nodes_truenodeids=[1, 0, 0],
            nodes_falsenodeids=[2, 0, 0],
            class_treeids=[0, 0],
            class_nodeids=[1, 2],
            class_ids=[1, 1],
            class_weights=[0.25, 0.75],
            classlabels_strings=["low", "high"],
        )
        label, _ = check(model_of([node], {"x": X}, {"label": STRINGS, "scores": FLOATS}), {"x": X}, tmp_path)
        assert label.tolist() == ["low" if v <= 0 else "high" for v in X[:, 1]]

    def test_numbers_to_strings_and_back(self, tmp_path: Path) -> None:
        x = np.array([4, 9, 1], np.int64)
        nodes = [
            helper.make_node(
                "LabelEncoder",
                ["x"],
                ["s"],
                domain=ML,
                keys_int64s=[1, 4],
                values_strings=["é", "b"],
                default_string="?",
            ),
            helper.make_node(
                "LabelEncoder", ["s"], ["n"], domain=ML, keys_strings=["b", "?"], values_floats=[0.5, 7.0]
            ),
        ]
        s, n = check(model_of(nodes, {"x": x}, {"s": STRINGS, "n": FLOATS}), {"x": x}, tmp_path)
        assert s.tolist() == ["b", "?", "é"] and n.tolist() == [0.5, 7.0, 0.0]

    def test_classes_picked_by_their_number(self, tmp_path: Path) -> None:
        """How skl2onnx gives the label of a network or of neighbours."""
        nodes = [
            helper.make_node("ArgMax", ["x"], ["best"], axis=1, keepdims=1),
            helper.make_node("ArrayFeatureExtractor", ["classes", "best"], ["row"], domain=ML),
            helper.make_node("Reshape", ["row", "shape"], ["label"]),
        ]
        classes = np.array(["a", "b", "c", "d"], object)
        constants = {"classes": classes, "shape": np.array([-1])}
        (label,) = check(model_of(nodes, {"x": X}, {"label": STRINGS}, constants), {"x": X}, tmp_path)
        assert label.tolist() == classes[X.argmax(1)].tolist()

    def test_movement(self, tmp_path: Path) -> None:
        words = np.array([["a", "b", "c"], ["d", "e", "f"]], object)
        i = np.array([1, 0, 1], np.int64)
        nodes = [
            helper.make_node("Gather", ["words", "i"], ["rows"], axis=0),
            helper.make_node("Transpose", ["rows"], ["turned"]),
            helper.make_node("Unsqueeze", ["turned", "zero"], ["y"]),
            helper.make_node("Cast", ["y"], ["z"], to=TensorProto.STRING),
            helper.make_node("Transpose", ["words"], ["known"]),
        ]
        model = model_of(
            nodes, {"i": i}, {"z": STRINGS, "known": STRINGS}, {"words": words, "zero": np.array([0], np.int64)}
        )
        compiled = onnxla.compile(model)  # onnxruntime transposes no strings
        z, known = compiled.run(None, {"i": i})
        assert z.tolist() == [words[i].T.tolist()]
        assert known.tolist() == words.T.tolist()

    def test_known_strings_alone(self, tmp_path: Path) -> None:
        node = helper.make_node("Identity", ["words"], ["y"])
        words = np.array([["a", ""], ["\0", "é"]], object)
        compiled = onnxla.compile(model_of([node], {"x": X}, {"y": STRINGS}, {"words": words}))
        compiled.save(tmp_path / "m.onnxla")
        for ready in (compiled, onnxla.load_compiled(tmp_path / "m.onnxla")):
            (y,) = ready.run(None, {"x": X})
            assert y.tolist() == words.tolist()
            y[0, 0] = "changed by the caller"

    def test_text_that_spells_numbers(self, tmp_path: Path) -> None:
        node = helper.make_node("Cast", ["words"], ["y"], to=TensorProto.FLOAT)
        words = np.array(["1.5", "-1e-3", "NaN", "-INF", "7"], object)
        check(model_of([node], {}, {"y": FLOATS}, {"words": words}), {}, tmp_path)

    def test_numbers_at_run_time_do_not_become_strings(self) -> None:
        node = helper.make_node("Cast", ["x"], ["y"], to=TensorProto.STRING)
        with pytest.raises(UnsupportedOpError, match="numbers that are computed cannot become strings"):
            onnxla.compile(model_of([node], {"x": X}, {"y": STRINGS}))


class TestSequencesAndOptionals:
    def test_a_sequence(self, tmp_path: Path) -> None:
        node = helper.make_node("SplitToSequence", ["x"], ["s"], axis=0)
        (found,) = check(model_of([node], {"x": X}, {"s": seq(FLOATS)}), {"x": X}, tmp_path)
        assert len(found) == 5 and found[0].shape == (1, 4)

    def test_an_empty_sequence(self, tmp_path: Path) -> None:
        node = helper.make_node("SequenceEmpty", [], ["s"], dtype=TensorProto.FLOAT)
        check(model_of([node], {"x": X}, {"s": seq(FLOATS)}), {"x": X}, tmp_path)

    def test_the_same_tensor_twice(self, tmp_path: Path) -> None:
        nodes = [
            helper.make_node("Neg", ["x"], ["y"]),
            helper.make_node("SequenceConstruct", ["y", "x", "y"], ["s"]),
        ]
        check(model_of(nodes, {"x": X}, {"s": seq(FLOATS), "y": FLOATS}), {"x": X}, tmp_path)

    def test_optionals(self) -> None:
        there = helper.make_node("Optional", ["x"], ["there"])
        nothing = helper.make_node("Optional", [], ["nothing"], type=FLOATS)
        optional = helper.make_optional_type_proto(FLOATS)
        compiled = onnxla.compile(model_of([there, nothing], {"x": X}, {"there": optional, "nothing": optional}))
        found, none = compiled.run(None, {"x": X})
        np.testing.assert_array_equal(found, X)
        assert none is None

    def test_a_sequence_that_is_declared_a_tensor(self) -> None:
        node = helper.make_node("SplitToSequence", ["x"], ["s"], axis=0)
        with pytest.raises(ShapeError, match="the output s is declared f32 and computed as a sequence of 5"):
            onnxla.compile(model_of([node], {"x": X}, {"s": FLOATS}))

    def test_sequences_whose_length_depends_on_the_input(self) -> None:
        node = helper.make_node("SplitToSequence", ["x"], ["s"], axis=0)
        model = model_of([node], {"x": X}, {"s": seq(FLOATS)})
        model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "rows"
        compiled = onnxla.compile(model)
        assert [len(compiled.run(None, {"x": X[:n]})[0]) for n in (2, 5, 2)] == [2, 5, 2]


def test_the_compile_cache_keeps_the_keys(tmp_path: Path) -> None:
    for labels in ([1, 2, 3, 4], [5, 6, 7, 8], [1, 2, 3, 4]):
        node = helper.make_node("ZipMap", ["x"], ["maps"], domain=ML, classlabels_int64s=labels)
        model = model_of([node], {"x": X}, {"maps": maps(TensorProto.INT64)})
        compiled = onnxla.compile(model, options={"cache_dir": str(tmp_path)})
        assert list(compiled.run(None, {"x": X})[0][0]) == labels


def test_strings_given_while_compiling(tmp_path: Path) -> None:
    node = helper.make_node("StringConcat", ["a", "b"], ["c"])
    model = model_of([node], {}, {"c": STRINGS}, {"b": np.array(["!", "?"], object)})
    model.opset_import[0].version = 20
    model.graph.input.append(ValueInfoProto(name="a", type=helper.make_tensor_type_proto(TensorProto.STRING, [2])))
    compiled = onnxla.compile(model)
    for words in (["p", "q"], ["r", "s"]):
        (c,) = compiled.run(None, {"a": np.array(words, object)})
        assert c.tolist() == [words[0] + "!", words[1] + "?"]
    compiled.save(tmp_path / "m.onnxla")
    (c,) = onnxla.load_compiled(tmp_path / "m.onnxla").run(None, {"a": np.array(["p", "q"], object)})
    assert c.tolist() == ["p!", "q?"]
