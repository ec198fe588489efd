"""com.microsoft.Tokenizer and DynamicTimeWarping, whose data decide shapes, against onnxruntime."""

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import onnxla
from onnxla.errors import DynamicShapeError, OnnxlaError, UnsupportedOpError
from onnxla.frontends.onnx.importer import import_model
from onnxla.hlo.types import Array
from tests.frontends.rules.test_contrib_attention import check, model_with, normal
from tests.frontends.witness import run_onnxruntime, tensor

TEXTS = [
    np.array(["Hello World", "a bb ccc", " x  y ", ""], object),
    np.array([["a.b,c;d", ".."], ["ab12 cd\t e\n\vf", "_x-y"]], object),
    np.array(["日本 語é", "\u00a0a"], object),
    np.array(["", ""], object),
    np.zeros((2, 0), object),
]
SEPARATORS = [
    [" "],
    ["."],
    [r"\."],
    [",", " "],
    ["l", "ll"],
    [r"\s+"],
    [r"[\s,;]"],
    ["[a-c]+"],
    [r"\W"],
    [r"\S"],
    ["é"],
]


def tokenizer(texts: Array, *, as_input: bool, **attributes: Any) -> Any:
    node = helper.make_node("Tokenizer", ["x"], ["y"], domain="com.microsoft", **attributes)
    info = helper.make_tensor_value_info("x", TensorProto.STRING, texts.shape)
    output = helper.make_tensor_value_info("y", TensorProto.STRING, None)
    inputs, held = ([info], []) if as_input else ([], [tensor("x", texts)])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(
        helper.make_graph([node], "g", inputs, [output], held), opset_imports=opsets, ir_version=10
    )


def check_words(**attributes: Any) -> None:
    for texts in TEXTS:
        (ours,) = onnxla.compile(tokenizer(texts, as_input=False, **attributes)).run(None, {})
        (theirs,) = run_onnxruntime(tokenizer(texts, as_input=True, **attributes), {"x": texts})
        assert ours.shape == theirs.shape and ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("mark", [0, 1])
@pytest.mark.parametrize("separators", SEPARATORS, ids=str)
def test_words_between_separators(separators: list[str], mark: int) -> None:
    check_words(separators=separators, mark=mark, mincharnum=1 + mark, pad_value="#")


@pytest.mark.parametrize("expression", ["[a-z]", "[a-zA-Z]+", r"\w+", "ll", "."])
def test_words_that_match(expression: str) -> None:
    check_words(tokenexp=expression, mark=1, mincharnum=1, pad_value="")


def test_characters() -> None:
    check_words(separators=[""], mark=1, mincharnum=1, pad_value="#")


@pytest.mark.parametrize(
    "expression", ["a|b", "x*", "(a)", "a{2}", "[[:alpha:]]", "^a", r"\b", "[z-a]", "[a--b]", "(a+)+$"]
)
def test_other_expressions_are_refused(expression: str) -> None:
    """What RE2 and Python read differently, or Python in exponential time."""
    model = tokenizer(TEXTS[0], as_input=False, tokenexp=expression, mark=0, mincharnum=1, pad_value="#")
    with pytest.raises(UnsupportedOpError) as refusal:
        import_model(model)
    assert f"the regular expression {expression!r} is not known" in str(refusal.value)
    assert "tokenize before the model" in str(refusal.value)


def test_strings_must_be_known() -> None:
    model = tokenizer(TEXTS[0], as_input=True, separators=[" "], mark=0, mincharnum=1, pad_value="#")
    with pytest.raises(OnnxlaError):
        import_model(model)


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (5, 1), (7, 5), (1, 12, 20)], ids=str)
@pytest.mark.parametrize("costs", ["normal", "ties", "equal"])
def test_the_cheapest_way(shape: tuple[int, ...], costs: str) -> None:
    cost = normal(*shape)
    cost = np.rint(cost) if costs == "ties" else cost if costs == "normal" else np.zeros_like(cost)
    check("DynamicTimeWarping", {"cost": cost}, ["way"], held=("cost",))


def test_costs_must_be_known() -> None:
    with pytest.raises(DynamicShapeError, match="the way of least cost decides the shape"):
        import_model(model_with("DynamicTimeWarping", {"cost": normal(3, 4)}, ["way"]))
