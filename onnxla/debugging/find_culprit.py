"""Which part of onnxla is at fault, on a model small enough to be evaluated in numpy several times.

    onnxruntime -- HLO as imported -- after pass 1 -- ... -- after all passes -- the compiled code

The first of these that leaves the tolerance around onnxruntime's results is to blame: the frontend, a pass or the code.
"""

import math
import time
from collections.abc import Mapping
from dataclasses import replace

from onnxla.debugging.case import Case
from onnxla.debugging.comparison import Comparison
from onnxla.debugging.culprit import Blame, Culprit
from onnxla.debugging.evaluated import (
    Passes,
    PassFailed,
    arguments,
    evaluate,
    evaluate_exactly,
    imported,
    named_results,
)
from onnxla.debugging.exact import is_rounding
from onnxla.debugging.import_fault import import_culprit
from onnxla.debugging.kernel_fault import WrongKernel, judge_kernels
from onnxla.debugging.pass_fault import pass_culprit
from onnxla.debugging.trial import Outcome, Settings, compared
from onnxla.runtime.tensors import Array

EVALUATIONS = 12
"""How often a case is evaluated in numpy, at most about, until its culprit is found."""


def find_culprit(case: Case, outcome: Outcome, settings: Settings, seconds: float = math.inf) -> Culprit:
    """Who made `outcome`, a fault, of `case`. Nobody, where evaluating it takes longer than `seconds`."""
    if outcome.crash:
        return _crash_culprit(case, outcome, settings)
    found = imported(case, settings.options)
    begun = time.monotonic()
    before = evaluate(found.module, found, case)
    if EVALUATIONS * (time.monotonic() - begun) > seconds:
        return Culprit(Blame.UNKNOWN, comparison=outcome.differing[0])
    if _wrong(before, case.expected, settings):
        culprit = import_culprit(case, settings)
        if culprit is not None:
            return culprit
        # every node alone is right, so from here on the module as imported is what the others are judged by
        by_import = replace(case, expected=before)
        judges = (case, by_import)
        if any(explained_by_rounding(judge, outcome, settings, bounded=False) for judge in judges):
            return Culprit(Blame.ROUNDING, comparison=outcome.differing[0])
        case = by_import
    passes = Passes(settings)
    passes.run(found.module, passes.all())
    after = evaluate(found.module, found, case)
    if _wrong(after, case.expected, settings):
        return pass_culprit(case, settings)
    judged = judge_kernels(found.module, arguments(found, case), settings)
    if judged.wrong is not None:
        return _kernel_culprit(judged.wrong)
    # the same kernels on the same operands: the same numbers, wherever they lie
    again = _wrong(outcome.results, named_results(judged.results, found, case), settings)
    return Culprit(Blame.PLAN if again else Blame.ROUNDING, comparison=(again or outcome.differing)[0])


def _kernel_culprit(wrong: WrongKernel) -> Culprit:
    details = ["HLO is right after all passes, the compiled step is not", *([wrong.place] if wrong.place else [])]
    return Culprit(Blame.KERNEL, ", ".join(wrong.names), wrong.instruction, tuple(details), wrong.comparison)


def explained_by_rounding(case: Case, outcome: Outcome, settings: Settings, *, bounded: bool = True) -> bool:
    """Whether each output that differs is about as near to the model in float64 as what is expected."""
    exact = evaluate_exactly(case, settings.options)
    return exact is not None and all(
        c.name in exact and is_rounding(outcome.results[c.name], case.expected[c.name], exact[c.name], bounded=bounded)
        for c in outcome.differing
    )


def _wrong(results: Mapping[str, Array], expected: Mapping[str, Array], settings: Settings) -> list[Comparison]:
    return [c for c in compared(results, expected, settings) if not c.agrees]


def _crash_culprit(case: Case, outcome: Outcome, settings: Settings) -> Culprit:
    """Who raised an error that is no user's: the import, a pass, or what makes code."""
    try:
        found = imported(case, settings.options)
    except Exception:  # the error itself is told
        operators = dict.fromkeys(node.op_type for node in case.model.proto.graph.node)
        return Culprit(Blame.IMPORT, ", ".join(operators), details=(outcome.message,))
    passes = Passes(settings)
    try:
        passes.run(found.module, passes.all())
    except PassFailed as error:
        return Culprit(Blame.PASS, error.name, details=(error.reason,))
    return Culprit(Blame.CODEGEN, outcome.crash, details=(outcome.message,))
