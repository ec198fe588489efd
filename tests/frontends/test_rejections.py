"""What cannot be compiled, by the whole text that says so: all nodes at once, each with its cause and a way out."""

import ast
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper

from onnxla.errors import CompileError, DynamicShapeError, UnsupportedOpError
from onnxla.frontends.onnx import importer
from onnxla.frontends.onnx.importer import import_model
from onnxla.hlo.types import Array
from tests.frontends.witness import model_of

F, INT, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING
X = np.arange(6, dtype=np.float32).reshape(2, 3)
ML = "ai.onnx.ml"
node = helper.make_node
WAY_OUT = (
    "make the data a constant, end the model before this node and do the rest outside, or leave what cannot be "
    'compiled to onnxruntime: fallback="onnxruntime", --fallback onnxruntime'
)


def text_of(nodes: list[NodeProto], inputs: Mapping[str, Array], outputs: Mapping[str, int], **held: Array) -> str:
    with pytest.raises(CompileError) as caught:
        import_model(model_of(nodes, inputs, outputs, initializers=held, domains={ML: 3, "com.microsoft": 1}))
    return str(caught.value)


def test_every_operator_whose_shape_is_data() -> None:
    nodes = [
        node("NonZero", ["x"], ["a"], name="/nonzero"),
        node("Compress", ["x", "c"], ["b"], name="/compress", axis=0),
        node("Unique", ["x"], ["u"], name="/unique"),
        node("Relu", ["boxes"], ["positive"], name="/relu"),
        node("NonMaxSuppression", ["positive", "scores", "most"], ["n"], name="/nms"),
        node("ImageDecoder", ["file"], ["picture"], name="/decoder"),
    ]
    feeds = {
        "x": X,
        "c": np.array([True, False]),
        "boxes": np.zeros((1, 4, 4), np.float32),
        "scores": np.zeros((1, 1, 4), np.float32),
        "file": np.zeros(90, np.uint8),
    }
    outputs = {"a": INT, "b": F, "u": F, "n": INT, "picture": TensorProto.UINT8}
    assert text_of(nodes, feeds, outputs, most=np.array(2)) == (
        "5 problems\n"
        "which elements are not zero decides the shape of NonZero's output, and is computed at run time\n"
        "  node   /nonzero (NonZero, opset 21), node 0\n"
        "  input  x f32[2,3]\n"
        "  chain  x (input) -> /nonzero\n"
        f'  hint   give the value while compiling, constants={{"x": ...}}; or {WAY_OUT}\n'
        "the condition decides the shape of Compress's output, and is computed at run time\n"
        "  node   /compress (Compress, opset 21), node 1\n"
        "  input  x f32[2,3]\n"
        "  input  c pred[2]\n"
        "  chain  c (input) -> /compress\n"
        f'  hint   give the value while compiling, constants={{"c": ...}}; or {WAY_OUT}\n'
        "how many values differ decides the shape of Unique's output, and is computed at run time\n"
        "  node   /unique (Unique, opset 21), node 2\n"
        "  input  x f32[2,3]\n"
        "  chain  x (input) -> /unique\n"
        f'  hint   give the value while compiling, constants={{"x": ...}}; or {WAY_OUT}\n'
        "the overlap of boxes decides the shape of NonMaxSuppression's output, and is computed at run time\n"
        "  node   /nms (NonMaxSuppression, opset 21), node 4\n"
        "  input  positive f32[1,4,4]\n"
        "  input  scores f32[1,1,4]\n"
        "  input  most s64[]\n"
        "  chain  boxes (input) -> /relu -> /nms\n"
        f'  hint   give the value while compiling, constants={{"boxes": ...}}; or {WAY_OUT}\n'
        "the encoded image decides the size of the picture\n"
        "  node   /decoder (ImageDecoder, opset 21), node 5\n"
        "  input  file u8[90]\n"
        "  chain  file (input) -> /decoder\n"
        '  hint   give the value while compiling, constants={"file": ...}; or decode it outside the model'
    )


def test_operators_behind_each_other_are_all_named() -> None:
    """The second would otherwise be found when the first is out of the way."""
    nodes = [
        node("Wave", ["x"], ["a"], name="/first"),
        node("Relu", ["a"], ["b"], name="/between"),
        node("Surf", ["b"], ["c"], name="/second"),
        node("CenterCropPad", ["c", "s"], ["d"], name="/body"),
    ]
    assert text_of(nodes, {"x": X}, {"d": F}, s=np.array([1, 1])) == (
        "2 problems\n"
        "Wave at opset 21 has no import rule\n"
        "  node   /first (Wave, opset 21), node 0\n"
        "  input  x f32[2,3]\n"
        "  hint   define Wave as a function in the model, or export it in operators of ONNX\n"
        "Surf at opset 21 has no import rule\n"
        "  node   /second (Surf, opset 21), node 2\n"
        "  input  b (not known: what gives it failed)\n"
        "  hint   define Surf as a function in the model, or export it in operators of ONNX"
    )


def test_strings_at_run_time() -> None:
    nodes = [
        node("Stemmer", ["words"], ["tokens"], domain="com.microsoft", name="/stemmer"),
        node("Flatten", ["tokens"], ["flat"]),
        node(
            "TfIdfVectorizer",
            ["flat"],
            ["y"],
            mode="TF",
            min_gram_length=1,
            max_gram_length=1,
            max_skip_count=0,
            ngram_counts=[0],
            ngram_indexes=[0],
            pool_int64s=[0],
        ),
        node("NonZero", ["x"], ["places"], name="/nonzero"),
    ]
    model = model_of(nodes, {"x": X}, {"y": F, "places": INT}, domains={"com.microsoft": 1})
    model.graph.input.append(helper.make_tensor_value_info("words", STRING, [2, 1]))
    with pytest.raises(CompileError) as caught:
        import_model(model)
    assert str(caught.value) == (
        "3 problems\n"
        "the input words is tensor(string); only tensors of numbers can be inputs\n"
        '  hint   give its value while compiling, constants={"words": ...} (--constant), or leave it to the first run\n'
        "com.microsoft.Stemmer at opset 1 has no import rule\n"
        "  node   /stemmer (com.microsoft.Stemmer, opset 1), node 0\n"
        "  input  words (not known: what gives it failed)\n"
        '  hint   leave it to onnxruntime, fallback="onnxruntime" or --fallback onnxruntime, or define '
        "com.microsoft.Stemmer as a function in the model\n"
        "which elements are not zero decides the shape of NonZero's output, and is computed at run time\n"
        "  node   /nonzero (NonZero, opset 21), node 3\n"
        "  input  x f32[2,3]\n"
        "  chain  x (input) -> /nonzero\n"
        f'  hint   give the value while compiling, constants={{"x": ...}}; or {WAY_OUT}'
    )
    assert caught.value.needs_constants == ()


def test_maps_and_strings_that_would_be_computed() -> None:
    nodes = [
        node("DictVectorizer", ["x"], ["a"], domain=ML, name="/vectorizer"),
        node("Cast", ["x"], ["b"], to=STRING, name="/text"),
        node("LabelEncoder", ["x"], ["c"], domain=ML, keys_strings=["p"], values_floats=[1.0], name="/encoder"),
    ]
    assert text_of(nodes, {"x": X}, {"a": F, "b": STRING, "c": F}) == (
        "3 problems\n"
        "a map is not a tensor\n"
        "  node   /vectorizer (ai.onnx.ml.DictVectorizer, opset 3), node 0\n"
        "  input  x f32[2,3]\n"
        "  hint   build the vector of features before the model\n"
        "numbers that are computed cannot become strings\n"
        "  node   /text (Cast, opset 21), node 1\n"
        "  input  x f32[2,3]\n"
        "  hint   cast after the model has run\n"
        "the keys are strings, and the input is numbers\n"
        "  node   /encoder (ai.onnx.ml.LabelEncoder, opset 3), node 2\n"
        "  input  x f32[2,3]\n"
        "  hint   give keys of the input's type, keys_int64s or keys_floats"
    )


def test_sequences_as_inputs() -> None:
    model = model_of([node("SequenceLength", ["s"], ["n"])], {}, {"n": INT})
    model.graph.input.append(helper.make_tensor_sequence_value_info("s", F, None))
    with pytest.raises(UnsupportedOpError) as caught:
        import_model(model)
    assert str(caught.value) == (
        "the input s is seq(tensor(float)); only tensors of numbers can be inputs\n"
        "  hint   onnxla.backend.prepare(model) compiles for the structure of what it is run on"
    )


def test_a_wrong_rank_and_a_missing_attribute_come_with_a_way_out() -> None:
    nodes = [node("Conv", ["x", "x"], ["a"], name="/conv"), node("Concat", ["x", "x"], ["b"], name="/concat")]
    assert text_of(nodes, {"x": X}, {"a": F, "b": F}) == (
        "2 problems\n"
        "a convolution needs [N, C, spatial...] and weights of the same rank\n"
        "  node   /conv (Conv, opset 21), node 0\n"
        "  input  x f32[2,3]\n"
        "  input  x f32[2,3]\n"
        "  hint   correct the model, or the sizes that its inputs are given\n"
        "Concat: the attribute axis is missing\n"
        "  node   /concat (Concat, opset 21), node 1\n"
        "  input  x f32[2,3]\n"
        "  input  x f32[2,3]\n"
        "  hint   correct the model: onnx.checker.check_model names such faults"
    )


def test_no_problem_is_made_without_a_way_out() -> None:
    """The views of nodes give one by kind; whoever makes a problem itself gives its hint."""
    lacking = []
    for path in sorted(Path(importer.__file__).parents[1].rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "Problem":
                if len(call.args) < 5 and not any(k.arg == "hint" for k in call.keywords):
                    lacking.append(f"{path.name}:{call.lineno}")
    assert lacking == []


def test_of_one_kind_they_raise_that_kind() -> None:
    dynamic = [node("NonZero", ["x"], ["a"]), node("Unique", ["x"], ["b"])]
    with pytest.raises(DynamicShapeError):
        import_model(model_of(dynamic, {"x": X}, {"a": INT, "b": F}))
    unknown = [node("Wave", ["x"], ["a"]), node("Surf", ["a"], ["b"])]
    with pytest.raises(UnsupportedOpError):
        import_model(model_of(unknown, {"x": X}, {"b": F}))
