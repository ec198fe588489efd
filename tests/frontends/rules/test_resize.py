"""Resize, Upsample and GridSample against onnxruntime."""

from typing import Any

import numpy as np
import pytest
from onnx import helper

from onnxla.frontends.onnx.importer import import_model
from tests.frontends.rules.one_node import check_node, normal
from tests.frontends.witness import model_of

COORDINATES = ["half_pixel", "pytorch_half_pixel", "half_pixel_symmetric", "align_corners", "asymmetric"]
SCALES = [(2, 2), (3, 1.5), (0.5, 0.5), (0.6, 2.7), (1, 1.3)]


def rounds_size(coordinates: str, sizes: tuple[int, int], scales: tuple[float, float]) -> bool:
    """Whether corners are aligned in a size that scales ask for and that is rounded.

    The standard then aligns the corner of what was asked for, onnxruntime that of the output.
    """
    return coordinates == "align_corners" and any((n * s) % 1 for n, s in zip(sizes, scales, strict=True))


@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize("coordinates", [*COORDINATES, "tf_half_pixel_for_nn"])
@pytest.mark.parametrize("rounding", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
def test_nearest(scales: tuple[float, float], coordinates: str, rounding: str) -> None:
    if rounds_size(coordinates, (5, 6), scales):
        return
    symmetric = coordinates == "half_pixel_symmetric"
    # With 0.6 a symmetric coordinate falls exactly on a pixel, up to the last bit.
    check_node(
        "Resize",
        normal(1, 2, 5, 6),
        None,
        np.array([1, 1, *((0.7, 2.7) if symmetric and scales[0] == 0.6 else scales)], np.float32),
        constant=[2],
        opset=19 if symmetric else 13,
        coordinate_transformation_mode=coordinates,
        nearest_mode=rounding,
    )


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("antialias", [0, 1])
def test_interpolation(mode: str, scales: tuple[float, float], coordinates: str, antialias: int) -> None:
    if rounds_size(coordinates, (7, 6), scales):
        return
    check_node(
        "Resize",
        normal(1, 2, 7, 6),
        None,
        np.array([1, 1, *scales], np.float32),
        constant=[2],
        opset=19,
        rtol=1e-4,
        atol=1e-5,
        mode=mode,
        coordinate_transformation_mode=coordinates,
        antialias=antialias,
    )


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("sizes", [(10, 12), (3, 4), (5, 9), (1, 1)])
def test_sizes(mode: str, sizes: tuple[int, int]) -> None:
    check_node(
        "Resize",
        normal(1, 2, 5, 6),
        None,
        None,
        np.array([1, 2, *sizes]),
        constant=[3],
        rtol=1e-4,
        atol=1e-5,
        mode=mode,
    )


@pytest.mark.parametrize("scales", [(2, 2), (0.6, 0.7)])
@pytest.mark.parametrize("antialias", [0, 1])
def test_cubic_without_outside(scales: tuple[float, float], antialias: int) -> None:
    check_node(
        "Resize", normal(1, 1, 7, 6), None, np.array([1, 1, *scales], np.float32), constant=[2], rtol=1e-4, atol=1e-5,
        mode="cubic", exclude_outside=1, cubic_coeff_a=-0.5, antialias=antialias,
    )  # fmt: skip


@pytest.mark.parametrize("policy", ["stretch", "not_larger", "not_smaller"])
def test_keeping_the_aspect_ratio(policy: str) -> None:
    check_node(
        "Resize", normal(1, 2, 5, 6), None, None, np.array([9, 7]), constant=[3], axes=[2, 3],
        keep_aspect_ratio_policy=policy,
    )  # fmt: skip


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_crop_and_resize(mode: str) -> None:
    roi = np.array([0, 0, 0.2, -0.3, 1, 1, 0.9, 1.2], np.float32)
    check_node(
        "Resize", normal(1, 2, 6, 7), roi, None, np.array([1, 2, 4, 5]), constant=[1, 3], rtol=1e-4, atol=1e-5,
        mode=mode,
        coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=9.0,
    )  # fmt: skip


@pytest.mark.parametrize("scales", [(2, 3), (0.5, 0.5), (1.5, 0.7)])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_before_opset_11(scales: tuple[float, float], mode: str) -> None:
    check_node("Resize", normal(1, 2, 5, 6), np.array([1, 1, *scales], np.float32), constant=[1], opset=10, mode=mode)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_upsample(mode: str) -> None:
    x, scales = normal(1, 2, 3, 4), [1.0, 1.0, 2.0, 3.0]
    check_node("Upsample", x, opset=7, mode=mode, scales=scales)
    check_node("Upsample", x, np.array(scales, np.float32), constant=[1], opset=9, mode=mode)


def test_nearest_by_whole_factors_is_a_broadcast() -> None:
    node = helper.make_node(
        "Resize", ["x", "", "s"], ["y"], coordinate_transformation_mode="asymmetric", nearest_mode="floor"
    )
    scales = np.array([1, 1, 2, 2], np.float32)
    module = import_model(model_of([node], {"x": normal(1, 2, 3, 4)}, ["y"], initializers={"s": scales})).module
    assert {i.op.opcode for i in module.entry.instructions()} == {"parameter", "broadcast", "reshape", "tuple"}


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("aligned", [0, 1])
def test_grid_sample(mode: str, padding: str, aligned: int) -> None:
    grid = normal(2, 4, 5, 2, seed=1)
    attributes: dict[str, Any] = {"mode": mode, "padding_mode": padding, "align_corners": aligned}
    check_node("GridSample", normal(2, 3, 6, 7), grid, opset=20, rtol=1e-4, atol=1e-5, **attributes)


@pytest.mark.parametrize("mode", ["linear", "nearest"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_grid_sample_of_volumes(mode: str, padding: str) -> None:
    grid = normal(1, 2, 3, 4, 3, seed=1)
    check_node(
        "GridSample", normal(1, 2, 3, 4, 5), grid, opset=20, mode=mode, padding_mode=padding, rtol=1e-4, atol=1e-5
    )
