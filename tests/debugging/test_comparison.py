"""When two arrays agree, and how far apart they are said to be."""

import math

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from onnxla.debugging.comparison import compare


def f32(*values: float) -> npt.NDArray[np.float32]:
    return np.array(values, np.float32)


def test_errors_are_measured_absolutely_relatively_and_in_steps() -> None:
    one = np.float32(1)
    found = compare("y", f32(1, 2, np.nextafter(one, np.float32(2))), f32(1, 2.5, 1))
    assert found.max_absolute == 0.5 and found.max_relative == pytest.approx(0.2)
    assert found.max_ulp == 1 << 21
    assert found.norm_error == pytest.approx(0.5 / math.sqrt(1 + 6.25 + 1))
    assert not found.agrees
    assert found.cause == "1 of 3 elements differ, first at [1]: 2.0 against 2.5"


def test_steps_are_counted_across_zero() -> None:
    tiny = np.nextafter(np.float32(0), np.float32(1))
    assert compare("y", np.array(-tiny), np.array(tiny)).max_ulp == 2
    assert compare("y", f32(-0.0), f32(0.0)).max_ulp == 0


def test_nan_agrees_with_nan_and_infinity_with_itself_only() -> None:
    assert compare("y", f32(np.nan, np.inf), f32(np.nan, np.inf)).agrees
    assert not compare("y", f32(np.inf), f32(-np.inf)).agrees
    assert not compare("y", f32(np.nan), f32(1)).agrees
    assert not compare("y", f32(1e38), f32(np.inf)).agrees


def test_integers_must_be_equal_without_wrapping() -> None:
    big = np.array([2**63 - 1, 5])
    assert compare("y", big, big).agrees
    found = compare("y", big, np.array([2**63 - 2, 5]))
    assert not found.agrees and found.max_absolute == 1
    assert compare("y", np.array([255], np.uint8), np.array([0], np.uint8)).max_absolute == 255


def test_a_tolerance_belongs_to_its_type() -> None:
    assert compare("y", f32(1.0005), f32(1)).agrees
    assert not compare("y", np.array([1.0005]), np.array([1.0])).agrees
    assert not compare("y", f32(1.0005), f32(1), rtol=0, atol=1e-6).agrees
    half = ml_dtypes.bfloat16
    assert compare("y", np.array([1.0078125], half), np.array([1], half)).max_ulp == 1


def test_other_shapes_and_types_differ() -> None:
    assert compare("y", f32(1, 2), f32(1)).cause == "float32[2] against float32[1]"
    assert compare("y", f32(1), np.array([1.0])).cause == "float32[1] against float64[1]"


def test_nothing_agrees_with_nothing() -> None:
    found = compare("y", np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32))
    assert found.agrees and found.max_absolute == 0


def test_scalars_and_complex_numbers() -> None:
    assert compare("y", np.array(1 + 1j, np.complex64), np.array(1 + 1j, np.complex64)).agrees
    assert compare("y", np.array(2.0), np.array(3.0)).cause == "1 of 1 elements differ, first: 2.0 against 3.0"
