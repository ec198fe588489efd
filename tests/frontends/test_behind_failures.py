"""What is certain of nodes that read what failed to import: it is in the same report, and nothing else is."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx.defs
import pytest
from onnx import FunctionProto, NodeProto, TensorProto, helper

from onnxla.errors import CompileError, DynamicShapeError
from onnxla.frontends.onnx.importer import import_model
from onnxla.frontends.onnx.report import explain
from onnxla.hlo.types import Array
from tests.frontends.witness import body_of, model_of

F, INT, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
X = np.arange(6, dtype=np.float32).reshape(2, 3)
node = helper.make_node
WAVE = node("Wave", ["x"], ["w"], name="wave")
AS_FUNCTION = "define {} as a function in the model, or export it in operators of ONNX"
WAY_OUT = (
    "make the data a constant, end the model before this node and do the rest outside, or leave what cannot be "
    'compiled to onnxruntime: fallback="onnxruntime", --fallback onnxruntime'
)


def error_of(
    nodes: Sequence[NodeProto], outputs: Mapping[str, int], functions: Sequence[FunctionProto] = (), **held: Array
) -> CompileError:
    inputs = {"x": X} if "x" not in held else {}
    model = model_of(list(nodes), inputs, outputs, initializers=held, domains={"com.microsoft": 1, "mine": 1})
    model.functions.extend(functions)
    with pytest.raises(CompileError) as caught:
        import_model(model)
    assert explain(model).problems == caught.value.problems
    return caught.value


def named(error: CompileError) -> list[str]:
    return [p.node.name for p in error.problems if p.node]


def test_everything_that_is_certain_is_in_one_report() -> None:
    nodes = [
        WAVE,
        node("Relu", ["w"], ["r"], name="relu"),
        node("Surf", ["r"], ["s"], name="surf"),
        node("NonZero", ["r"], ["places"], name="nonzero"),
        node("Tanh", ["r"], ["t"], name="tanh", approximate=1),
        node("ImageDecoder", ["w"], ["picture"], name="decoder"),
        node("FusedConvs", ["r"], ["c"], domain="com.microsoft", name="conv"),
        node("Upsample", ["r"], ["u"], name="upsample"),
        node("Reshap", ["r"], ["shaped"], name="reshape"),
    ]
    outputs = {"s": F, "places": INT, "t": F, "picture": F, "c": F, "u": F, "shaped": F}
    assert str(error_of(nodes, outputs)) == (
        "8 problems\n"
        "Wave at opset 21 has no import rule\n"
        "  node   wave (Wave, opset 21), node 0\n"
        "  input  x f32[2,3]\n"
        f"  hint   {AS_FUNCTION.format('Wave')}\n"
        "Surf at opset 21 has no import rule\n"
        "  node   surf (Surf, opset 21), node 2\n"
        "  input  r (not known: what gives it failed)\n"
        f"  hint   {AS_FUNCTION.format('Surf')}\n"
        "which elements are not zero decides the shape of NonZero's output, and is computed at run time\n"
        "  node   nonzero (NonZero, opset 21), node 3\n"
        "  input  r (not known: what gives it failed)\n"
        f"  hint   {WAY_OUT}\n"
        "Tanh has no attribute approximate at opset 21\n"
        "  node   tanh (Tanh, opset 21), node 4\n"
        "  input  r (not known: what gives it failed)\n"
        "  hint   the model was written for another opset than it imports\n"
        "the encoded image decides the size of the picture\n"
        "  node   decoder (ImageDecoder, opset 21), node 5\n"
        "  input  w (not known: what gives it failed)\n"
        "  hint   decode it outside the model\n"
        "com.microsoft.FusedConvs at opset 1 has no import rule\n"
        "  node   conv (com.microsoft.FusedConvs, opset 1), node 6\n"
        "  input  r (not known: what gives it failed)\n"
        '  hint   is com.microsoft.FusedConv meant? leave it to onnxruntime, fallback="onnxruntime" or '
        "--fallback onnxruntime, or define com.microsoft.FusedConvs as a function in the model\n"
        "Upsample at opset 21 has no import rule (rules cover: 1..6, 7..8, 9..9)\n"
        "  node   upsample (Upsample, opset 21), node 7\n"
        "  input  r (not known: what gives it failed)\n"
        "  hint   export the model with opset 1..6 or 7..8 or 9..9 of ai.onnx\n"
        "Reshap at opset 21 has no import rule\n"
        "  node   reshape (Reshap, opset 21), node 8\n"
        "  input  r (not known: what gives it failed)\n"
        "  hint   is Reshape meant? define Reshap as a function in the model"
    )


def test_data_that_may_be_constant_is_not_blamed() -> None:
    """What Wave makes of constants, the shape of anything, and what a wrong shape hides might all be known."""
    of_constants = [WAVE, node("NonZero", ["w"], ["y"], name="nonzero")]
    assert named(error_of(of_constants, {"y": INT}, x=X)) == ["wave"]
    of_shape = [WAVE, node("Shape", ["w"], ["s"]), node("NonZero", ["s"], ["y"])]
    assert named(error_of(of_shape, {"y": INT})) == ["wave"]
    of_wrong_shapes = [node("MatMul", ["x", "x"], ["w"], name="product"), node("NonZero", ["w"], ["y"])]
    assert named(error_of(of_wrong_shapes, {"y": INT}, x=X)) == ["product"]


def test_the_first_run_may_still_give_what_decides_a_shape() -> None:
    """NonZero folds once k is known, so it is no problem of its own, and does not keep k from being asked for."""
    nodes = [
        node("Reshape", ["data", "k"], ["r"], name="reshape"),
        node("NonZero", ["r"], ["y"], name="nonzero"),
    ]
    model = model_of(nodes, {"k": np.array([3, 2])}, {"y": INT}, initializers={"data": X})
    with pytest.raises(DynamicShapeError) as caught:
        import_model(model)
    assert named(caught.value) == ["reshape"] and caught.value.needs_constants == ("k",)
    assert import_model(model, constants={"k": np.array([3, 2])}).outputs[0].shape == (2, 5)


def test_inside_of_functions() -> None:
    body = [node("Surf", ["a"], ["s"], name="surf"), node("Swim", ["s"], ["b"], name="swim")]
    function = helper.make_function("mine", "Beach", ["a"], ["b"], body, [helper.make_opsetid("", 21)])
    nodes = [
        WAVE,
        node("Beach", ["w"], ["b"], domain="mine", name="beach"),
        node("NonZero", ["b"], ["y"], name="nonzero"),
    ]
    assert named(error_of(nodes, {"y": INT}, [function])) == ["wave", "beach/surf", "beach/swim", "nonzero"]


def branches(value: str) -> dict[str, Any]:
    return {
        name: body_of([node(op, [value], [f"{name}_out"], name=op)], {}, {f"{name}_out": F})
        for name, op in (("then_branch", "Surf"), ("else_branch", "Swim"))
    }


def test_inside_of_branches_that_may_run() -> None:
    """Not in one that a constant rules out, nor where the condition might be a constant."""
    computed = [WAVE, node("Cast", ["w"], ["c"], to=BOOL), node("If", ["c"], ["y"], name="if", **branches("x"))]
    assert named(error_of(computed, {"y": F})) == ["wave", "if/Surf", "if/Swim"]
    captured = [WAVE, node("Cast", ["x"], ["c"], to=BOOL), node("If", ["c0"], ["y"], name="if", **branches("w"))]
    captured.insert(2, node("ReduceMax", ["x"], ["m"], keepdims=0))
    captured.insert(3, node("Cast", ["m"], ["c0"], to=BOOL))
    assert named(error_of(captured, {"y": F})) == ["wave", "if/Surf", "if/Swim"]
    known = [WAVE, node("If", ["no"], ["y"], name="if", **branches("w"))]
    assert named(error_of(known, {"y": F}, no=np.array(False))) == ["wave", "if/Swim"]
    of_shape = [
        WAVE,
        node("Size", ["w"], ["n"]),
        node("Cast", ["n"], ["c"], to=BOOL),
        node("If", ["c"], ["y"], name="if", **branches("x")),
    ]
    assert named(error_of(of_shape, {"y": F})) == ["wave"]


def test_inside_of_loops() -> None:
    inner = body_of(
        [node("Identity", ["c"], ["d"]), node("Surf", ["v"], ["u"], name="surf")],
        {"i": (INT, []), "c": (BOOL, []), "v": (F, [2, 3])},
        {"d": BOOL, "u": F},
    )
    nodes = [WAVE, node("Loop", ["n", "", "w"], ["y"], body=inner, name="loop")]
    assert named(error_of(nodes, {"y": F}, n=np.array(3))) == ["wave", "loop/surf"]
    scanned = body_of([node("Swim", ["v"], ["u"], name="swim")], {"v": (F, [3])}, {"u": F})
    nodes = [WAVE, node("Scan", ["w"], ["y"], body=scanned, num_scan_inputs=1, name="scan")]
    assert named(error_of(nodes, {"y": F})) == ["wave", "scan/swim"]


def test_what_a_body_makes_of_a_carried_value_that_is_computed() -> None:
    """Where what a loop carries is computed before it, and where it is constant and may be in the body."""
    inner = body_of(
        [
            node("Identity", ["c"], ["d"]),
            node("Surf", ["v"], ["u"], name="surf"),
            node("Unique", ["u"], ["w"], name="unique"),
        ],
        {"i": (INT, []), "c": (BOOL, []), "v": (F, [2, 3])},
        {"d": BOOL, "w": F},
    )
    loop = node("Loop", ["n", "", "w"], ["y"], body=inner, name="loop")
    assert named(error_of([WAVE, loop], {"y": F}, n=np.array(3))) == ["wave", "loop/surf", "loop/unique"]
    assert named(error_of([WAVE, loop], {"y": F}, n=np.array(3), x=X)) == ["wave", "loop/surf"]
    scanned = body_of([node("Unique", ["v"], ["u"], name="unique")], {"v": (F, [3])}, {"u": F})
    scan = node("Scan", ["w"], ["y"], body=scanned, num_scan_inputs=1, name="scan")
    assert named(error_of([WAVE, scan], {"y": F})) == ["wave", "scan/unique"]
    assert named(error_of([WAVE, scan], {"y": F}, x=X)) == ["wave"]


FORMS = {
    "Cast: no element type for ONNX data type 99": node("Cast", ["v"], ["y"], to=99),
    "Conv: input 1 is missing": node("Conv", ["v"], ["y"]),
    "Unsqueeze: input 1 is missing": node("Unsqueeze", ["v"], ["y"]),
    "Concat: the attribute axis is missing": node("Concat", ["v"], ["y"]),
    "Gemm: the attribute alpha is STRING, not FLOAT": node("Gemm", ["v", "x"], ["y"], alpha="q"),
    "Softmax: the attribute axis is FLOAT, not INT": node("Softmax", ["v"], ["y"], axis=1.5),
    "Relu: 2 inputs, where at most 1 may be": node("Relu", ["v", "x"], ["y"]),
    "Gather: the attribute axis is FLOAT, not INT; input 1 is missing": node("Gather", ["v"], ["y"], axis=1.5),
}


@pytest.mark.parametrize(("cause", "wrong"), FORMS.items(), ids=FORMS.keys())
def test_the_form_of_a_node_is_wrong_whatever_it_reads(cause: str, wrong: NodeProto) -> None:
    behind = error_of([node("Wave", ["x"], ["v"], name="wave"), wrong], {"y": F})
    assert [p.cause for p in behind.problems][1:] == [cause]
    assert [p.cause for p in error_of([node("Neg", ["x"], ["v"]), wrong], {"y": F}).problems] == [cause]


ELEMENT_TYPES = (
    "Attention.softmax_precision Bernoulli.dtype BitCast.to Cast.to DequantizeLinear.output_dtype EyeLike.dtype "
    "GroupNormalization.stash_type LayerNormalization.stash_type MelWeightMatrix.output_datatype Multinomial.dtype "
    "QuantizeLinear.output_dtype QuantizeLinear.precision RMSNormalization.stash_type RandomNormalLike.dtype "
    "RandomUniformLike.dtype"
).split()
WORDS = (
    "AveragePool.auto_pad BitShift.direction Conv.auto_pad ConvInteger.auto_pad ConvTranspose.auto_pad "
    "DepthToSpace.mode GRU.direction Gelu.approximate GridSample.mode GridSample.padding_mode LSTM.direction "
    "LpPool.auto_pad MaxPool.auto_pad Pad.mode QLinearConv.auto_pad RNN.direction "
    "Resize.coordinate_transformation_mode Resize.keep_aspect_ratio_policy Resize.mode Resize.nearest_mode "
    "RoiAlign.coordinate_transformation_mode RoiAlign.mode ScatterElements.reduction ScatterND.reduction "
    "SpaceToDepth.mode TensorScatter.mode"
).split()
LEARNT_WORDS = (
    "LinearClassifier.post_transform LinearRegressor.post_transform Normalizer.norm SVMClassifier.kernel_type "
    "SVMClassifier.post_transform SVMRegressor.kernel_type TreeEnsembleClassifier.post_transform "
    "TreeEnsembleRegressor.aggregate_function TreeEnsembleRegressor.post_transform"
).split()
PLAIN = {"INT": 1, "INTS": [1], "FLOAT": 1.0, "FLOATS": [1.0], "STRING": "x", "STRINGS": ["x"]}


@pytest.mark.parametrize(
    ("place", "wrong", "cause"),
    [
        *((place, 999, "{operator}: no element type for ONNX data type 999") for place in ELEMENT_TYPES),
        *((place, "wave", "{attribute}='wave' is not known") for place in WORDS),
        *((f"ai.onnx.ml.{place}", "wave", "{attribute}='wave' is not known") for place in LEARNT_WORDS),
    ],
)
def test_what_an_attribute_says_is_wrong_whatever_the_inputs_are(place: str, wrong: Any, cause: str) -> None:
    domain, operator, attribute = (*[""], *place.rsplit(".", 2))[-3:]
    opset = onnx.defs.onnx_opset_version() if not domain else 1
    schema = onnx.defs.get_schema(operator, opset, domain)
    given: dict[str, Any] = {
        name: PLAIN[str(a.type).rpartition(".")[2]] for name, a in schema.attributes.items() if a.required
    } | {attribute: wrong}
    if domain:
        given |= {"rho": [1.0], "coefficients": [1.0], "classlabels_ints": [1], "classlabels_int64s": [1]}
        given = {name: value for name, value in given.items() if name in schema.attributes}
    reader = node(operator, ["v"] * max(schema.min_input, 1), ["y"], domain=domain, **given)
    model = model_of(
        [node("Wave", ["x"], ["v"], name="wave"), reader],
        {"x": X},
        {"y": F},
        opset=onnx.defs.onnx_opset_version(),
        domains={domain: opset} if domain else {},
    )
    with pytest.raises(CompileError) as caught:
        import_model(model)
    assert [p.cause for p in caught.value.problems][1:] == [cause.format(operator=operator, attribute=attribute)]


def test_inputs_that_are_left_out_at_the_end_are_not_too_many() -> None:
    model = model_of([node("Relu", ["x", "", ""], ["y"])], {"x": X}, {"y": F})
    assert import_model(model).outputs[0].shape == (2, 3)


def test_an_operator_of_another_domain_is_recognised() -> None:
    error = error_of([node("FusedMatMul", ["x", "x"], ["y"], name="product")], {"y": F})
    assert error.problems[0].hint == (
        "is com.microsoft.FusedMatMul meant? define FusedMatMul as a function in the model"
    )
    error = error_of([node("Tan", ["x"], ["y"], domain="mine", name="tan")], {"y": F})
    assert error.problems[0].hint == "is Tan of ai.onnx meant? define mine.Tan as a function in the model"


def test_a_standard_operator_in_an_older_opset() -> None:
    model = model_of([node("Swish", ["x"], ["y"])], {"x": X}, {"y": F}, opset=13)
    with pytest.raises(CompileError) as caught:
        import_model(model)
    assert str(caught.value) == (
        "Swish at opset 13 has no import rule (rules cover: 24..)\n"
        "  node   Swish:y (Swish, opset 13), node 0\n"
        "  input  x f32[2,3]\n"
        "  hint   export the model with opset 24.. of ai.onnx"
    )
