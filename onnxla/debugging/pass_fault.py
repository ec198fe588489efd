"""Which pass changes what a module computes, found by bisection; and which rule, where the pass is a table of rules."""

from collections.abc import Callable, Sequence

from onnxla.debugging.case import Case
from onnxla.debugging.comparison import Comparison
from onnxla.debugging.culprit import Blame, Culprit
from onnxla.debugging.evaluated import Passes, evaluate, imported
from onnxla.debugging.trial import Settings, compared
from onnxla.passes.pass_base import Pass
from onnxla.passes.rewrite import RewritePass


def pass_culprit(case: Case, settings: Settings) -> Culprit:
    """The pass before which the module gives what is expected and after which it does not.

    The module as imported does, and the module after all passes does not.
    """
    count = len(Passes(settings).all())
    right, wrong = 0, count
    while wrong - right > 1:
        middle = (right + wrong) // 2
        if difference_after(case, settings, lambda passes, n=middle: passes[:n]) is None:  # type: ignore[misc]
            right = middle
        else:
            wrong = middle
    culprit = Passes(settings).all()[wrong - 1]
    difference = difference_after(case, settings, lambda passes: passes[:wrong])
    details = [f"step {wrong} of the pipeline; HLO is right before it and wrong after it"]
    rule = _guilty_rule(case, settings, wrong)
    if rule is not None:
        details.append(f"its rule {rule}: without it the pass is right")
    return Culprit(Blame.PASS, culprit.name, details=tuple(details), comparison=difference)


def difference_after(
    case: Case, settings: Settings, choose: Callable[[list[Pass]], Sequence[Pass]]
) -> Comparison | None:
    """The first output that differs after the passes that `choose` keeps of all."""
    found = imported(case, settings.options)
    passes = Passes(settings)
    passes.run(found.module, choose(passes.all()))
    outputs = evaluate(found.module, found, case)
    return next((c for c in compared(outputs, case.expected, settings) if not c.agrees), None)


def _guilty_rule(case: Case, settings: Settings, count: int) -> str | None:
    """The rule of the last of the first `count` passes without which the module stays right."""
    passes = Passes(settings)
    chosen = passes.all()[:count]
    last = chosen[-1]
    if not isinstance(last, RewritePass):
        return None
    passes.run(imported(case, settings.options).module, chosen)
    for name in last.stats:

        def without(passes: list[Pass], name: str = name) -> Sequence[Pass]:
            one = passes[count - 1]
            assert isinstance(one, RewritePass)
            one.leave_out(name)
            return passes[:count]

        if difference_after(case, settings, without) is None:
            return name
    return None
