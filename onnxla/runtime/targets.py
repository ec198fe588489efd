"""The arrays of `out=`, which receive results: what keeps them from that, asked before anything is written."""

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from onnxla.errors import InputError
from onnxla.runtime.tensors import Array

Wanted: TypeAlias = tuple[str, np.dtype[Any], tuple[int, ...]]
"""What a result is: its name, dtype and shape."""

_MOST_WORK = 10_000
"""What numpy may do to find whether two strided arrays share an element; the general question is hard."""


def require_targets(out: Sequence[Any], results: Iterable[Wanted]) -> None:
    """Raise InputError, with every reason, unless each array in `out` (None: none is given) can receive its result."""
    pairs = [(given, result) for given, result in zip(out, results, strict=True) if given is not None]
    problems = [text for given, result in pairs for text in _misfits(given, result)]
    if problems:
        raise InputError("\n".join(problems))
    for (a, (name, *_)), (b, (other, *_)) in itertools.combinations(pairs, 2):
        if _overlap(a, b):
            raise InputError(f"{name}, {other}: their out arrays overlap, so one result would be lost")


def into_targets(results: Sequence[Any], out: Sequence[Any]) -> list[Any]:
    """The results, written into the arrays of `out` where there are any."""
    written = []
    for result, given in zip(results, out, strict=True):
        if given is not None and given is not result:
            given[...] = result
        written.append(result if given is None else given)
    return written


def _misfits(given: Any, result: Wanted) -> list[str]:
    name, dtype, shape = result
    if not isinstance(given, np.ndarray):
        return [f"{name}: out must be an array, not {type(given).__name__}"]
    problems = []
    if given.dtype != dtype:
        problems.append(f"{name}: out has dtype {given.dtype}, the model gives {dtype}")
    if given.shape != shape:
        problems.append(f"{name}: out has shape {list(given.shape)}, the model gives {list(shape)}")
    if not given.flags.writeable:
        problems.append(f"{name}: out is read-only")
    return problems


def _overlap(a: Array, b: Array) -> bool:
    if not np.may_share_memory(a, b):
        return False
    try:
        return np.shares_memory(a, b, max_work=_MOST_WORK)  # type: ignore[arg-type]  # numpy's stubs allow 0 and -1 alone
    except np.exceptions.TooHardError:
        return True
