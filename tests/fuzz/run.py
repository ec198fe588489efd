"""`python -m tests.fuzz.run --count N --seed S`: check N random models.

Each failure prints a small model and the command that repeats it.
"""

import argparse
import random
import traceback
from collections import Counter

import onnx

from tests.fuzz.generator import generate
from tests.fuzz.graph import Case
from tests.fuzz.shrink import shrink
from tests.fuzz.variants import VARIANTS
from tests.fuzz.witnesses import check, compare

OPTIONAL_PASSES = (
    "simplify",
    "simplify-loops",
    "fold-constants",
    "integer-contractions",
    "merge-common-subexpressions",
    "assign-layouts",
    "split-dilated-convolutions",
)
"""Without these the code is slower and means the same; the others make what codegen needs."""


def check_seed(seed: int) -> None:
    """The model of this seed, one variant and one set of options of it. Raises where anything disagrees."""
    case = generate(seed)
    results = check(case)
    source = random.Random(seed)
    name = source.choice(list(VARIANTS))
    variant = VARIANTS[name](case, source)
    try:
        others = check(variant, runtime=False)
        compare(variant, list(variant.tolerances), results, others, f"variant {name}")
        options = source.choice(
            [{"disabled_passes": (p,)} for p in OPTIONAL_PASSES] + [{"target_cpu": "x86-64-v3"}] * 4
        )
        check(case, options, runtime=False)
    except Exception as error:
        error.add_note(f"variant {name}, or options {locals().get('options')}")
        raise


def failure(case: Case) -> str | None:
    """What is wrong with the plain case, without numbers: the same text for the same bug."""
    try:
        check(case)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def describe(seed: int, error: BaseException) -> str:
    case = generate(seed)
    if failure(case) is not None:
        kind = type(error).__name__
        case = shrink(case, lambda c: (failure(c) or "").startswith(kind))
    text = onnx.printer.to_text(case.model)
    notes = "\n".join(getattr(error, "__notes__", []))
    command = f"python -m tests.fuzz.run --count 1 --seed {seed}"
    return f"{text}\n{type(error).__name__}: {error}\n{notes}\n  {command}"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--traceback", action="store_true")
    arguments = parser.parse_args()
    bad: Counter[str] = Counter()
    for seed in range(arguments.seed, arguments.seed + arguments.count):
        try:
            check_seed(seed)
        except Exception as error:
            bad[type(error).__name__] += 1
            print(f"--- seed {seed}\n{describe(seed, error)}", flush=True)
            if arguments.traceback:
                traceback.print_exception(error)
    print(f"{arguments.count} models, {sum(bad.values())} failures: {dict(bad)}")
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
