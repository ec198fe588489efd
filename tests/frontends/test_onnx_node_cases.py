"""ONNX's own cases for single operators: imported, run by the HLO interpreter, compared with the standard's results.

Every case of an operator that has an import rule must pass, apart from the exceptions named here.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, numpy_helper
from onnx.backend.test.case.node import collect_testcases

from onnxla.errors import CompileError
from onnxla.frontends.onnx.importer import ImportedModel, import_model
from onnxla.frontends.onnx.operator_names import normal_domain
from onnxla.frontends.onnx.registry import NoRule, lookup
from onnxla.hlo.types import Array
from onnxla.runtime.vocabulary import places_of

EXCEPTIONS = {
    "test_training_dropout*": "drops at random",
    "test_bernoulli*": "draws at random",
    "test_*string*": "strings are not computed",
    "test_strnormalizer*": "strings are not computed",
    "test_image_decoder*": "decoding is not computation",
}

TWO_ULPS_OF_BFLOAT16 = 2**-6
"""The tolerance of ONNX's own runner for that type."""


@dataclass(frozen=True)
class Case:
    """A model and pairs of inputs and outputs."""

    name: str
    model: ModelProto
    data_sets: Sequence[tuple[Sequence[Any], Sequence[Any]]]
    rtol: float


def is_exception(name: str) -> bool:
    return any(fnmatch(name, pattern) for pattern in EXCEPTIONS)


@cache
def cases() -> dict[str, list[Case]]:
    """The cases of one operator each, by operator, where it has a rule and all values are tensors."""
    found = defaultdict(list)
    with np.errstate(all="ignore"):
        collected = collect_testcases(None)
    for c in collected:
        assert c.model is not None and c.data_sets is not None
        case, nodes = Case(c.name, c.model, c.data_sets, c.rtol), c.model.graph.node
        if len(nodes) == 1 and has_rule(case) and is_tensors(case) and not is_exception(c.name):
            found[nodes[0].op_type].append(case)
    return dict(sorted(found.items()))


def has_rule(case: Case) -> bool:
    (node,) = case.model.graph.node
    (opset,) = (o.version for o in case.model.opset_import if normal_domain(o.domain) == normal_domain(node.domain))
    try:
        lookup(node.op_type, node.domain, opset)
    except NoRule:
        return False
    return True


def is_tensors(case: Case) -> bool:
    graph = case.model.graph
    return all(info.type.WhichOneof("value") == "tensor_type" for info in [*graph.input, *graph.output])


def array_of(value: Any) -> Array:
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else np.asarray(value)


def import_for(case: Case, feeds: dict[str, Array]) -> ImportedModel:
    """With every input at run time, or all of them known where the shapes depend on one, or one is of strings."""
    try:
        return import_model(case.model, shapes={name: array.shape for name, array in feeds.items()})
    except CompileError:
        return import_model(case.model, constants=feeds)


def mismatches(case: Case) -> Iterator[str]:
    graph = case.model.graph
    for inputs, outputs in case.data_sets:
        feeds = {info.name: array_of(value) for info, value in zip(graph.input, inputs, strict=True)}
        imported = import_for(case, feeds)
        feeds |= {name: places_of(name, feeds[name], words) for name, words in imported.vocabularies.items()}
        results = imported.module.entry.evaluate(*(feeds[spec.name] for spec in imported.inputs))
        for spec, got, value in zip(imported.outputs, results, outputs, strict=True):
            expected = array_of(value)
            if (got.dtype, got.shape) != (expected.dtype, expected.shape):
                yield f"{case.name}: {spec.name} is {got.dtype}{got.shape}, not {expected.dtype}{expected.shape}"
            elif not agree(got, expected, case.rtol):
                yield f"{case.name}: {spec.name} is {got}, not {expected}"


def agree(got: Array, expected: Array, rtol: float) -> bool:
    if got.dtype.kind in "biuc":
        return bool(np.allclose(got, expected, rtol=rtol))
    loose = TWO_ULPS_OF_BFLOAT16 if got.dtype.name == "bfloat16" else 5e-3 if got.dtype.itemsize == 2 else rtol
    return bool(np.allclose(got.astype(np.float64), expected.astype(np.float64), loose, loose / 100, equal_nan=True))


@pytest.mark.parametrize("op_type", cases())
def test_cases_of(op_type: str) -> None:
    with np.errstate(all="ignore"):
        assert list(mismatch for case in cases()[op_type] for mismatch in mismatches(case)) == []
