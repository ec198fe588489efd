"""Does the compiled code say what the interpreter and onnxruntime say?"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnxruntime

import onnxla
from onnxla.frontends.onnx.importer import import_model
from tests.fuzz.graph import Array, Case


class Mismatch(AssertionError):
    """Two witnesses disagree."""


def check(case: Case, options: Mapping[str, Any] | None = None, *, runtime: bool = True) -> list[Array]:
    """The outputs of the compiled code. Raises Mismatch where the interpreter or onnxruntime see another value."""
    names = [o.name for o in case.model.graph.output]
    compiled = onnxla.compile(case.model.SerializeToString(), options=options)
    compiled.num_threads = 1
    results = compiled.run(None, case.feeds)
    compiled.num_threads = 2
    for name, one, two in zip(names, results, compiled.run(None, case.feeds), strict=True):
        if one.tobytes() != two.tobytes():
            raise Mismatch(f"{name}: two threads differ from one")
    module = import_model(case.model).module
    with np.errstate(all="ignore"):
        interpreted = module.entry.evaluate(*[case.feeds[i.name] for i in case.model.graph.input])
    compare(case, names, results, list(interpreted), "interpreter")
    if runtime:
        expected = onnxruntime_results(case)
        if expected is not None:
            compare(case, names, results, expected, "onnxruntime")
    return results


def onnxruntime_results(case: Case) -> list[Array] | None:
    """None where onnxruntime has no kernel for the model."""
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 4
    settings.intra_op_num_threads = 1
    settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(case.model.SerializeToString(), settings)
        return list(session.run(None, case.feeds))
    except Exception as error:
        if "NOT_IMPLEMENTED" in str(error) or "NotImplemented" in type(error).__name__:
            return None
        raise


def compare(case: Case, names: Sequence[str], got: Sequence[Array], want: Sequence[Array], witness: str) -> None:
    for name, ours, theirs in zip(names, got, want, strict=True):
        if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
            shapes = f"{ours.dtype}{ours.shape}, not {theirs.dtype}{theirs.shape}"
            raise Mismatch(f"{name}: {shapes} as {witness} has it")
        if not ours.size:
            continue
        if ours.dtype.kind == "f":
            a, b = ours.astype(np.float64), theirs.astype(np.float64)
            far = (
                ~(np.abs(a - b) <= case.tolerances.get(name, 0.0) * 2 + 1e-7) & ~(np.isnan(a) & np.isnan(b)) & (a != b)
            )
        else:
            far = np.asarray(ours != theirs)
        if far.any():
            at = tuple(int(i) for i in np.argwhere(far)[0])
            count = f"{int(far.sum())} of {far.size} values differ"
            raise Mismatch(f"{name}: {count}; at {at} compiled {ours[at]}, {witness} {theirs[at]}")
