"""One seed: its model by three witnesses, a variant of it, and other options."""

import random
from collections.abc import Callable
from typing import Any

import onnx

from tests.fuzz.generator import generate
from tests.fuzz.graph import Array, Case
from tests.fuzz.guard import run_guarded
from tests.fuzz.shrink import shrink
from tests.fuzz.variants import VARIANTS
from tests.fuzz.witnesses import by_onnxruntime, compare, compiled, interpreted, output_names, saved_and_loaded

OPTIONAL_PASSES = (
    "simplify",
    "simplify-loops",
    "fold-constants",
    "integer-contractions",
    "merge-common-subexpressions",
    "assign-layouts",
    "split-dilated-convolutions",
    "tabulate",
)
"""Without these the code is slower and means the same; the others make what codegen needs."""

_OPTIONS: tuple[dict[str, Any], ...] = (
    *[{"disabled_passes": (name,), "opt_level": 0} for name in OPTIONAL_PASSES],
    *[{"opt_level": 0}] * 12,
    *[{"target_cpu": "x86-64-v3"}] * 3,
    *[{"target_cpu": "x86-64"}] * 2,
    {"fast_math": True},
    {"precision": "highest"},
    *[{}] * 12,
)
_SAVED = 0.03
"""Share of the models that are also saved, loaded, and run from the file."""
_COMPILED_VARIANTS = 0.1
"""Share of the variants that are compiled; the others run through the passes and the interpreter."""


def check_seed(seed: int) -> int:
    """Raise where anything disagrees; the number of witnesses, 2 or 3."""
    case = generate(seed)
    source = random.Random(seed)
    options = options_for(case, source)
    name = source.choice(list(VARIANTS))
    at = f"options {options}"
    try:
        results = compiled(case, options)
        witnesses = third_witness(case, results)
        variant = VARIANTS[name](case, source)
        at = f"variant {name}"
        if source.random() < _SAVED:
            compare(case, saved_and_loaded(case), results, "the plain run")
        whole = source.random() < _COMPILED_VARIANTS
        others = compiled(variant) if whole else interpreted(variant, optimized=True)
        compare(variant, others, results, at)
    except Exception as error:
        error.add_note(at)
        raise
    return witnesses


def options_for(case: Case, source: random.Random) -> dict[str, Any]:
    """Fast mathematics may change what NaN and infinities give, and what a test of the standard is about."""
    options = source.choice(_OPTIONS)
    return {} if "fast_math" in options and (case.special or case.expected) else options


def third_witness(case: Case, results: list[Array]) -> int:
    """Compare results with onnxruntime's, or what is known of them. The number of witnesses there are."""
    if case.expected:
        compare(case, results, [case.expected[n] for n in output_names(case)], "the standard's test")
        return 3
    expected = None if case.special else by_onnxruntime(case)
    if expected is None:
        return 2
    compare(case, results, expected, "onnxruntime")
    return 3


def guard_seed(seed: int) -> int:
    """Run a model between forbidden pages, and compare with the interpreter."""
    case = generate(seed)
    options = random.Random(seed).choice(({}, {"opt_level": 0}, {"opt_level": 0, "target_cpu": "x86-64-v3"}))
    expected = interpreted(case)
    compare(case, run_guarded(case, expected, options), expected, "interpreter")
    return 2


def failure(case: Case, options: dict[str, Any] | None = None) -> str | None:
    """What is wrong with the case itself, without numbers: the same text for the same bug."""
    try:
        third_witness(case, compiled(case, options))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def describe(seed: int, error: BaseException) -> str:
    """The failing model, as small as it gets, and how to see it again."""
    case = generate(seed)
    options = options_for(case, random.Random(seed))
    kind = type(error).__name__
    fails: Callable[[Case], bool] = lambda c: (failure(c, options) or "").startswith(kind)  # noqa: E731
    if fails(case):
        case = shrink(case, fails)
    text = onnx.printer.to_text(case.model)
    notes = "\n".join(getattr(error, "__notes__", []))
    command = f"python -m tests.fuzz.run --count 1 --seed {seed}"
    return f"{text}\n{kind}: {error}\n{notes}\n  {case.label}, {command}"
