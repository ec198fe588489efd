"""Conv, ConvTranspose, Col2Im and DeformConv against onnxruntime."""

from typing import Any

import numpy as np
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from onnxla.frontends.onnx.importer import import_model
from tests.frontends.rules.one_node import check_node, normal
from tests.frontends.witness import model_of

CONVOLUTIONS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((1, 3, 8, 9), (4, 3, 3, 3), {}),
    ((2, 3, 8, 9), (4, 3, 3, 2), {"pads": [1, 0, 2, 1], "strides": [2, 1]}),
    ((1, 4, 7, 7), (6, 2, 3, 3), {"group": 2, "pads": [1, 1, 1, 1]}),
    ((1, 4, 7, 7), (4, 1, 3, 3), {"group": 4, "dilations": [2, 2]}),
    ((1, 4, 7, 7), (8, 1, 3, 3), {"group": 4, "kernel_shape": [3, 3]}),
    ((1, 3, 8, 9), (4, 3, 3, 3), {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    ((1, 3, 8, 9), (4, 3, 2, 4), {"auto_pad": "SAME_LOWER", "strides": [1, 2]}),
    ((1, 3, 8, 9), (4, 3, 3, 3), {"auto_pad": "VALID"}),
    ((2, 3, 10), (4, 3, 3), {"strides": [2], "pads": [2, 0]}),
    ((1, 2, 5, 6, 4), (3, 2, 2, 3, 2), {"pads": [1, 0, 1, 0, 1, 0]}),
    ((1, 3, 5, 5), (4, 3, 1, 1), {}),
]


@pytest.mark.parametrize(("image", "weight", "attributes"), CONVOLUTIONS)
@pytest.mark.parametrize("bias", [True, False])
def test_conv(image: tuple[int, ...], weight: tuple[int, ...], attributes: dict[str, Any], bias: bool) -> None:
    b = normal(weight[0], seed=2) if bias else None
    check_node("Conv", normal(*image), normal(*weight, seed=1), b, rtol=1e-4, atol=1e-5, **attributes)


def test_conv_is_a_convolution_in_onnx_order() -> None:
    node = helper.make_node("Conv", ["x", "w"], ["y"])
    module = import_model(model_of([node], {"x": normal(1, 3, 8, 8), "w": normal(4, 3, 3, 3)}, ["y"])).module
    assert [i.op.opcode for i in module.entry.instructions()] == ["parameter", "parameter", "convolution", "tuple"]


TRANSPOSED: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((1, 3, 4, 5), (3, 4, 3, 3), {}),
    ((2, 3, 4, 5), (3, 4, 3, 2), {"strides": [2, 3]}),
    ((1, 3, 4, 5), (3, 4, 3, 3), {"strides": [2, 2], "pads": [1, 0, 1, 2], "output_padding": [1, 0]}),
    ((1, 4, 4, 5), (4, 3, 3, 3), {"group": 2, "strides": [2, 2]}),
    ((1, 4, 4, 5), (4, 1, 3, 3), {"group": 4, "dilations": [2, 1]}),
    ((1, 3, 4, 5), (3, 4, 3, 3), {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
    ((1, 3, 4, 5), (3, 4, 3, 3), {"strides": [2, 2], "auto_pad": "SAME_LOWER"}),
    ((1, 3, 4, 5), (3, 4, 3, 3), {"strides": [2, 2], "output_shape": [8, 10]}),
    ((1, 3, 4, 5), (3, 4, 3, 3), {"strides": [2, 2], "output_shape": [8, 10], "output_padding": [1, 1]}),
    ((1, 3, 6), (3, 2, 4), {"strides": [2], "pads": [1, 1]}),
    ((1, 2, 3, 3, 3), (2, 3, 2, 2, 2), {"strides": [2, 1, 2]}),
]


@pytest.mark.parametrize(("image", "weight", "attributes"), TRANSPOSED)
def test_conv_transpose(image: tuple[int, ...], weight: tuple[int, ...], attributes: dict[str, Any]) -> None:
    bias = normal(weight[1] * attributes.get("group", 1), seed=2)
    check_node("ConvTranspose", normal(*image), normal(*weight, seed=1), bias, rtol=1e-4, atol=1e-5, **attributes)


@pytest.mark.parametrize(
    ("columns", "image", "block", "attributes"),
    [
        ((1, 5, 5), [5, 5], [1, 5], {}),
        ((2, 18, 9), [5, 5], [3, 3], {}),
        ((1, 8, 16), [6, 6], [2, 2], {"pads": [1, 1, 1, 1], "strides": [2, 2]}),
        ((1, 8, 16), [6, 6], [2, 2], {"dilations": [2, 2]}),
    ],
)
def test_col2im(columns: tuple[int, ...], image: list[int], block: list[int], attributes: dict[str, Any]) -> None:
    check_node("Col2Im", normal(*columns), np.array(image), np.array(block), constant=[1, 2], **attributes)


@pytest.mark.parametrize(
    ("group", "offset_group", "attributes"),
    [(1, 1, {}), (2, 1, {"pads": [1, 1, 1, 1]}), (1, 2, {"strides": [2, 1]}), (2, 2, {"dilations": [1, 2]})],
)
@pytest.mark.parametrize("masked", [True, False])
def test_deform_conv(group: int, offset_group: int, attributes: dict[str, Any], masked: bool) -> None:
    x, weight = normal(2, 4, 6, 7), normal(6, 4 // group, 3, 2, seed=1)
    strides, dilations = attributes.get("strides", [1, 1]), attributes.get("dilations", [1, 1])
    pad = 2 if "pads" in attributes else 0
    out = [(n + pad - (k - 1) * d - 1) // s + 1 for n, k, s, d in zip((6, 7), (3, 2), strides, dilations, strict=True)]
    offset = normal(2, offset_group * 6 * 2, *out, seed=2) * 1.5
    mask = normal(2, offset_group * 6, *out, seed=3) if masked else None
    inputs = [x, weight, offset, normal(6, seed=4), *([] if mask is None else [mask])]
    names = [f"x{i}" for i in range(len(inputs))]
    node = helper.make_node("DeformConv", names, ["y"], group=group, offset_group=offset_group, **attributes)
    model = model_of([node], dict(zip(names, inputs, strict=True)), {"y": 1})
    (result,) = import_model(model).module.entry.evaluate(*inputs)
    (expected,) = ReferenceEvaluator(model).run(None, dict(zip(names, inputs, strict=True)))
    assert isinstance(expected, np.ndarray)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)
