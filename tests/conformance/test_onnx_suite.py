"""ONNX's own backend tests, natively: compiled, run twice with the same bits, inputs untouched, results as expected."""

from dataclasses import replace

import numpy as np
import pytest

from onnxla.conformance.cases import case_index, read_case
from onnxla.conformance.runners import run_onnxla

DATA_DECIDES_SHAPE = (
    "test_unique_",
    "test_nonzero_",
    "test_compress_",
    "test_nonmaxsuppression_",
    "test_image_decoder_",
)
"""How the names begin of tests whose results have shapes that no compiler can know. All others must pass."""

NOISE = {
    "test_dft_inverse": "expects the rounding errors of numpy's single-precision FFT where zero is exact",
    "test_dft_inverse_opset19": "as test_dft_inverse",
}


@pytest.mark.parametrize("name", sorted(case_index()))
@pytest.mark.filterwarnings("ignore")
def test_case(name: str) -> None:
    with np.errstate(all="ignore"):
        outcome = run_onnxla(read_case(name))
    if name.startswith(DATA_DECIDES_SHAPE):
        assert (outcome.status, outcome.kind) == ("reject", "DynamicShapeError"), outcome.message
    elif name in NOISE:
        assert outcome.kind == "mismatch", outcome.message
    else:
        assert outcome.status == "pass", f"{outcome.kind}: {outcome.message}"


@pytest.mark.parametrize("name", sorted(NOISE))
def test_exact_data_are_met(name: str) -> None:
    """What fails above passes, within the same tolerance, with data that numpy makes in double precision."""
    case = read_case(name)
    inputs, _ = case.data_sets[0]
    x = inputs[0]
    exact = np.fft.ifft(x[..., 0].astype(np.complex128) + 1j * x[..., 1], axis=1)
    data = np.stack([exact.real, exact.imag], -1).astype(np.float32)
    assert run_onnxla(replace(case, data_sets=[(inputs, [data])])).status == "pass"
