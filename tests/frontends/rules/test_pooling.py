"""Pooling over windows, whole images and regions, against onnxruntime."""

from typing import Any

import numpy as np
import pytest
from onnx import helper

import onnxla
from tests.frontends.rules.one_node import check_node, normal
from tests.frontends.witness import model_of

WINDOWS: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((1, 2, 7, 8), {"kernel_shape": [2, 3]}),
    ((2, 3, 7, 8), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    ((1, 2, 7, 8), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [0, 1, 1, 0]}),
    ((1, 2, 7, 8), {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
    ((1, 2, 6, 6), {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1, "pads": [1, 1, 1, 1]}),
    ((1, 2, 7, 8), {"kernel_shape": [2, 2], "auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    ((1, 2, 7, 8), {"kernel_shape": [3, 2], "auto_pad": "SAME_LOWER"}),
    ((1, 2, 7, 8), {"kernel_shape": [3, 2], "auto_pad": "VALID", "strides": [2, 1]}),
    ((1, 2, 9), {"kernel_shape": [3], "strides": [3]}),
    ((1, 2, 4, 5, 6), {"kernel_shape": [2, 2, 3], "pads": [0, 1, 1, 1, 0, 1]}),
    ((1, 2, 9, 9), {"kernel_shape": [3, 3], "dilations": [2, 3]}),
]


@pytest.mark.parametrize(("shape", "attributes"), WINDOWS)
def test_max_pool(shape: tuple[int, ...], attributes: dict[str, Any]) -> None:
    check_node("MaxPool", normal(*shape), **attributes)


@pytest.mark.parametrize(("shape", "attributes"), WINDOWS)
@pytest.mark.parametrize("column_major", [0, 1])
def test_max_pool_tells_where(shape: tuple[int, ...], attributes: dict[str, Any], column_major: int) -> None:
    check_node("MaxPool", normal(*shape), outputs=2, storage_order=column_major, **attributes)


def test_max_pool_of_equals_takes_the_first() -> None:
    check_node("MaxPool", np.ones((1, 1, 4, 4), np.float32), outputs=2, kernel_shape=[2, 2], pads=[1, 1, 1, 1])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.float64])
def test_max_pool_of_other_types(dtype: type[np.generic]) -> None:
    check_node("MaxPool", (normal(1, 2, 6, 6) * 20 + 60).astype(dtype), kernel_shape=[3, 3], pads=[1, 1, 1, 1])


@pytest.mark.parametrize(("shape", "attributes"), WINDOWS)
@pytest.mark.parametrize("padding_counts", [0, 1])
def test_average_pool(shape: tuple[int, ...], attributes: dict[str, Any], padding_counts: int) -> None:
    check_node("AveragePool", normal(*shape), count_include_pad=padding_counts, **attributes)


@pytest.mark.parametrize(("shape", "attributes"), WINDOWS)
@pytest.mark.parametrize("p", [1, 2, 3])
def test_lp_pool(shape: tuple[int, ...], attributes: dict[str, Any], p: int) -> None:
    check_node("LpPool", normal(*shape), p=p, rtol=1e-4, **attributes)


@pytest.mark.parametrize("op_type", ["GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"])
@pytest.mark.parametrize("shape", [(2, 3, 5, 7), (2, 3, 4), (1, 2, 3, 4, 5)])
def test_global_pool(op_type: str, shape: tuple[int, ...]) -> None:
    check_node(op_type, normal(*shape))


def test_max_unpool() -> None:
    x = np.arange(1, 5, dtype=np.float32).reshape(1, 1, 2, 2)
    places = np.array([5, 7, 13, 15]).reshape(1, 1, 2, 2)
    check_node("MaxUnpool", x, places, kernel_shape=[2, 2], strides=[2, 2])


REGIONS = np.array([[0, 0, 9, 9], [1.3, 2.7, 6.1, 5.2], [-3, -2, 4, 20], [5, 5, 5.3, 5.4], [7, 3, 2, 1]], np.float32)


@pytest.mark.parametrize("ratio", [0, 1, 2])
@pytest.mark.parametrize("mode", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize("images", [1, 2])
def test_roi_align_average(ratio: int, mode: str, images: int) -> None:
    belongs = np.arange(5) % images
    attributes: dict[str, Any] = {"output_height": 3, "output_width": 2, "spatial_scale": 0.9, "sampling_ratio": ratio}
    regions = REGIONS if mode == "output_half_pixel" or ratio else REGIONS[:4]
    x = normal(images, 3, 10, 11)
    check_node(
        "RoiAlign",
        x,
        regions,
        belongs[: len(regions)],
        coordinate_transformation_mode=mode,
        rtol=1e-4,
        atol=1e-5,
        **attributes,
    )


def test_roi_align_of_regions_much_larger_and_smaller_than_a_bin() -> None:
    regions = np.array([[0, 0, 200, 150], [3, 3, 3.01, 3.02], [-80, -60, 9, 9]], np.float32)
    check_node(
        "RoiAlign",
        normal(1, 2, 10, 10),
        regions,
        np.zeros(3, np.int64),
        output_height=4,
        output_width=4,
        rtol=1e-4,
        atol=1e-5,
    )


def test_roi_align_maximum() -> None:
    attributes: dict[str, Any] = {"output_height": 3, "output_width": 2, "sampling_ratio": 2, "mode": "max"}
    check_node("RoiAlign", normal(2, 3, 10, 11), REGIONS[:4], np.array([0, 1, 1, 0]), rtol=1e-4, **attributes)


@pytest.mark.parametrize("mode", ["half_pixel", "output_half_pixel"])
def test_roi_align_maximum_over_as_many_samples_as_a_bin_has_pixels(mode: str) -> None:
    attributes: dict[str, Any] = {"output_height": 3, "output_width": 2, "mode": "max", "spatial_scale": 0.9}
    regions = np.concatenate([REGIONS[:4], np.array([[-40, 2, 90, 3]], np.float32)])
    belongs = np.array([0, 1, 1, 0, 0])
    check_node(
        "RoiAlign",
        normal(2, 3, 10, 11),
        regions,
        belongs,
        coordinate_transformation_mode=mode,
        rtol=1e-4,
        atol=1e-5,
        **attributes,
    )


def test_roi_align_maximum_of_a_bin_without_samples() -> None:
    region = np.array([[5, 5, 3, 4], [1, 1, 4, 4]], np.float32)
    attributes: dict[str, Any] = {"output_height": 2, "output_width": 2, "mode": "max"}
    model = model_of(
        [helper.make_node("RoiAlign", ["x", "r", "i"], ["y"], **attributes)],
        {"x": normal(1, 1, 6, 6), "r": region, "i": np.zeros(2, np.int64)},
        ["y"],
    )
    (y,) = onnxla.compile(model).run(None, {"x": normal(1, 1, 6, 6), "r": region, "i": np.zeros(2, np.int64)})
    assert (y[0] == 0).all() and (y[1] != 0).all()


def test_roi_align_before_opset_16() -> None:
    attributes: dict[str, Any] = {"output_height": 2, "output_width": 2, "sampling_ratio": 2}
    check_node("RoiAlign", normal(1, 2, 10, 11), REGIONS, np.zeros(5, np.int64), opset=10, rtol=1e-4, **attributes)


def test_max_roi_pool() -> None:
    regions = np.concatenate([np.array([[0], [1], [1], [0], [0]], np.float32), REGIONS], axis=1)
    check_node("MaxRoiPool", normal(2, 3, 10, 11), regions, pooled_shape=[3, 2], spatial_scale=0.8)
