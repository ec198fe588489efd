"""Quantised operators against onnxruntime: linear quantisation, integer products and convolutions."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from onnxla.errors import OnnxlaError
from onnxla.frontends.onnx.importer import import_model
from onnxla.hlo.ops.contraction import Dot
from onnxla.hlo.types import S8, U8, Array
from tests.frontends.witness import check_against_onnxruntime, model_of, run_imported

SMALL = [np.int8, np.uint8]


def numbers(shape: tuple[int, ...], seed: int = 0, spread: float = 3.0) -> Array:
    return (np.random.default_rng(seed).standard_normal(shape) * spread).astype(np.float32)


def bytes_of(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Array:
    limits = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(limits.min, limits.max + 1, shape).astype(dtype)


def check(
    op: str, inputs: Mapping[str, Any], held: tuple[str, ...] = (), rtol: float = 1e-6, **attributes: Any
) -> None:
    """Compare one node; the inputs named in `held` are initializers, and names that start with `-` are left out."""
    opset = attributes.pop("opset", 21)
    domain = attributes.pop("domain", "")
    outputs = attributes.pop("outputs", ["y"])
    names = [n if not n.startswith("-") else "" for n in inputs]
    node = helper.make_node(op, names, outputs, domain=domain, **attributes)
    fed = {n: np.asarray(a) for n, a in inputs.items() if n in names and n not in held}
    model = model_of(
        [node],
        fed,
        outputs,
        initializers={n: np.asarray(inputs[n]) for n in held},
        opset=opset,
        domains={domain: 1} if domain else None,
    )
    check_against_onnxruntime(model, fed, rtol=rtol)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16])
def test_quantize_saturates_and_rounds_half_to_even(dtype: Any) -> None:
    x = np.array([-1e9, -300, -2.5, -1.5, -0.5, -0.0, 0.5, 1.5, 2.5, 300, 1e9, np.inf, -np.inf], np.float32)
    check("QuantizeLinear", {"x": x, "s": np.float32(1), "z": np.array(7, dtype)})
    check("QuantizeLinear", {"x": x, "s": np.float32(0.37), "z": np.array(0, dtype)}, held=("s", "z"))


def test_quantize_without_zero_point_gives_u8() -> None:
    check("QuantizeLinear", {"x": numbers((3, 5)), "s": np.float32(0.1)})


@pytest.mark.parametrize("dtype", SMALL)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_parameters_along_an_axis(dtype: Any, axis: int) -> None:
    x = numbers((3, 4, 5))
    n = x.shape[axis]
    scale, zero = np.linspace(0.02, 0.1, n, dtype=np.float32), bytes_of((n,), dtype)
    check("QuantizeLinear", {"x": x, "s": scale, "z": zero}, axis=axis)
    check("DequantizeLinear", {"x": bytes_of((3, 4, 5), dtype), "s": scale, "z": zero}, axis=axis)


def test_parameters_of_blocks() -> None:
    x, zero = numbers((4, 6)), bytes_of((4, 2), np.int8)
    scale = np.abs(numbers((4, 2), 1)) + np.float32(0.1)
    check("QuantizeLinear", {"x": x, "s": scale, "z": zero}, axis=1, block_size=3)
    check("DequantizeLinear", {"x": bytes_of((4, 6), np.int8), "s": scale, "z": zero}, axis=1, block_size=3)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32])
def test_dequantize(dtype: Any) -> None:
    zero = np.array(0 if dtype == np.int32 else 5, dtype)
    check("DequantizeLinear", {"x": bytes_of((3, 7), dtype), "s": np.float32(0.3), "z": zero})


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_dequantize_to_half_precision(dtype: Any) -> None:
    check("DequantizeLinear", {"x": bytes_of((3, 7), dtype), "s": np.float16(0.3), "z": np.array(5, dtype)})


def test_quantize_half_precision() -> None:
    check("QuantizeLinear", {"x": numbers((5, 9)).astype(np.float16), "s": np.float16(0.03), "z": np.uint8(100)})


@pytest.mark.parametrize("code", [TensorProto.INT4, TensorProto.UINT4])
def test_four_bits(code: int) -> None:
    """Through DequantizeLinear, since numpy feeds of 4-bit types do not reach onnxruntime."""
    zero = helper.make_tensor("z", code, [], [3])
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"]),
    ]
    x = numbers((4, 6))
    model = model_of(nodes, {"x": x}, ["y"], initializers={"s": np.array(0.7, np.float32)})
    model.graph.initializer.append(zero)
    check_against_onnxruntime(model, {"x": x})


def test_wrong_number_of_scales_is_an_error() -> None:
    inputs = {"x": numbers((3, 4)), "s": np.ones(5, np.float32), "z": np.zeros(5, np.uint8)}
    model = model_of([helper.make_node("QuantizeLinear", list(inputs), ["y"])], inputs, ["y"])
    with pytest.raises(OnnxlaError, match="5 scales or zero points do not fit"):
        import_model(model)


@pytest.mark.parametrize("shift", [-10.0, 0.0, 10.0])
def test_dynamic_quantize(shift: float) -> None:
    outputs = ["y", "s", "z"]
    check("DynamicQuantizeLinear", {"x": numbers((4, 9)) + np.float32(shift)}, outputs=outputs, opset=11)


def test_dynamic_quantize_of_zeros() -> None:
    check("DynamicQuantizeLinear", {"x": np.zeros((2, 3), np.float32)}, outputs=["y", "s", "z"], opset=11)


@pytest.mark.parametrize("a", SMALL)
@pytest.mark.parametrize("w", SMALL)
@pytest.mark.parametrize("held", [(), ("za", "zw", "w")])
def test_matmul_integer(a: Any, w: Any, held: tuple[str, ...]) -> None:
    inputs = {
        "a": bytes_of((2, 3, 8), a),
        "w": bytes_of((8, 5), w, 1),
        "za": np.array(9, a),
        "zw": bytes_of((5,), w, 2),
    }
    check("MatMulInteger", inputs, held, opset=10)


@pytest.mark.parametrize("zero", [1, 128, 255])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_constant_weights_without_a_sign_get_one(zero: int, batch: tuple[int, ...]) -> None:
    fed = {"a": bytes_of((*batch, 3, 8), np.uint8)}
    held = {"w": bytes_of((*batch, 8, 5), np.uint8, 1), "za": np.array(7, np.uint8), "zw": np.array(zero, np.uint8)}
    node = helper.make_node("MatMulInteger", ["a", "w", "za", "zw"], ["y"])
    model = model_of([node], fed, ["y"], initializers=held, opset=10)
    check_against_onnxruntime(model, fed)
    (product,) = (i for i in import_model(model).module.entry.instructions() if isinstance(i.op, Dot))
    assert [o.tensor_type.element for o in product.operands] == [U8, S8]


def test_matmul_integer_in_batches() -> None:
    inputs = {"a": bytes_of((2, 3, 8), np.uint8), "w": bytes_of((2, 8, 5), np.int8), "za": np.array(9, np.uint8)}
    check("MatMulInteger", inputs, opset=10)


def test_matmul_integer_without_zero_points() -> None:
    check("MatMulInteger", {"a": bytes_of((3, 8), np.uint8), "w": bytes_of((8, 5), np.int8)}, opset=10)


def weights_of(shape: tuple[int, ...], dtype: Any) -> Array:
    """Signed ones of 7 bits: two products of larger ones saturate the 16 bits that onnxruntime has without VNNI."""
    drawn = bytes_of(shape, dtype, 1)
    return drawn // 2 if dtype is np.int8 else drawn


def qlinear_matmul_inputs(dtype: Any, columns: bool) -> dict[str, Array]:
    scale = np.linspace(0.01, 0.03, 5, dtype=np.float32) if columns else np.array(0.02, np.float32)
    zero = bytes_of((5,), dtype, 3) if columns else np.array(4, dtype)
    return {
        "a": bytes_of((3, 8), np.uint8),
        "sa": np.array(0.04, np.float32),
        "za": np.array(120, np.uint8),
        "w": weights_of((8, 5), dtype),
        "sw": scale,
        "zw": zero,
        "sy": np.array(0.5, np.float32),
        "zy": np.array(128, np.uint8),
    }


@pytest.mark.parametrize("dtype", SMALL)
@pytest.mark.parametrize("columns", [False, True])
def test_qlinear_matmul(dtype: Any, columns: bool) -> None:
    inputs = qlinear_matmul_inputs(dtype, columns)
    check("QLinearMatMul", inputs, held=("sa", "za", "w", "sw", "zw", "sy", "zy"))


def conv_inputs(dtype: Any, zero: int, group: int) -> dict[str, Array]:
    return {
        "x": bytes_of((2, 4, 7, 6), np.uint8),
        "sx": np.array(0.04, np.float32),
        "zx": np.array(120, np.uint8),
        "w": weights_of((6, 4 // group, 3, 2), dtype),
        "sw": np.linspace(0.01, 0.03, 6, dtype=np.float32),
        "zw": np.full(6, zero, dtype),
        "sy": np.array(0.5, np.float32),
        "zy": np.array(128, np.uint8),
        "bias": np.arange(6, dtype=np.int32) * 100,
    }


@pytest.mark.parametrize("dtype, zero", [(np.int8, 0), (np.uint8, 130)])
@pytest.mark.parametrize("group", [1, 2])
def test_qlinear_conv(dtype: Any, zero: int, group: int) -> None:
    inputs = conv_inputs(dtype, zero, group)
    held = tuple(n for n in inputs if n != "x")
    check("QLinearConv", inputs, held, group=group, pads=[1, 0, 2, 1], strides=[2, 1])


def test_qlinear_conv_with_channels_last() -> None:
    inputs = conv_inputs(np.int8, 0, 1)
    inputs["x"] = np.ascontiguousarray(inputs["x"].transpose(0, 2, 3, 1))
    held = tuple(n for n in inputs if n != "x")
    check("QLinearConv", inputs, held, domain="com.microsoft", channels_last=1, pads=[1, 0, 1, 1])


@pytest.mark.parametrize("zeros", [False, True])
def test_conv_integer(zeros: bool) -> None:
    inputs = {"x": bytes_of((1, 2, 6, 6), np.uint8), "w": bytes_of((3, 2, 3, 3), np.uint8, 1)}
    if zeros:
        inputs |= {"zx": np.array(100, np.uint8), "zw": np.array(7, np.uint8)}
    check("ConvInteger", inputs, opset=10, pads=[1, 1, 1, 1], dilations=[2, 1])


def test_conv_integer_zero_point_of_each_channel() -> None:
    """onnxruntime has no such case: the witness is the same product in numpy."""
    x, w = bytes_of((1, 1, 3, 3), np.uint8), bytes_of((2, 1, 3, 3), np.uint8, 1)
    zero = np.array([5, 200], np.uint8)
    inputs = {"x": x, "w": w, "zx": np.array(3, np.uint8), "zw": zero}
    model = model_of([helper.make_node("ConvInteger", list(inputs), ["y"])], inputs, ["y"])
    shifted = w.astype(np.int32) - zero.reshape(2, 1, 1, 1)
    expected = ((x.astype(np.int32) - 3) * shifted).sum(axis=(1, 2, 3))
    np.testing.assert_array_equal(run_imported(import_model(model), inputs)[0].reshape(2), expected)
