"""Which pass changes what a module computes, found by bisection; and which rule, where the pass is a table of rules."""

from collections.abc import Callable, Mapping, Sequence

from onnxla.debugging.case import Case
from onnxla.debugging.culprit import Blame, Culprit
from onnxla.debugging.evaluated import Passes, evaluate, evaluate_exactly, imported
from onnxla.debugging.exact import is_rounding
from onnxla.debugging.trial import Settings, compared
from onnxla.passes.pass_base import Pass
from onnxla.passes.rewrite import RewritePass
from onnxla.runtime.tensors import Array


def pass_culprit(case: Case, settings: Settings) -> Culprit:
    """The pass before which the module gives what is expected and after which it does not.

    The module as imported does, and the module after all passes does not. A pass that only rounds in another way is not
    to blame for a difference that was nearly there before it.
    """
    right, wrong = 0, len(Passes(settings).all())
    while wrong - right > 1:
        middle = (right + wrong) // 2
        if _agrees(outputs_after(case, settings, _first(middle)), case, settings):
            right = middle
        else:
            wrong = middle
    before, after = (outputs_after(case, settings, _first(count)) for count in (right, wrong))
    moved = [c for c in compared(after, before, settings) if not c.agrees]
    exact = evaluate_exactly(case, settings.options) or {}
    moved = [
        c
        for c in moved
        if c.name not in exact or not is_rounding(after[c.name], before[c.name], exact[c.name], bounded=False)
    ]
    if not moved:
        return Culprit(Blame.ROUNDING)
    details = [f"step {wrong} of the pipeline; HLO is right before it and wrong after it"]
    rule = _guilty_rule(case, settings, wrong)
    if rule is not None:
        details.append(f"its rule {rule}: without it the pass is right")
    name = Passes(settings).all()[wrong - 1].name
    return Culprit(Blame.PASS, name, details=tuple(details), comparison=moved[0])


Choice = Callable[[list[Pass]], Sequence[Pass]]
"""Which of all passes run."""


def _first(count: int) -> Choice:
    return lambda passes: passes[:count]


def outputs_after(case: Case, settings: Settings, choose: Choice) -> dict[str, Array]:
    """The outputs, evaluated in numpy, after the passes that `choose` keeps of all."""
    found = imported(case, settings.options)
    passes = Passes(settings)
    passes.run(found.module, choose(passes.all()))
    return evaluate(found.module, found, case)


def _agrees(outputs: Mapping[str, Array], case: Case, settings: Settings) -> bool:
    return all(c.agrees for c in compared(outputs, case.expected, settings))


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

        if _agrees(outputs_after(case, settings, without), case, settings):
            return name
    return None
