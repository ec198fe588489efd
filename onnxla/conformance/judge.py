"""Whether results are what a case expects, within the case's own tolerance."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from onnxla.conformance.cases import Case

_HALF_WIDTH = 5.0
"""How many standard deviations the share of ones may lie off."""


def compare(case: Case, expected: Sequence[Any], results: Sequence[Any]) -> str:
    """How `results` differ from what the standard expects, within the tolerance of the case; empty where they agree."""
    if len(results) != len(expected):
        return f"{len(results)} outputs, {len(expected)} expected"
    differences = (
        _difference(case, e, r, f"output {i}") for i, (e, r) in enumerate(zip(expected, results, strict=True))
    )
    return next(filter(None, differences), "")


def _difference(case: Case, expected: Any, result: Any, where: str) -> str:
    if expected is None or result is None:
        return "" if expected is result else f"{where} is {result}, not {expected}"
    if isinstance(expected, (list, tuple)):
        if not isinstance(result, (list, tuple)) or len(result) != len(expected):
            return f"{where} is no sequence of {len(expected)}"
        pairs = enumerate(zip(expected, result, strict=True))
        return next(filter(None, (_difference(case, e, r, f"{where}[{i}]") for i, (e, r) in pairs)), "")
    expected, result = np.asarray(expected), np.asarray(result)
    if expected.shape != result.shape:
        return f"{where} has shape {list(result.shape)}, not {list(expected.shape)}"
    if expected.dtype.kind in "OSU":
        return "" if np.array_equal(expected.astype(str), result.astype(str)) else f"{where} has other strings"
    if expected.dtype != result.dtype:
        return f"{where} is {result.dtype}, not {expected.dtype}"
    return _random_difference(expected, result, where) if case.is_random else _off(case, expected, result, where)


def _off(case: Case, expected: Any, result: Any, where: str) -> str:
    rtol = case.rtol
    if expected.dtype.name == "bfloat16":
        rtol = max(rtol, 2**-6)
    if expected.dtype.isbuiltin != 1:  # the narrow types of ml_dtypes
        expected, result = expected.astype(np.float64), result.astype(np.float64)
    if expected.dtype.kind == "b":
        wrong = expected != result
    else:
        wrong = ~np.isclose(result, expected, rtol=rtol, atol=case.atol, equal_nan=True)
    if not wrong.any():
        return ""
    worst = np.argwhere(wrong)[0].tolist()
    return (
        f"{where}: {int(wrong.sum())} of {wrong.size} differ, first {result[*worst]} for {expected[*worst]} at {worst}"
    )


def _random_difference(expected: Any, result: Any, where: str) -> str:
    """Whether as many elements are kept as expected, up to chance, and the same value wherever both are kept."""
    kept, kept_there = result != 0, expected != 0
    count = max(result.size, 1)
    if abs(kept.mean() - kept_there.mean()) > _HALF_WIDTH * np.sqrt(0.5 / count):
        return f"{where}: {kept.mean():.2f} of the elements are kept, {kept_there.mean():.2f} expected"
    both = kept & kept_there
    agree = np.allclose(result[both].astype(np.float64), expected[both].astype(np.float64), rtol=1e-3)
    return "" if agree else f"{where}: the kept elements differ"
