"""Reported trouble: operators that others could not import, and values that came out wrong without a word."""

import numpy as np
import pytest
from onnx import TensorProto, helper

import onnxla
from onnxla.errors import CompileError, UnsupportedOpError
from tests.frontends.witness import model_of, run_onnxruntime
from tests.models.witnesses import check, model, normal


def test_the_first_opset() -> None:
    """onnx-mlir #1007: 'Model parsing failed', and the cause was opset 1. Its operators broadcast by attribute."""
    network = model(
        """<ir_version: 3, opset_import: ["": 1]>
        first (float[2,3] x) => (float[2,3] y) {
            a = Mul<broadcast = 1, axis = 0>(x, scale)
            b = Add<broadcast = 1>(a, bias)
            y = Relu(b)
        }""",
        {"scale": np.array([2, -1], np.float32), "bias": np.array([1, 0, -1], np.float32)},
    )
    x = normal(2, 3)
    (y,) = onnxla.compile(network).run(None, {"x": x})
    np.testing.assert_allclose(y, np.maximum(x * np.array([[2], [-1]]) + np.array([1, 0, -1]), 0), rtol=1e-6)


def test_layer_norm_as_exporters_write_it() -> None:
    """torch-mlir #2791: fails after a successful import."""
    network = model(
        """<ir_version: 10, opset_import: ["": 17]>
        norm (float[2,5,12] x) => (float[2,5,12] y, float[2,5,1] mean) {
            y, mean = LayerNormalization<axis = -1, epsilon = 1e-5>(x, scale, bias)
        }""",
        {"scale": normal(12, seed=1), "bias": normal(12, seed=2)},
    )
    check(network, {"x": normal(2, 5, 12) * 3 + 5})


@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_sampling_of_a_deformable_attention(mode: str) -> None:
    """onnx-mlir #3258: GridSample is missing. Places outside of the image are padded with zeros."""
    network = model(
        f"""<ir_version: 10, opset_import: ["": 20]>
        sample (float[2,4,6,8] value, float[2,5,3,2] places) => (float[2,4,5,3] y) {{
            y = GridSample<mode = "{mode}", padding_mode = "zeros", align_corners = 0>(value, places)
        }}"""
    )
    places = np.random.default_rng(1).uniform(-1.3, 1.3, (2, 5, 3, 2)).astype(np.float32)
    check(network, {"value": normal(2, 4, 6, 8), "places": places})


def test_grouped_convolution_and_local_norm() -> None:
    """onnx-mlir #1775: CaffeNet's convolutions in groups are refused."""
    network = model(
        """<ir_version: 10, opset_import: ["": 13]>
        caffe (float[1,6,15,15] x) => (float[1,8,4,4] y) {
            c = Conv<group = 2, pads = [2, 2, 2, 2], strides = [2, 2]>(x, w, b)
            r = Relu(c)
            n = LRN<size = 5, alpha = 1e-4, beta = 0.75>(r)
            y = MaxPool<kernel_shape = [3, 3], strides = [2, 2], ceil_mode = 1>(n)
        }""",
        {"w": normal(8, 3, 5, 5, scale=0.2), "b": normal(8)},
    )
    check(network, {"x": normal(1, 6, 15, 15)})


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_softmax_cross_entropy_with_ignored_labels(reduction: str) -> None:
    """openvino #20977: differs from onnxruntime."""
    network = model(
        f"""<ir_version: 10, opset_import: ["": 13]>
        loss (float[6,5] x, int64[6] labels) => (float y, float[6,5] log) {{
            y, log = SoftmaxCrossEntropyLoss<reduction = "{reduction}", ignore_index = -1>(x, labels, weights)
        }}""",
        {"weights": np.array([0.5, 1, 2, 1, 0.1], np.float32)},
    )
    network.graph.output[0].type.tensor_type.ClearField("shape")
    check(network, {"x": normal(6, 5) * 4, "labels": np.array([0, 4, -1, 2, 1, -1])})


def test_projection_of_a_transformer() -> None:
    """iree #23171: Mul, MatMul and Add of a vision transformer's projection go wrong on CPUs."""
    network = model(
        """<ir_version: 10, opset_import: ["": 17]>
        projection (float[1,197,48] x) => (float[1,197,96] y) {
            s = Mul(x, scale)
            p = MatMul(s, w)
            y = Add(p, bias)
        }""",
        {"scale": normal(48, seed=1), "w": normal(48, 96, seed=2, scale=0.1), "bias": normal(96, seed=3)},
    )
    check(network, {"x": normal(1, 197, 48)})


def test_integers_through_a_mixed_graph() -> None:
    """openvino #30666: an integer output of a random graph is 2 where onnxruntime has 0."""
    network = model(
        """<ir_version: 10, opset_import: ["": 17]>
        mixed (float[3,4] x, int32[3,4] n) => (int32[3,4] y, int64[3] i) {
            f = Floor(x)
            c = Cast<to = 6>(f)
            d = Sub(c, n)
            two = Constant<value = int32 {2}>()
            m = Mod(d, two)
            z = Mul(m, zero)
            y = Add(z, m)
            i = ArgMin<axis = 1, keepdims = 0>(d)
        }""",
        {"zero": np.array(0, np.int32)},
    )
    n = np.arange(12, dtype=np.int32).reshape(3, 4)
    check(network, {"x": normal(3, 4) * 5, "n": n})


def test_zero_times_a_constant() -> None:
    """tvm #17835: integer zeros change in the default pipeline. Both factors are known here, after a loop is gone."""
    body = helper.make_graph(
        [helper.make_node("Mul", ["v", "two"], ["w"]), helper.make_node("Identity", ["c"], ["d"])],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, ()),
            helper.make_tensor_value_info("c", TensorProto.BOOL, ()),
            helper.make_tensor_value_info("v", TensorProto.INT32, (4,)),
        ],
        [
            helper.make_tensor_value_info("d", TensorProto.BOOL, ()),
            helper.make_tensor_value_info("w", TensorProto.INT32, (4,)),
        ],
    )
    nodes = [
        helper.make_node("Loop", ["n", "", "zeros"], ["z"], body=body),
        helper.make_node("Add", ["x", "z"], ["y"]),
    ]
    x = np.array([5, -3, 0, 7], np.int32)
    for rounds in (1, 3):
        held = {"n": np.array(rounds), "zeros": np.zeros(4, np.int32), "two": np.full(4, 2, np.int32)}
        (y,) = onnxla.compile(model_of(nodes, {"x": x}, ["y"], initializers=held)).run(None, {"x": x})
        np.testing.assert_array_equal(y, x)


def test_half_precision_product_has_every_row() -> None:
    """onnxruntime #12726: some rows of an fp16 product come out as the bias alone."""
    network = model(
        """<ir_version: 10, opset_import: ["": 17]>
        linear (float16[33,40] x) => (float16[33,24] y) { p = MatMul(x, w) y = Add(p, b) }""",
        {"w": normal(40, 24, scale=0.2, dtype=np.float16), "b": normal(24, seed=3, dtype=np.float16)},
    )
    (y,) = check(network, {"x": normal(33, 40, dtype=np.float16)}, 4e-3, 2e-3)
    assert (np.abs(y - normal(24, seed=3, dtype=np.float16)).max(axis=1) > 0.01).all()


@pytest.mark.parametrize("level", [0, 3])
def test_quantised_layers_at_every_level(level: int) -> None:
    """onnxruntime #25259, iree #22865: a model of Q and DQ changes with the optimisations that are on."""
    network = model(
        """<ir_version: 10, opset_import: ["": 13]>
        quantised (float[1,3,8,8] x) => (float[1,4,6,6] y) {
            xq = QuantizeLinear(x, s, z)
            xd = DequantizeLinear(xq, s, z)
            wd = DequantizeLinear<axis = 0>(w, ws)
            c = Conv(xd, wd)
            r = Relu(c)
            yq = QuantizeLinear(r, s, z)
            y = DequantizeLinear(yq, s, z)
        }""",
        {
            "s": np.array(0.05, np.float32),
            "z": np.array(10, np.uint8),
            "w": np.random.default_rng(0).integers(-127, 128, (4, 3, 3, 3)).astype(np.int8),
            "ws": np.array([0.01, 0.02, 0.005, 0.03], np.float32),
        },
    )
    x = normal(1, 3, 8, 8) * 2
    (y,) = onnxla.compile(network, options={"opt_level": level}).run(None, {"x": x})
    (expected,) = run_onnxruntime(network, {"x": x})
    np.testing.assert_allclose(y, expected, atol=0.0501)
    assert np.mean(y != expected) < 0.02


def test_every_tensor_as_an_output_changes_nothing() -> None:
    """TensorRT #4338: NaN in half precision, right once every tensor is marked as an output."""
    lines = ["e = Exp(x)", "s = Mul(e, e)", "t = Tanh(s)", "y = Add(t, e)"]
    plain, marked = (
        model(
            '<ir_version: 10, opset_import: ["": 17]> g (float16[40] x) => ('
            + outputs
            + ") {\n"
            + "\n".join(lines)
            + "\n}"
        )
        for outputs in ("float16[40] y", "float16[40] y, float16[40] e, float16[40] s, float16[40] t")
    )
    x = np.linspace(-5, 9, 40).astype(np.float16)
    (alone,) = onnxla.compile(plain).run(None, {"x": x})
    (beside, *_) = onnxla.compile(marked).run(None, {"x": x})
    assert np.isfinite(alone).all()
    np.testing.assert_array_equal(alone, beside)


def test_product_with_three_open_dimensions() -> None:
    """iree #19162: a four-dimensional MatMul whose sizes are unknown breaks the bookkeeping of shapes."""
    network = model(
        """<ir_version: 10, opset_import: ["": 17]>
        product (float[A,4,B,16] x, float[A,4,16,C] z) => (float[A,4,B,C] y) { y = MatMul(x, z) }"""
    )
    compiled = onnxla.compile(network)
    for a, m, n in ((1, 5, 7), (2, 1, 3)):
        x, z = normal(a, 4, m, 16), normal(a, 4, 16, n, seed=1)
        (y,) = compiled.run(None, {"x": x, "z": z})
        np.testing.assert_allclose(y, x @ z, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("op_type", "others"),
    [("Reshape", ["n"]), ("Tile", ["n"]), ("Expand", ["n"]), ("ReduceSum", ["n"]), ("TopK", ["n"]), ("Squeeze", ["n"])],
)
def test_what_must_be_known_is_learnt_from_the_run(op_type: str, others: list[str]) -> None:
    """tensorflow #122057: 'must be a compile-time constant', for a family of operators, with no way out."""
    values = {"Reshape": [3, 4], "Tile": [2, 1], "Expand": [4, 3], "ReduceSum": [1], "TopK": [2], "Squeeze": [1]}
    shapes = {"Reshape": (4, 3), "Expand": (1, 3), "Squeeze": (4, 1)}
    x, n = normal(*shapes.get(op_type, (4, 3))), np.array(values[op_type])
    outputs = ["y", "places"] if op_type == "TopK" else ["y"]
    network = model_of([helper.make_node(op_type, ["x", *others], outputs)], {"x": x, "n": n}, ["y"], opset=17)
    expected = {
        "Reshape": x.reshape(3, 4) if op_type == "Reshape" else x,
        "Tile": np.tile(x, (2, 1)),
        "Expand": np.broadcast_to(x, (4, 3)) if op_type == "Expand" else x,
        "ReduceSum": x.sum(1, keepdims=True),
        "TopK": -np.sort(-x, axis=-1)[:, :2],
        "Squeeze": x[:, 0],
    }[op_type]
    (y,) = onnxla.compile(network).run(None, {"x": x, "n": n})
    np.testing.assert_allclose(y, expected, rtol=1e-6)
    (y,) = onnxla.compile(network, constants={"n": n}).run(None, {"x": x})
    np.testing.assert_allclose(y, expected, rtol=1e-6)


def test_the_operators_that_were_missing_elsewhere_have_rules() -> None:
    """tvm #20124: an inventory of gaps; what remains is refused by name, with the node."""
    from onnxla.frontends.onnx.registry import lookup

    for op_type in (
        "RNN GRU LSTM QLinearConv QLinearMatMul ConvInteger MatMulInteger Loop Scan If DFT STFT DeformConv "
        "RandomNormal RandomUniform Multinomial Bernoulli GridSample Einsum NonMaxSuppression StringConcat "
        "RegexFullMatch"
    ).split():
        assert lookup(op_type, "", 22) is not None
    with pytest.raises(CompileError) as caught:
        onnxla.compile(model_of([helper.make_node("Unheard", ["x"], ["y"])], {"x": normal(2)}, ["y"]))
    assert isinstance(caught.value, UnsupportedOpError) and "node   Unheard:y" in str(caught.value)
