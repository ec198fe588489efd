"""Many cases, and the counts of what came of them."""

import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from onnxla.conformance.cases import case_index, operator_of, read_case
from onnxla.conformance.runners import Outcome, run_onnxla, run_onnxruntime


@dataclass(frozen=True)
class Result:
    """A case and what came of it; `reference` is onnxruntime's outcome, where that ran."""

    name: str
    operator: str
    suite: str
    opset: int
    outcome: Outcome
    reference: Outcome | None
    seconds: float
    """Processor time that compiling and running took us."""


def run_suite(
    names: Iterable[str] | None = None,
    *,
    device: str = "CPU",
    reference: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Iterator[Result]:
    """The results of cases by name, of all by default, on `CPU` or `CUDA`."""
    for name in sorted(case_index()) if names is None else names:
        if progress is not None:
            progress(name)
        case = read_case(name)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            begin = time.process_time()
            outcome = run_onnxla(case, device)
            seconds = time.process_time() - begin
            other = run_onnxruntime(case) if reference else None
        yield Result(name, operator_of(case), case.suite, case.opset, outcome, other, seconds)


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
