"""Models to modules: shapes, constants, functions, and the order and names of things."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import FunctionProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

from onnxla.errors import ShapeError, UnboundDimensionsError
from onnxla.frontends.onnx.importer import import_model
from onnxla.frontends.onnx.registry import NoRule, coverage, lookup, onnx_op
from onnxla.frontends.onnx.report import explain
from onnxla.frontends.onnx.signature import model_signature
from tests.frontends.witness import check_against_onnxruntime, f32, model_of, run_imported

F, INT = TensorProto.FLOAT, TensorProto.INT64
X = np.arange(6, dtype=np.float32).reshape(2, 3)
node = helper.make_node


def info(name: str, *dims: int | str | None, code: int = F) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, code, list(dims))


def symbolic_model() -> ModelProto:
    nodes = [node("Add", ["x", "z"], ["y"])]
    return model_of(nodes, {"x": info("x", "batch", 3), "z": info("z", "batch", None)}, ["y"])


# The module


def test_parameters_are_the_inputs_and_the_root_is_a_tuple_of_the_outputs() -> None:
    model = model_of([node("Neg", ["b"], ["y"]), node("Abs", ["a"], ["z"])], {"a": X, "b": X}, ["y", "z"])
    imported = import_model(model)
    assert [p.name for p in imported.module.entry.parameters] == ["a", "b"]
    assert [str(s) for s in imported.inputs] == ["a f32[2,3]", "b f32[2,3]"]
    assert [str(s) for s in imported.outputs] == ["y f32[2,3]", "z f32[2,3]"]
    assert imported.module.entry.root.op.opcode == "tuple"


def test_every_instruction_remembers_its_node() -> None:
    model = model_of([node("Gemm", ["x", "w"], ["y"], name="/fc")], {"x": X, "w": X.T}, ["y"])
    instructions = import_model(model).module.entry.instructions()
    assert {str(i.source) for i in instructions if i.op.opcode == "dot"} == {"/fc (Gemm, opset 21), node 0"}


def test_nodes_out_of_order_are_sorted() -> None:
    model = model_of([node("Neg", ["h"], ["y"]), node("Abs", ["x"], ["h"])], {"x": X}, ["y"])
    (y,) = run_imported(import_model(model), {"x": X})
    assert (y == -X).all()


def test_an_input_may_be_an_output() -> None:
    model = model_of([node("Neg", ["x"], ["y"])], {"x": X}, {"x": F, "y": F})
    x, y = run_imported(import_model(model), {"x": X})
    assert (x == X).all() and (y == -X).all()


def test_what_no_output_needs_is_not_imported() -> None:
    model = model_of([node("Neg", ["x"], ["y"]), node("NoSuchOperator", ["x"], ["z"])], {"x": X}, ["y"])
    import_model(model)


def test_optional_inputs_and_outputs_may_be_left_out() -> None:
    model = model_of([node("Clip", ["x", "", "high"], ["y"])], {"x": X}, ["y"], initializers={"high": f32(2)})
    check_against_onnxruntime(model, {"x": X})
    model = model_of([node("TopK", ["x", "k"], ["", "i"])], {"x": X}, ["i"], initializers={"k": np.array([2])})
    assert run_imported(import_model(model), {"x": X})[0].tolist() == [[2, 1], [2, 1]]


# Shapes


def test_shapes_bind_the_symbols_they_share() -> None:
    model = model_of([node("Add", ["x", "z"], ["y"])], {"x": info("x", "b", 3), "z": info("z", "b", 1)}, ["y"])
    assert [str(s) for s in import_model(model, shapes={"x": (5, 3)}).inputs] == ["x f32[5,3]", "z f32[5,1]"]


def test_dims_bind_symbols() -> None:
    model = symbolic_model()
    imported = import_model(model, dims={"batch": 4}, shapes={"z": (4, 1)})
    assert [str(s) for s in imported.outputs] == ["y f32[4,3]"]


def test_unbound_dimensions_say_how_to_bind_them() -> None:
    with pytest.raises(UnboundDimensionsError) as caught:
        import_model(symbolic_model())
    assert str(caught.value) == (
        "2 inputs have dimensions without a size\n"
        "  input  x f32[batch,3]\n"
        "  input  z f32[batch,?]\n"
        '  hint   give sizes, such as shapes={"x": (1, 3), "z": (1, 1)}'
    )


def test_a_symbol_with_a_size_is_shown_bound() -> None:
    with pytest.raises(UnboundDimensionsError) as caught:
        import_model(symbolic_model(), dims={"batch": 7})
    assert "z f32[7,?]" in str(caught.value) and "x f32" not in str(caught.value)


@pytest.mark.parametrize(
    ("binding", "message"),
    [
        ({"shapes": {"x": (2, 4)}}, r"shape \[2, 4\] does not fit the model's input x f32\[batch,3\]"),
        ({"shapes": {"x": (2,)}}, "does not fit"),
        ({"shapes": {"x": (-1, 3)}}, "does not fit"),
        ({"shapes": {"x": (2, 3)}, "dims": {"batch": 4}}, "does not fit"),
        ({"shapes": {"nope": (2, 3)}}, "no input 'nope'\n  hint   inputs: x, z"),
        ({"dims": {"nope": 2}}, "no symbolic dimension 'nope'\n  hint   symbolic dimensions: batch"),
        ({"dims": {"batch": -2}}, "cannot be -2"),
        ({"constants": {"nope": X}}, "no input 'nope'"),
    ],
)
def test_bindings_that_do_not_fit_are_refused(binding: dict[str, Any], message: str) -> None:
    with pytest.raises(ShapeError, match=message) as caught:
        import_model(symbolic_model(), **binding)
    assert not isinstance(caught.value, UnboundDimensionsError)


def test_the_signature_is_read_without_import() -> None:
    model = model_of([node("NoSuchOperator", ["x"], ["y"])], {"x": info("x", "batch", 3)}, {"y": INT})
    signature = model_signature(model.SerializeToString())
    assert [str(s) for s in signature.inputs] == ["x f32[batch,3]"]
    assert signature.outputs[0].onnx_type == "tensor(int64)"
    assert signature.symbols == ("batch",)


# Constants


def test_an_initializer_that_is_an_input_is_a_constant_and_may_be_replaced() -> None:
    model = model_of([node("Mul", ["x", "w"], ["y"])], {"x": X, "w": X}, ["y"], initializers={"w": X})
    imported = import_model(model)
    assert [s.name for s in imported.inputs] == ["x"]
    assert (run_imported(imported, {"x": X})[0] == X * X).all()
    replaced = import_model(model, constants={"w": np.ones((2, 3), np.float32)})
    assert (run_imported(replaced, {"x": X})[0] == X).all()


def test_constants_specialise_inputs() -> None:
    model = model_of([node("Reshape", ["x", "shape"], ["y"])], {"x": X, "shape": np.array([3, 2])}, ["y"])
    imported = import_model(model, constants={"shape": np.array([-1, 2])})
    assert [str(s) for s in imported.inputs] == ["x f32[2,3]"]
    assert [str(s) for s in imported.outputs] == ["y f32[3,2]"]


def test_a_constant_of_another_type_is_refused() -> None:
    model = model_of([node("Reshape", ["x", "shape"], ["y"])], {"x": X, "shape": np.array([3, 2])}, ["y"])
    with pytest.raises(ShapeError, match=r"constant given for shape is float64; the model wants tensor\(int64\)"):
        import_model(model, constants={"shape": np.array([3.0, 2.0])})


def test_shapes_follow_chains_of_integer_arithmetic() -> None:
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "zero"], ["n"]),
        node("Mul", ["n", "three"], ["m"]),
        node("Concat", ["m", "one"], ["target"], axis=0),
        node("Reshape", ["x", "target"], ["y"]),
    ]
    constants = {"zero": np.array([0]), "three": np.array([3]), "one": np.array([1])}
    check_against_onnxruntime(model_of(nodes, {"x": X}, ["y"], initializers=constants), {"x": X})


def test_bytes_of_strings_never_reach_the_module() -> None:
    nodes = [node("Constant", [], ["s"], value_strings=["a", "b"]), node("Shape", ["s"], ["y"])]
    (y,) = import_model(model_of(nodes, {}, {"y": INT})).module.entry.evaluate()
    assert y.tolist() == [2]


# Functions


def function(
    name: str, inputs: list[str], outputs: list[str], nodes: list[NodeProto], attributes: tuple[str, ...] = ()
) -> FunctionProto:
    return helper.make_function("mine", name, inputs, outputs, nodes, [helper.make_opsetid("", 21)], list(attributes))


def scaled(attribute: str) -> list[NodeProto]:
    """y = x * attribute"""
    constant = node("Constant", [], ["c"])
    constant.attribute.add(name="value_float", ref_attr_name=attribute, type=1)
    return [constant, node("Mul", ["x", "c"], ["y"])]


def test_model_local_functions_are_written_out() -> None:
    model = model_of([node("Scale", ["x"], ["y"], domain="mine", by=3.0)], {"x": X}, ["y"], domains={"mine": 1})
    model.functions.append(function("Scale", ["x"], ["y"], scaled("by"), ("by",)))
    check_against_onnxruntime(model, {"x": X})


def test_functions_call_functions_and_pass_attributes_on() -> None:
    call = node("Scale", ["x"], ["h"], domain="mine")
    call.attribute.add(name="by", ref_attr_name="factor", type=1)
    outer = function("Twice", ["x"], ["y"], [call, node("Add", ["h", "h"], ["y"])], ("factor",))
    outer.opset_import.append(helper.make_opsetid("mine", 1))
    model = model_of([node("Twice", ["x"], ["y"], domain="mine", factor=2.0)], {"x": X}, ["y"], domains={"mine": 1})
    model.functions.extend([function("Scale", ["x"], ["y"], scaled("by"), ("by",)), outer])
    (y,) = check_against_onnxruntime(model, {"x": X})
    assert (y == 4 * X).all()


def test_inputs_that_a_caller_leaves_out_are_left_out_inside() -> None:
    clip = function("MyClip", ["x", "low", "high"], ["y"], [node("Clip", ["x", "low", "high"], ["y"])])
    model = model_of(
        [node("MyClip", ["x", "", "high"], ["y"], domain="mine")],
        {"x": X},
        ["y"],
        initializers={"high": f32(2)},
        domains={"mine": 1},
    )
    model.functions.append(clip)
    (y,) = run_imported(import_model(model), {"x": X})
    assert (y == np.minimum(X, 2)).all()


def test_an_operator_without_a_rule_is_its_function_body() -> None:
    with pytest.raises(NoRule):
        lookup("AffineGrid", "", 20)
    theta = f32([[[1.0, 0.5, 0.0], [0.0, 1.0, 0.25]], [[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]]])
    model = model_of(
        [node("AffineGrid", ["theta", "size"], ["y"], align_corners=1)],
        {"theta": theta},
        ["y"],
        initializers={"size": np.array([2, 1, 2, 2])},
    )
    check_against_onnxruntime(model, {"theta": theta})


# Files and reports


def test_text_formats_are_read(tmp_path: Path) -> None:
    from google.protobuf import json_format, text_format

    model = model_of([node("Neg", ["x"], ["y"])], {"x": X}, ["y"])
    (tmp_path / "m.textproto").write_text(text_format.MessageToString(model))
    (tmp_path / "m.json").write_text(json_format.MessageToJson(model))
    for name in ("m.textproto", "m.json"):
        assert (run_imported(import_model(tmp_path / name), {"x": X})[0] == -X).all()


def test_explain_reports_without_raising() -> None:
    model = model_of([node("NoSuch", ["x"], ["h"]), node("Neg", ["h"], ["y"])], {"x": X}, ["y"])
    report = explain(model)
    assert not report.compiles and dict(report.operators) == {"NoSuch": 1, "Neg": 1}
    assert str(report) == (
        "test: 2 nodes, 2 operators, opset ai.onnx 21\n"
        "  input  x f32[2,3]\n"
        "  output y tensor(undefined)[...]\n"
        "1 problem\n"
        "NoSuch at opset 21 has no import rule\n"
        "  node   NoSuch:h (NoSuch, opset 21), node 0\n"
        "  input  x f32[2,3]\n"
        "  hint   define NoSuch as a function in the model, or export it in operators of ONNX"
    )
    assert explain(symbolic_model()).problems[0].kind is UnboundDimensionsError


# The registry


def test_rules_must_not_overlap() -> None:
    onnx_op("Overlapping", since=2, until=4, domain="test")(lambda node, b: node.input(0))
    with pytest.raises(TypeError, match=r"test.Overlapping: rules 2\.\.4 and 4\.\. overlap"):
        onnx_op("Overlapping", since=4, domain="test")(lambda node, b: node.input(0))


def test_a_gap_between_rules_lists_the_ranges() -> None:
    onnx_op("Gap", since=2, until=4, domain="test")(lambda node, b: node.input(0))
    onnx_op("Gap", since=7, domain="test")(lambda node, b: node.input(0))
    with pytest.raises(NoRule, match=r"test.Gap at opset 5 has no import rule \(rules cover: 2..4, 7..\)"):
        lookup("Gap", "test", 5)
    assert [e.range for e in coverage() if e.name == "Gap"] == ["2..4", "7.."]
