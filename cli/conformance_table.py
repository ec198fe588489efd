"""The table of `onnxla conformance` as Markdown."""

from collections import Counter
from collections.abc import Sequence
from statistics import median

import onnx
import onnxruntime

from onnxla.conformance.cases import SUITES
from onnxla.conformance.suite import Result, by_operator, counts
from onnxla.version import __version__

_HEAD = """# Conformance

ONNX's own backend tests through onnxla, and through onnxruntime's CPU provider beside it. Written by
`onnxla conformance --table docs/conformance.md`; `pytest tests/conformance` holds every line of it.

*pass*: compiled to native code, run twice with the same bits, inputs untouched, results within the test's own
tolerance. *reject*: an error says why the model cannot be compiled. *fail*: anything else. Tests that draw at random
are judged by shape, type and distribution. Inputs that decide shapes (the shape of Reshape, the k of TopK) arrive when
the test runs, and are compiled for then.

Thousands of [random models](random-models.md) are checked as well.
"""


def markdown(results: Sequence[Result]) -> str:
    """The page: totals, what is rejected and why, and a row for each operator."""
    versions = f"onnxla {__version__}, onnx {onnx.__version__}, onnxruntime {onnxruntime.__version__}"
    seconds = [r.seconds for r in results]
    lines = [
        _HEAD,
        f"{versions}; {len(results)} tests. A test takes {median(seconds) * 1e3:.0f} ms of a processor's time in the",
        f"median, compiling and running twice; all of them take {sum(seconds):.0f} s.",
        "",
    ]
    lines += _table("suite", [(s, [r for r in results if r.suite == s]) for s in SUITES], results)
    lines += ["", "## Not passed", "", "| reason | tests | onnxruntime passes |", "| --- | --: | --: |"]
    for reason, group in _reasons(results).items():
        passed = counts(r.reference for r in group)[0]
        lines.append(f"| {reason} | {len(group)} | {passed} |")
    failed = [r for r in results if r.outcome.status == "fail"]
    if failed:
        lines += ["", "What fails, and by how much; [numerics.md](numerics.md) says more:", ""]
        lines += [f"- {r.name}: {' '.join(r.outcome.message.split())}" for r in failed]
    ahead, behind = (_only_one(results, ours) for ours in (True, False))
    lines += ["", f"onnxla passes {len(ahead)} tests that onnxruntime does not; the other way round {len(behind)}:", ""]
    lines += [f"- {name}" for name in behind] or ["- none"]
    lines += ["", "## By operator", ""]
    lines += _table("operator", list(by_operator(results).items()), results)
    return "\n".join(lines) + "\n"


def _table(what: str, groups: Sequence[tuple[str, Sequence[Result]]], whole: Sequence[Result]) -> list[str]:
    rows = [
        f"| {what} | opsets | tests | pass | reject | fail | ORT pass | ORT reject | ORT fail |",
        "| --- | --- | --: | --: | --: | --: | --: | --: | --: |",
    ]
    for name, group in [*groups, ("**all**", whole)]:
        if not group:
            continue
        opsets = sorted({r.opset for r in group})
        span = str(opsets[0]) if len(opsets) == 1 else f"{opsets[0]}-{opsets[-1]}"
        numbers = (len(group), *counts(r.outcome for r in group), *counts(r.reference for r in group))
        rows.append(f"| {name} | {span} | {' | '.join(str(n or '') for n in numbers)} |")
    return rows


def _reasons(results: Sequence[Result]) -> dict[str, list[Result]]:
    """What did not pass, by operator and kind of error, the most frequent first."""
    found: dict[str, list[Result]] = {}
    for result in results:
        if result.outcome.status != "pass":
            found.setdefault(f"{result.operator}: {result.outcome.kind}", []).append(result)
    frequency = Counter({reason: len(group) for reason, group in found.items()})
    return {reason: found[reason] for reason, _ in frequency.most_common()}


def _only_one(results: Sequence[Result], ours: bool) -> list[str]:
    """The tests that only one of the two passes."""
    pairs = [
        (r.name, r.outcome.status == "pass", r.reference is not None and r.reference.status == "pass") for r in results
    ]
    return [name for name, here, there in pairs if (here and not there if ours else there and not here)]
