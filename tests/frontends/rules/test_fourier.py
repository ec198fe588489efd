"""DFT and STFT against numpy (onnxruntime computes them in single precision)."""

from typing import Any

import numpy as np
import pytest
from onnx import helper

from onnxla.errors import OnnxlaError
from onnxla.frontends.onnx.importer import import_model
from onnxla.hlo.types import Array
from tests.frontends.witness import check_against_onnxruntime, model_of, run_imported


def complex_of(pairs: Array) -> Array:
    return np.asarray(pairs[..., 0] + 1j * pairs[..., 1])


def pairs_of(values: Array) -> Array:
    return np.stack([values.real, values.imag], axis=-1)


def transform(x: Array, axis: int, length: int | None = None, **attributes: Any) -> Array:
    held = {"axis": np.array(axis, np.int64)}
    if length is not None:
        held["n"] = np.array(length, np.int64)
    node = helper.make_node("DFT", ["x", "n" if length is not None else "", "axis"], ["y"], **attributes)
    (y,) = run_imported(import_model(model_of([node], {"x": x}, ["y"], initializers=held)), {"x": x})
    assert y.dtype == x.dtype
    return y


def numbers(*shape: int) -> Array:
    return np.random.default_rng(0).standard_normal(shape)


@pytest.mark.parametrize("n", [1, 2, 7, 16, 1025, 2048, 1031 * 2, 1500])
def test_lengths_direct_and_split(n: int) -> None:
    x = numbers(2, n, 2)
    np.testing.assert_allclose(complex_of(transform(x, 1)), np.fft.fft(complex_of(x), axis=1), atol=1e-9)


@pytest.mark.parametrize("axis", [0, 1, -2])
@pytest.mark.parametrize("length", [None, 4, 12])
def test_axes_cut_and_padded(axis: int, length: int | None) -> None:
    x = numbers(6, 5, 7, 2)
    expected = np.fft.fft(complex_of(x), n=length, axis=axis if axis >= 0 else axis + 1)
    np.testing.assert_allclose(complex_of(transform(x, axis, length)), expected, atol=1e-9)


def test_real_input_one_sided() -> None:
    x = numbers(3, 9, 1)
    np.testing.assert_allclose(complex_of(transform(x, 1, onesided=1)), np.fft.rfft(x[..., 0], axis=1), atol=1e-9)


def test_inverse() -> None:
    x = numbers(3, 9, 2)
    np.testing.assert_allclose(complex_of(transform(x, 1, inverse=1)), np.fft.ifft(complex_of(x), axis=1), atol=1e-9)


@pytest.mark.parametrize("length", [None, 8, 9])
def test_inverse_to_real(length: int | None) -> None:
    x = numbers(3, 5, 2)
    y = transform(x, 1, length, inverse=1, onesided=1)
    expected = np.fft.irfft(complex_of(x), n=length, axis=1)
    assert y.shape == (*expected.shape, 1)
    np.testing.assert_allclose(y[..., 0], expected, atol=1e-9)


def test_a_long_prime_is_refused() -> None:
    with pytest.raises(OnnxlaError, match="prime length 10007"):
        transform(numbers(1, 10007, 1), 1)


@pytest.mark.parametrize("one_sided", [0, 1])
@pytest.mark.parametrize("windowed", [False, True])
def test_short_time(one_sided: int, windowed: bool) -> None:
    x = numbers(2, 50, 1).astype(np.float32)
    held = {"step": np.array(5, np.int64), "length": np.array(16, np.int64)}
    if windowed:
        held["w"] = np.hanning(16).astype(np.float32)
    node = helper.make_node("STFT", ["x", "step", "w" if windowed else "", "length"], ["y"], onesided=one_sided)
    check_against_onnxruntime(model_of([node], {"x": x}, ["y"], initializers=held), {"x": x}, rtol=1e-3, atol=1e-4)
