"""ONNX's own backend tests, run through our backend and through onnxruntime, and the table of what came out.

The tests come with the `onnx` package: node tests of every operator, simple models, and models and operators exported
from PyTorch. The suite of real architectures, which downloads, is left out.
"""

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import ModelProto, TensorProto, TypeProto, numpy_helper
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.loader import load_model_tests

from onnxla.backend import OnnxlaBackend
from onnxla.errors import OnnxlaError

SUITES = ("node", "simple", "pytorch-converted", "pytorch-operator")

RANDOM = ("test_bernoulli", "test_training_dropout")
"""How the names begin of tests whose results are drawn at random; those of a seed or ratio of zero are not."""
NOT_RANDOM = ("zero_ratio",)

_HALF_WIDTH = 5.0
"""How many standard deviations the share of ones may lie off."""


@dataclass(frozen=True)
class Case:
    """A model and pairs of inputs and outputs; sequences are lists, an empty optional is None."""

    name: str
    suite: str
    model: ModelProto
    data_sets: Sequence[tuple[Sequence[Any], Sequence[Any]]]
    rtol: float
    atol: float

    @property
    def is_random(self) -> bool:
        return self.name.startswith(RANDOM) and not any(word in self.name for word in NOT_RANDOM)

    @property
    def opset(self) -> int:
        """The highest opset that the model imports of the domain of its first node."""
        node = self.model.graph.node[0]
        return max(
            (o.version for o in self.model.opset_import if (o.domain or "ai.onnx") == (node.domain or "ai.onnx")),
            default=1,
        )


@dataclass(frozen=True)
class Outcome:
    """What came of a case."""

    status: str
    """`pass`, `reject` (an error says why it cannot be done) or `fail`."""
    kind: str = ""
    """The class of the error, or `mismatch`."""
    message: str = ""


@cache
def case_index() -> dict[str, TestCase]:
    """ONNX's test cases by name, models on disk not yet read."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {case.name: case for suite in SUITES for case in load_model_tests(kind=suite)}


def read_case(name: str) -> Case:
    """A case by name, with its data."""
    case = case_index()[name]
    if case.model is not None:
        sets = [([_plain(v) for v in i], [_plain(v) for v in o]) for i, o in case.data_sets or ()]
        return Case(name, case.kind, case.model, sets, case.rtol, case.atol)
    folder = Path(str(case.model_dir))
    model = onnx.load(str(folder / "model.onnx"))
    sets = [
        (_read(data, "input", model.graph.input), _read(data, "output", model.graph.output))
        for data in sorted(folder.glob("test_data_set*"))
    ]
    return Case(name, case.kind, model, sets, case.rtol, case.atol)


def _plain(value: Any) -> Any:
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else value


def _read(folder: Path, kind: str, infos: Sequence[onnx.ValueInfoProto]) -> list[Any]:
    count = len(list(folder.glob(f"{kind}_*.pb")))
    return [_parse((folder / f"{kind}_{i}.pb").read_bytes(), infos[i].type) for i in range(count)]


def _parse(data: bytes, type: TypeProto) -> Any:
    if type.HasField("sequence_type"):
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if type.HasField("optional_type"):
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    return numpy_helper.to_array(onnx.TensorProto.FromString(data))


# Running


def run_onnxla(case: Case) -> Outcome:
    """Through our backend: each data set twice, the second result the same bit for bit, the inputs untouched."""
    try:
        prepared = OnnxlaBackend.prepare(case.model)
        for inputs, expected in case.data_sets:
            before = _bits(inputs)
            results = prepared.run(inputs)
            if _bits(results) != _bits(prepared.run(inputs)):
                return Outcome("fail", "unstable", "a second run gave other bits")
            if _bits(inputs) != before:
                return Outcome("fail", "inputs changed", "running wrote to an input")
            difference = compare(case, expected, results)
            if difference:
                return Outcome("fail", "mismatch", difference)
    except OnnxlaError as error:
        return Outcome("reject", type(error).__name__, str(error))
    except Exception as error:  # the table is about all cases, also where we are wrong
        return Outcome("fail", type(error).__name__, str(error))
    return Outcome("pass")


def run_onnxruntime(case: Case) -> Outcome:
    """Through onnxruntime's CPU provider, as it is by default."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(
            case.model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # its errors have no common base
        return Outcome("reject", type(error).__name__, str(error))
    try:
        for inputs, expected in case.data_sets:
            names = [i.name for i in session.get_inputs()]
            results = session.run(None, dict(zip(names, inputs, strict=False)))
            difference = compare(case, expected, results)
            if difference:
                return Outcome("fail", "mismatch", difference)
    except Exception as error:
        return Outcome("fail", type(error).__name__, str(error))
    return Outcome("pass")


def _bits(value: Any) -> Any:
    """What two runs must have in common."""
    if value is None:
        return None
    if isinstance(value, (list, tuple)):
        return [_bits(v) for v in value]
    array = np.asarray(value)
    return (array.shape, str(array.dtype), array.tolist() if array.dtype == object else array.tobytes())


# Judging


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
    if expected.dtype.kind not in "biufc":  # the narrow types of ml_dtypes
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


# The table


def operator_of(case: Case) -> str:
    """What the table counts a case under: its operator, or its suite where it is a model."""
    if case.suite != "node":
        return f"(models: {case.suite})"
    name = case.name.split("_expanded")[0]
    original = case_index().get(name)
    model = original.model if original is not None and original.model is not None else case.model
    kinds = dict.fromkeys(n.op_type for n in model.graph.node if n.op_type not in ("Constant", "Cast", "Identity"))
    node = next((n for n in model.graph.node if n.op_type in kinds), model.graph.node[0])
    return f"{node.domain}.{node.op_type}" if node.domain not in ("", "ai.onnx") else node.op_type


@dataclass(frozen=True)
class Result:
    """A case and what came of it; `reference` is onnxruntime's outcome, where that ran."""

    name: str
    operator: str
    suite: str
    opset: int
    outcome: Outcome
    reference: Outcome | None


def run_suite(
    names: Iterable[str] | None = None, *, reference: bool = False, progress: Callable[[str], None] | None = None
) -> Iterator[Result]:
    """The results of cases by name, of all by default."""
    for name in sorted(case_index()) if names is None else names:
        if progress is not None:
            progress(name)
        case = read_case(name)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outcome = run_onnxla(case)
            other = run_onnxruntime(case) if reference else None
        yield Result(name, operator_of(case), case.suite, case.opset, outcome, other)


def by_operator(results: Iterable[Result]) -> dict[str, list[Result]]:
    """The results by operator, in alphabetical order, models last."""
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(result.operator, []).append(result)
    return dict(sorted(groups.items(), key=lambda item: (item[0].startswith("("), item[0].lower())))


def counts(outcomes: Iterable[Outcome | None]) -> tuple[int, int, int]:
    """How many pass, are rejected, fail."""
    found = Counter(o.status for o in outcomes if o is not None)
    return found["pass"], found["reject"], found["fail"]
