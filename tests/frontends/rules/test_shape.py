"""Operators that move numbers without computing, against onnxruntime."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from onnxla.errors import ShapeError
from tests.frontends.rules.one_node import check_node, given, normal


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


@pytest.mark.parametrize("shape", [(4, 6), (-1,), (0, -1), (2, -1, 3), (0, 0, 0), (1, 2, 12)])
def test_reshape(shape: Sequence[int]) -> None:
    check_node("Reshape", normal(2, 3, 4), ints(*shape), constant=[1])


def test_reshape_to_nothing_needs_allowzero() -> None:
    check_node("Reshape", normal(0, 3), ints(3, 0), constant=[1], allowzero=1)


def test_reshape_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(ShapeError, match=r"24 elements do not fit the new shape \[5, 5\]"):
        check_node("Reshape", normal(2, 3, 4), ints(5, 5), constant=[1])


@pytest.mark.parametrize("axis", [0, 1, 2, 3, -1, -3])
def test_flatten(axis: int) -> None:
    check_node("Flatten", normal(2, 3, 4), axis=axis)


@pytest.mark.parametrize("axes", [None, (0,), (-1,), (0, 2)])
def test_squeeze(axes: tuple[int, ...] | None) -> None:
    check_node("Squeeze", normal(1, 3, 1), None if axes is None else ints(*axes), constant=[1] if axes else [])
    check_node("Squeeze", normal(1, 3, 1), opset=11, **given(axes=axes))


@pytest.mark.parametrize("axes", [(0,), (-1,), (0, 3), (2, 0)])
def test_unsqueeze(axes: tuple[int, ...]) -> None:
    check_node("Unsqueeze", normal(2, 3), ints(*axes), constant=[1])
    check_node("Unsqueeze", normal(2, 3), opset=11, axes=axes)


@pytest.mark.parametrize("permutation", [None, (0, 2, 1), (2, 0, 1)])
def test_transpose(permutation: tuple[int, ...] | None) -> None:
    check_node("Transpose", normal(2, 3, 4), **given(perm=permutation))


@pytest.mark.parametrize("shape", [(2, 3), (4, 1, 3), (1,), (2, 1)])
def test_expand(shape: Sequence[int]) -> None:
    check_node("Expand", normal(2, 1), ints(*shape), constant=[1])


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_concat(axis: int) -> None:
    check_node("Concat", normal(2, 3), normal(2, 3, seed=1), axis=axis)


def test_concat_of_one_and_of_nothing() -> None:
    check_node("Concat", normal(2, 3), axis=0)
    check_node("Concat", normal(0, 3), normal(2, 3), axis=0)


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.bool_])
def test_split(dtype: type[np.generic]) -> None:
    x = normal(6, 2).astype(dtype)
    check_node("Split", x, ints(1, 2, 3), constant=[1], outputs=3)
    check_node("Split", x, outputs=4, num_outputs=4)
    check_node("Split", x, outputs=2, axis=1, opset=13)
    check_node("Split", x, outputs=2, axis=-1, opset=11, split=[1, 1])


@pytest.mark.parametrize("repeats", [(1, 1), (2, 1), (1, 3), (2, 3), (0, 2)])
def test_tile(repeats: Sequence[int]) -> None:
    check_node("Tile", normal(2, 3), ints(*repeats), constant=[1])


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_depth_to_space(mode: str) -> None:
    check_node("DepthToSpace", normal(2, 8, 2, 3), blocksize=2, mode=mode)


def test_space_to_depth() -> None:
    check_node("SpaceToDepth", normal(2, 3, 4, 6), blocksize=2)


SLICES: list[tuple[Sequence[int], Sequence[int], Sequence[int] | None, Sequence[int] | None]] = [
    ([1], [3], None, None),
    ([0, 1], [2, 4], [0, 1], None),
    ([1], [-1], [1], None),
    ([-1], [-100], [1], [-1]),
    ([4], [0], [1], [-2]),
    ([0], [100], [-1], [3]),
    ([3], [1], [0], None),
    ([-100], [2**62], [0], [2]),
]


@pytest.mark.parametrize(("starts", "ends", "axes", "steps"), SLICES)
def test_slice(
    starts: Sequence[int], ends: Sequence[int], axes: Sequence[int] | None, steps: Sequence[int] | None
) -> None:
    optional = [None if v is None else ints(*v) for v in (axes, steps)]
    while optional and optional[-1] is None:
        optional.pop()
    given = [ints(*starts), ints(*ends), *optional]
    check_node("Slice", normal(4, 5), *given, constant=[i + 1 for i, v in enumerate(given) if v is not None])


@pytest.mark.parametrize(
    ("start", "end", "step"),
    [(-4, -6, -1), (-4, -4, -1), (-9, -99, -1), (-6, -5, -2), (-9, 2, 1), (9, -9, -2), (-9, 0, -1)],
)
def test_slice_from_before_the_first_element(start: int, end: int, step: int) -> None:
    """A start is clamped to the first element, where Python's slice backwards picks nothing."""
    given = [ints(start), ints(end), ints(0), ints(step)]
    check_node("Slice", normal(3), *given, constant=[1, 2, 3, 4])


def test_slice_by_attributes() -> None:
    check_node("Slice", normal(4, 5), opset=9, starts=[1, -3], ends=[1000, -1], axes=[0, 1])


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
@pytest.mark.parametrize("pads", [(1, 2, 2, 1), (0, 3, 0, 0), (0, 0, 0, 2), (2, 3, 2, 3)])
def test_pad(mode: str, pads: Sequence[int]) -> None:
    check_node("Pad", normal(3, 4), ints(*pads), constant=[1], mode=mode)


def test_pad_with_a_value_along_axes() -> None:
    value = np.array(7, np.float32)
    check_node("Pad", normal(3, 4), ints(1, 2), value, ints(-1), constant=[1, 3])


@pytest.mark.parametrize("pads", [(-1, 1, 0, -1), (0, -2, -1, 3)])
def test_negative_pads_crop(pads: Sequence[int]) -> None:
    check_node("Pad", normal(3, 4), ints(*pads), constant=[1])


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
def test_pad_by_attributes(mode: str) -> None:
    check_node(
        "Pad", normal(3, 4), opset=2, pads=[1, 1, 1, 2], mode=mode, **given(value=2.0 if mode == "constant" else None)
    )


@pytest.mark.parametrize("numbers", [(0, 5, 1), (10, 0, -3), (3, 3, 1), (5, 0, 1)])
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.float32])
def test_range(numbers: tuple[int, int, int], dtype: type[np.generic]) -> None:
    check_node("Range", *(np.array(n, dtype) for n in numbers), constant=[0, 1, 2])


def test_range_of_fractions() -> None:
    check_node("Range", *(np.array(n, np.float32) for n in (0.1, 1.0, 0.1)), constant=[0, 1, 2])


@pytest.mark.parametrize("attributes", [{}, {"k": 1}, {"k": -2, "dtype": 7}])
def test_eye_like(attributes: dict[str, Any]) -> None:
    check_node("EyeLike", normal(3, 4), **attributes)


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("k", [None, 0, 2, -1, 10, -10])
def test_trilu(upper: int, k: int | None) -> None:
    check_node("Trilu", normal(2, 3, 4), None if k is None else np.array(k, np.int64), upper=upper)


@pytest.mark.parametrize("axis", [-1, 0, 1, 2, -2])
def test_one_hot(axis: int) -> None:
    indices = np.array([[0, 2, 5], [-1, 7, -9]], np.int64)
    check_node("OneHot", indices, ints(6), np.array([-1, 3], np.float32), constant=[1], axis=axis)


@pytest.mark.parametrize("axes", [(0, 1), (1, 0)])
def test_reverse_sequence(axes: tuple[int, int]) -> None:
    lengths = ints(*((1, 4, 2, 3) if axes == (0, 1) else (3, 1, 2, 4)))
    check_node("ReverseSequence", normal(4, 4, 2), lengths, batch_axis=axes[1], time_axis=axes[0])
