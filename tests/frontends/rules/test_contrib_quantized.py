"""onnxruntime's quantised operators (com.microsoft) against onnxruntime."""

from typing import Any

import numpy as np
import pytest
from onnx import helper

from onnxla.hlo.types import Array
from tests.frontends.rules.test_quantization import SMALL, bytes_of, check, numbers
from tests.frontends.witness import check_against_onnxruntime, model_of

MICROSOFT = "com.microsoft"


def f32(value: float) -> Array:
    return np.array(value, np.float32)


def check_contrib(op: str, inputs: dict[str, Array], held: tuple[str, ...] = (), **attributes: Any) -> None:
    check(op, inputs, held, domain=MICROSOFT, **attributes)


@pytest.mark.parametrize("dtype", SMALL)
@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
def test_arithmetic_broadcasts(op: str, dtype: Any) -> None:
    inputs = {
        "a": bytes_of((3, 4, 5), dtype),
        "sa": f32(0.11),
        "za": np.array(3, dtype),
        "b": bytes_of((4, 1), dtype, 1),
        "sb": f32(0.07),
        "zb": np.array(9, dtype),
        "sc": f32(0.23),
        "zc": np.array(11, dtype),
    }
    check_contrib(op, inputs, held=("sa", "za", "sb", "zb", "sc", "zc"))


def unary_inputs(dtype: Any, shape: tuple[int, ...], scale: float, out_scale: float, zero: int) -> dict[str, Array]:
    return {
        "x": bytes_of(shape, dtype),
        "sx": f32(scale),
        "zx": np.array(zero, dtype),
        "sy": f32(out_scale),
        "zy": np.array(zero, dtype),
    }


@pytest.mark.parametrize("dtype", SMALL)
def test_functions(dtype: Any) -> None:
    held = ("sx", "zx", "sy", "zy")
    check_contrib("QLinearSigmoid", unary_inputs(dtype, (4, 64), 0.05, 1 / 255, 7), held)
    check_contrib("QLinearLeakyRelu", unary_inputs(dtype, (4, 64), 0.05, 0.03, 7), held, alpha=0.2)


@pytest.mark.parametrize("opset, axis", [(13, 1), (13, -1), (11, 1)])
@pytest.mark.parametrize("dtype", SMALL)
def test_softmax(opset: int, axis: int, dtype: Any) -> None:
    inputs = unary_inputs(dtype, (3, 6, 5), 0.04, 1 / 256, 0 if dtype is np.uint8 else -128)
    node = helper.make_node("QLinearSoftmax", list(inputs), ["y"], domain=MICROSOFT, opset=opset, axis=axis)
    held = {n: inputs[n] for n in inputs if n != "x"}
    model = model_of([node], {"x": inputs["x"]}, ["y"], initializers=held, domains={MICROSOFT: 1})
    check_against_onnxruntime(model, {"x": inputs["x"]})


@pytest.mark.parametrize("dtype", SMALL)
def test_concat_requantises(dtype: Any) -> None:
    inputs = {
        "sy": f32(0.1),
        "zy": np.array(5, dtype),
        "a": bytes_of((2, 3), dtype),
        "sa": f32(0.07),
        "za": np.array(1, dtype),
        "b": bytes_of((2, 4), dtype, 1),
        "sb": f32(0.1),
        "zb": np.array(5, dtype),
    }
    check_contrib("QLinearConcat", inputs, held=("sy", "zy", "sa", "za", "sb", "zb"), axis=1)


def test_where() -> None:
    inputs = {
        "c": np.array([[True, False, True]]),
        "x": bytes_of((2, 3), np.uint8),
        "sx": f32(0.07),
        "zx": np.array(1, np.uint8),
        "y": bytes_of((2, 3), np.uint8, 1),
        "sy": f32(0.05),
        "zy": np.array(8, np.uint8),
        "sz": f32(0.1),
        "zz": np.array(5, np.uint8),
    }
    check_contrib("QLinearWhere", inputs, held=("sx", "zx", "sy", "zy", "sz", "zz"), outputs=["z"])


@pytest.mark.parametrize("channels_last", [0, 1])
def test_pools(channels_last: int) -> None:
    shape = (2, 7, 6, 3) if channels_last else (2, 3, 7, 6)
    inputs = unary_inputs(np.uint8, shape, 0.0503, 0.0371, 130)
    held = ("sx", "zx", "sy", "zy")
    check_contrib("QLinearGlobalAveragePool", inputs, held, channels_last=channels_last)
    window = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}
    check_contrib("QLinearAveragePool", inputs, held, channels_last=channels_last, **window)


def gemm_inputs() -> dict[str, Array]:
    return {
        "a": bytes_of((3, 8), np.uint8),
        "sa": f32(0.04),
        "za": np.array(120, np.uint8),
        "w": bytes_of((5, 8), np.int8, 1),
        "sw": np.linspace(0.01, 0.03, 5, dtype=np.float32),
        "zw": bytes_of((5,), np.int8, 2),
        "bias": np.arange(5, dtype=np.int32) * 100,
    }


def test_qgemm_to_float_and_quantised() -> None:
    inputs = gemm_inputs()
    check_contrib("QGemm", inputs, transB=1, alpha=0.5)
    inputs |= {"sy": f32(0.3), "zy": np.array(100, np.uint8)}
    check_contrib("QGemm", inputs, held=("sa", "za", "sw", "zw", "sy", "zy"), transB=1)


def test_matmul_integer_to_float() -> None:
    inputs = {
        "a": bytes_of((2, 3, 8), np.uint8),
        "w": bytes_of((8, 5), np.int8, 1),
        "sa": f32(0.04),
        "sw": np.linspace(0.01, 0.03, 5, dtype=np.float32),
        "za": np.array(120, np.uint8),
        "zw": bytes_of((5,), np.int8, 2),
        "bias": numbers((5,)),
    }
    check_contrib("MatMulIntegerToFloat", inputs)
    check_contrib("MatMulIntegerToFloat", {n: inputs[n] for n in ("a", "w", "sa", "sw")})


def test_dynamic_quantize_matmul() -> None:
    inputs = {
        "a": numbers((2, 3, 8)),
        "w": bytes_of((8, 5), np.int8, 1),
        "sw": np.linspace(0.01, 0.03, 5, dtype=np.float32),
        "zw": bytes_of((5,), np.int8, 2),
        "bias": numbers((5,), 3),
    }
    check_contrib("DynamicQuantizeMatMul", inputs)
    check_contrib("DynamicQuantizeMatMul", {n: inputs[n] for n in ("a", "w", "sw")}, held=("w", "sw"))


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("dtype", SMALL)
def test_dynamic_quantize_lstm(direction: str, per_channel: bool, dtype: Any) -> None:
    directions, hidden, inputs_size = 2 if direction == "bidirectional" else 1, 8, 6
    shape = (directions, 4 * hidden) if per_channel else (directions,)
    scale = np.linspace(0.002, 0.004, int(np.prod(shape)), dtype=np.float32).reshape(shape)
    zero = np.full(shape, 128 if dtype is np.uint8 else 0, dtype)
    inputs = {
        "x": numbers((4, 1, inputs_size), spread=0.5),
        "w": bytes_of((directions, inputs_size, 4 * hidden), dtype),
        "r": bytes_of((directions, hidden, 4 * hidden), dtype, 1),
        "b": numbers((directions, 8 * hidden), spread=0.1),
        "-lengths": np.zeros(0, np.float32),
        "h0": numbers((directions, 1, hidden), 4, spread=0.5),
        "c0": numbers((directions, 1, hidden), 5, spread=0.5),
        "-p": np.zeros(0, np.float32),
        "sw": scale,
        "zw": zero,
        "sr": scale * np.float32(0.9),
        "zr": zero,
    }
    held = ("w", "r", "b", "sw", "zw", "sr", "zr")
    outputs = ["y", "y_h", "y_c"]
    options = {"direction": direction, "hidden_size": hidden, "rtol": 1e-5}
    check_contrib("DynamicQuantizeLSTM", inputs, held, outputs=outputs, **options)
