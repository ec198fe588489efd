"""How far two arrays are apart, and whether that is near enough."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from onnxla.runtime.tensors import Array

_TOLERANCES = {
    "float64": (1e-6, 1e-8),
    "float32": (1e-3, 1e-4),
    "float16": (1e-2, 1e-2),
    "bfloat16": (5e-2, 5e-2),
    "complex128": (1e-6, 1e-8),
    "complex64": (1e-3, 1e-4),
}
_COARSE = (0.3, 0.1)
"""For floats of 8 and 4 bits, where one step apart is a quarter of the value."""

_BITS = {"float4_e2m1fn": 4}
"""Of the floats that do not fill their bytes."""


@dataclass(frozen=True)
class Comparison:
    """One output: ours against the other's. Errors are over all elements; `nan` where there is nothing to compare."""

    name: str
    type: str
    agrees: bool
    cause: str
    """Why it does not agree; empty where it does."""
    max_absolute: float
    max_relative: float
    max_ulp: float
    """Steps between neighbours of the element type."""
    norm_error: float
    """||ours - theirs|| / ||theirs||"""
    rtol: float
    atol: float


def compare(name: str, ours: Array, theirs: Array, rtol: float | None = None, atol: float | None = None) -> Comparison:
    """Compare element by element: |ours - theirs| <= atol + rtol * |theirs|, NaN equal to NaN, integers equal.

    The tolerances are those of the element type where they are not given.
    """
    if ours.dtype.kind in "OSU" and theirs.dtype.kind in "OSU":
        return _compare_strings(name, ours, theirs)
    default = _tolerance(ours.dtype)
    rtol, atol = default[0] if rtol is None else rtol, default[1] if atol is None else atol
    kind = _kind(ours)
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        cause = f"{kind} against {_kind(theirs)}"
        nan = float("nan")
        return Comparison(name, kind, False, cause, nan, nan, nan, nan, rtol, atol)
    a, b = _wide(ours), _wide(theirs)
    same = (a == b) | ((a != a) & (b != b))
    with np.errstate(all="ignore"):
        difference = np.where(same, 0, np.abs(a - b))
        magnitude = np.abs(b)
        relative = np.where(same, 0, difference / magnitude)
        near = same | (np.isfinite(b) & (difference <= atol + rtol * magnitude))
        norm = float(np.linalg.norm(np.where(np.isfinite(b), magnitude, 0)))
        distance = float(np.linalg.norm(difference))
    wrong = int(near.size - np.count_nonzero(near))
    return Comparison(
        name,
        kind,
        wrong == 0,
        _where_it_differs(near, ours, theirs, wrong) if wrong else "",
        _largest(difference),
        _largest(relative),
        _largest(np.where(same, 0, _ulp_distance(ours, theirs))),
        distance / norm if norm else distance,
        rtol,
        atol,
    )


def compare_all(
    ours: Mapping[str, Array], theirs: Mapping[str, Array], rtol: float | None = None, atol: float | None = None
) -> list[Comparison]:
    """Compare arrays by name; one that only one side has does not agree."""
    found = [compare(name, ours[name], theirs[name], rtol, atol) for name in ours if name in theirs]
    for mine, others, whose in ((ours, theirs, "onnxla"), (theirs, ours, "the other side")):
        found += [_different(n, mine[n], f"only {whose} gives it") for n in mine if n not in others]
    return found


def _different(name: str, array: Array, cause: str) -> Comparison:
    nan = float("nan")
    return Comparison(name, _kind(array), False, cause, nan, nan, nan, nan, 0.0, 0.0)


def _kind(array: Array) -> str:
    element = "string" if array.dtype.kind in "OSU" else str(array.dtype)
    return f"{element}[{','.join(map(str, array.shape))}]"


def _compare_strings(name: str, ours: Array, theirs: Array) -> Comparison:
    a, b = ours.astype(str), theirs.astype(str)
    if a.shape != b.shape:
        return _different(name, a, f"{_kind(a)} against {_kind(b)}")
    wrong = int(np.count_nonzero(a != b))
    if wrong:
        return _different(name, a, _where_it_differs(a == b, a, b, wrong))
    return Comparison(name, _kind(a), True, "", 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def _tolerance(dtype: np.dtype[Any]) -> tuple[float, float]:
    if dtype.kind in "biu" or dtype.name.startswith(("int", "uint")):
        return 0.0, 0.0
    return _TOLERANCES.get(dtype.name, _COARSE)


def _wide(array: Array) -> Array:
    """The values in a type that holds them, in which differences do not wrap."""
    if array.dtype.kind == "c":
        return array.astype(np.complex128)
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8:
        return array.astype(np.longdouble)
    return array.astype(np.float64)


def _ulp_distance(a: Array, b: Array) -> Array:
    """Steps between representable neighbours; for integers the difference, NaN for complex numbers."""
    if a.dtype.kind == "c":
        return np.full(a.shape, np.nan)
    if a.dtype.kind in "biu" or a.dtype.name.startswith(("int", "uint")):
        return np.asarray(np.abs(_wide(a) - _wide(b)))
    bits = _BITS.get(a.dtype.name, a.dtype.itemsize * 8)
    ranks = []
    for x in (a, b):
        pattern = np.ascontiguousarray(x).reshape(x.shape).view(f"u{x.dtype.itemsize}")
        magnitude = (pattern & ((1 << bits - 1) - 1)).astype(np.longdouble)
        ranks.append(np.where(pattern >> (bits - 1) & 1, -magnitude, magnitude))
    return np.asarray(np.abs(ranks[0] - ranks[1]))


def _largest(values: Array) -> float:
    return float(values.max()) if values.size else 0.0


def _where_it_differs(near: Array, ours: Array, theirs: Array, wrong: int) -> str:
    place = tuple(int(i) for i in np.unravel_index(int(np.argmin(near.reshape(-1))), near.shape)) if near.ndim else ()
    at = f" at [{','.join(map(str, place))}]" if place else ""
    return f"{wrong} of {near.size} elements differ, first{at}: {ours[place]} against {theirs[place]}"
