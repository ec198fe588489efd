"""Three witnesses of what a model computes: the compiled code, our interpreter of HLO, and onnxruntime."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, numpy_helper

import onnxla
from onnxla.frontends.onnx.importer import import_model
from onnxla.hlo.types import Array
from tests.frontends.witness import run_onnxruntime

Arrays = Mapping[str, Array]


def model(text: str, weights: Arrays | None = None) -> ModelProto:
    """A model from ONNX's text, with `weights` as its initializers."""
    parsed = onnx.parser.parse_model(text)
    parsed.graph.initializer.extend(numpy_helper.from_array(a, name) for name, a in (weights or {}).items())
    return parsed


def normal(*shape: int, seed: int = 0, scale: float = 1.0, dtype: type[np.generic] = np.float32) -> Array:
    """Normally distributed numbers, the same each time."""
    values: Array = (np.random.default_rng(seed).normal(size=shape) * scale).astype(dtype)
    return values


def check(
    model: ModelProto, feeds: Arrays, rtol: float = 1e-4, atol: float = 1e-5, *, interpreted: bool = True
) -> list[Array]:
    """Compile and run; all witnesses must agree, integers exactly, and runs be the same bit for bit. The results."""
    compiled = onnxla.compile(model, num_threads=2)
    results = compiled.run(None, feeds)
    compiled.num_threads = 1
    for again in (compiled.run(None, feeds), compiled.run(None, feeds)):
        for first, second in zip(results, again, strict=True):
            assert first.tobytes() == second.tobytes()
    if interpreted:
        agree(_interpreted(model, feeds), results, rtol, atol)
    agree(run_onnxruntime(model, feeds), results, rtol, atol)
    return results


def agree(expected: Sequence[Any], results: Sequence[Array], rtol: float, atol: float) -> None:
    for e, r in zip(expected, results, strict=True):
        assert (e.dtype, e.shape) == (r.dtype, r.shape)
        if r.dtype.kind in "biu":
            np.testing.assert_array_equal(r, e)
        else:
            np.testing.assert_allclose(r.astype(np.float64), np.asarray(e).astype(np.float64), rtol, atol)


def _interpreted(model: ModelProto, feeds: Arrays) -> list[Array]:
    imported = import_model(model, shapes={name: a.shape for name, a in feeds.items()})
    results = imported.module.entry.evaluate(*(feeds[spec.name] for spec in imported.inputs))
    return list(results)
