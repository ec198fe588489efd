"""The first node whose value is wrong, the part of onnxla that broke it, and the smallest model that shows it.

    whole model, every value --> first that differs --> smallest part --> smaller arrays --> who broke it

Smallest first: on a few nodes the rest is cheap and exact. What turns out to be rounding, or onnxruntime's own, is set
aside and the search goes on without it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from onnxla.debugging.budget import Budget
from onnxla.debugging.case import Case, alone
from onnxla.debugging.comparison import Comparison
from onnxla.debugging.culprit import Blame, Culprit
from onnxla.debugging.find_culprit import EVALUATIONS, explained_by_rounding, find_culprit
from onnxla.debugging.known_values import KnownValues
from onnxla.debugging.layers import add_every_layer
from onnxla.debugging.model_part import ModelGraph, Part, whole_proto
from onnxla.debugging.parts import flat_outputs
from onnxla.debugging.smaller_shapes import with_smaller_shapes
from onnxla.debugging.smallest_part import smallest_part
from onnxla.debugging.trial import Outcome, Settings
from onnxla.errors import InputError, OnnxlaError
from onnxla.frontends.onnx.model_file import OnnxModel
from onnxla.peers.onnxruntime_peer import OnnxruntimePeer
from onnxla.runtime.tensors import Array
from onnxla.runtime.thread_pool import default_threads

_MOST_SET_ASIDE = 50
"""Differences that are not onnxla's before the search ends."""
_SINGLE_NODES_SHARE = 0.3
"""Share of the time in which nodes of values that differ are tried alone."""
_SHAPES_SHARE = 0.25
"""Share of the time that smaller arrays may take."""


@dataclass(frozen=True)
class Finding:
    """A difference, traced to where it comes from."""

    culprit: Culprit
    node: str
    """The first node whose value differs."""
    nodes: tuple[str, ...]
    """Those of the smallest model."""
    difference: Comparison | None
    """The value against onnxruntime's, on the smallest model; None for a crash."""
    case: Case
    in_time: bool
    """Whether the search for fewer nodes came to its end."""


@dataclass(frozen=True)
class Findings:
    """What a search found."""

    fault: Finding | None
    set_aside: tuple[Finding, ...]
    """Differences that are rounding, or onnxruntime's."""
    outputs: tuple[Comparison, ...]
    values: tuple[Comparison, ...]
    """Every value of the graph, compiled with all of them as outputs."""
    trials: int
    notes: tuple[str, ...] = ()


@dataclass
class Model:
    """A model and a run of it."""

    model: OnnxModel
    folder: Path
    """Where its external data lies."""
    feeds: Mapping[str, Array]
    """Arrays for all of its inputs."""
    constants: Mapping[str, Array] = field(default_factory=dict)
    """Values of further inputs, which the code is made for."""
    path: Path | None = None
    """The file it came from, if any."""


def find_fault(run: Model, settings: Settings, budget: Budget) -> Findings:
    """Look for a fault. Raises what compiling raises for a model that onnxla refuses, DeviceError without the target,
    InputError where onnxruntime does not run the model."""
    return _Search(run, settings, budget).findings()


class _Search:
    def __init__(self, run: Model, settings: Settings, budget: Budget) -> None:
        # what an earlier run left in a cache is not looked at, and trials leave nothing behind
        self.settings = replace(settings, options=replace(settings.options, cache_dir=None, dump_to=None))
        self.budget = budget
        self.threads = settings.threads or default_threads()
        self.graph = ModelGraph(run.model, run.constants)
        budget.says("running onnxruntime")
        proto = whole_proto(run.model, with_external=False)
        feeds = {**run.constants, **run.feeds}
        witness = OnnxruntimePeer(run.path or proto.SerializeToString(), self.threads, folder=run.folder)
        self.expected = flat_outputs(witness.run(feeds))
        self.known = KnownValues(add_every_layer(proto), run.folder, feeds, self.threads)
        self.aside: list[Finding] = []
        self.nodes_aside: set[int] = set()
        self.trials = 0
        self.in_time = True
        self.seconds = 0.0
        """What a trial of the whole model takes."""
        self.notes: list[str] = []

    def findings(self) -> Findings:
        whole = self.graph.whole()
        self.budget.says("compiling the model")
        begun = self.budget.left
        outcome = self.outcome(whole, self.expected)
        self.seconds = begun - self.budget.left
        if outcome.refusal is not None:
            raise outcome.refusal
        self.budget.says("comparing every value")
        every = Part(tuple(range(len(self.graph.nodes))), tuple(n for n in self.graph.maker if n in self.known.names))
        layered = Outcome() if outcome.crash else self.outcome(every)
        if layered.refusal is not None:
            self.notes.append(f"the model does not run with every value as an output: {layered.refusal}")
        fault = self.first_fault(whole, outcome, every, layered)
        return Findings(
            fault, tuple(self.aside), outcome.comparisons, layered.comparisons, self.trials, tuple(self.notes)
        )

    def first_fault(self, whole: Part, outcome: Outcome, every: Part, layered: Outcome) -> Finding | None:
        """The first difference that is onnxla's."""
        for start, seen in self.starts(whole, outcome, every, layered):
            while len(self.aside) < _MOST_SET_ASIDE and not (self.aside and self.budget.is_over):
                rest = self.without_set_aside(start)
                current = seen if rest == start else self.outcome(rest)
                if not rest.outputs or not current.is_fault:
                    break
                finding = self.trace(rest, current)
                if finding.culprit.is_ours:
                    return finding
                self.aside.append(finding)
                if finding.culprit.blame is Blame.ROUNDING and len(finding.nodes) > 1:
                    break
        return None

    def starts(self, whole: Part, outcome: Outcome, every: Part, layered: Outcome) -> Iterator[tuple[Part, Outcome]]:
        """Parts that fail, the most promising first: single nodes, then the model, then the model with all values.

        What float64 excuses is not searched: first of all, as it takes the least time.
        """
        excused = outcome.is_fault and self.is_rounding(whole, outcome, self.expected)
        differs = bool(layered.differing) and not self.is_rounding(every, layered)
        tried, enough = 0, self.budget.left * (1 - _SINGLE_NODES_SHARE)
        for node in (suspects := self.suspects(layered) if differs else []):
            if tried and self.budget.left <= enough:
                break
            tried += 1
            self.budget.says(f"trying {self.graph.label(node)}")
            given = [n for n in self.graph.nodes[node].output if n in self.known.names]
            part = self.graph.part([node], given)
            found = self.outcome(part)
            if found.is_fault:
                yield part, found
        if outcome.is_fault and not excused:
            yield whole, outcome
        if layered.crash:
            yield every, layered
        if differs and not outcome.is_fault and not self.aside:
            if self.is_cheap(layered):
                yield every, layered
            else:
                self.notes.append(
                    f"{len(suspects)} nodes differ with every value as an output, none of the {tried} tried alone "
                    "does; float64, which could tell whether that is rounding, takes more than the time that is left"
                )

    def suspects(self, layered: Outcome) -> list[int]:
        """The nodes that make values that differ: first those of which no operand differs, then those that err most."""
        errors = {value: c.norm_error for c in layered.differing if (value := self.value(c.name)) is not None}
        nodes = list(dict.fromkeys(self.graph.maker[name] for name in errors))
        first = [node for node in nodes if not errors.keys() & set(self.graph.reads[node])]
        others = sorted(
            (node for node in nodes if node not in first),
            key=lambda node: -max(errors.get(name, 0.0) for name in self.graph.nodes[node].output),
        )
        return [*first, *others]

    def value(self, name: str) -> str | None:
        """The value of the graph that a comparison is of: `scores[0]` is of the sequence `scores`."""
        if name in self.graph.maker:
            return name
        return next((n for n in (name.rpartition("[")[0], name.rpartition(".")[0]) if n in self.graph.maker), None)

    def without_set_aside(self, part: Part) -> Part:
        kept = [node for node in part.nodes if node not in self.nodes_aside]
        return part if len(kept) == len(part.nodes) else self.graph.part(kept, self.graph.results(kept))

    def is_cheap(self, outcome: Outcome) -> bool:
        """Whether evaluating what was tried takes a small part of the time."""
        return 3 * outcome.seconds < self.budget.left

    def is_rounding(self, part: Part, outcome: Outcome, expected: Mapping[str, Array] | None = None) -> bool:
        """Whether float64 excuses a whole model, where that is cheap to ask."""
        if outcome.crash or not self.is_cheap(outcome):
            return False
        self.budget.says("judging by float64")
        case = self.case(part, expected)
        if not explained_by_rounding(case, outcome, self.settings):
            return False
        culprit = Culprit(Blame.ROUNDING, comparison=outcome.differing[0])
        self.aside.append(self.finding(culprit, part, outcome, case))
        return True

    def case(self, part: Part, expected: Mapping[str, Array] | None = None) -> Case:
        """The part with onnxruntime's values around it."""
        cut = self.graph.cut_values(part)
        values = self.known.get(cut)
        results = self.known.get(n for n in part.outputs if n in self.known.names) if expected is None else expected
        known = self.graph.known(cut)
        feeds = {name: array for name, array in values.items() if name not in known}
        return Case(self.graph.extract(part, values, results), feeds, results)

    def outcome(self, part: Part, expected: Mapping[str, Array] | None = None) -> Outcome:
        """What a trial of the part finds; nothing where it cannot be cut out."""
        self.trials += 1
        if not set(self.graph.cut_values(part)) <= self.known.names:
            return Outcome(refusal=InputError("the part reads what is no tensor"))
        try:
            case = self.case(part, expected)
        except InputError as error:  # onnxruntime does not give a value after all
            return Outcome(refusal=error)
        return case.outcome(self.settings)

    def trace(self, start: Part, seen: Outcome) -> Finding:
        """From a part that fails to the smallest one, and who broke it."""

        def fails(part: Part) -> bool:
            return not self.nodes_aside.intersection(part.nodes) and self.outcome(part).is_like(seen)

        part = smallest_part(self.graph, start, fails, self.budget, self.seconds)
        self.in_time = not self.budget.is_over
        case = self.as_file(part, seen)
        culprit, outcome = self.culprit(case)
        if culprit.is_ours:
            smaller = self.on_smaller_arrays(case, seen)
            again = (culprit, outcome) if smaller is case else self.culprit(smaller)
            if again[0].blame is culprit.blame:  # and not what else happens to small arrays
                case, (culprit, outcome) = smaller, again
        else:
            self.nodes_aside.update(part.nodes)
        return self.finding(culprit, part, outcome, case)

    def culprit(self, case: Case) -> tuple[Culprit, Outcome]:
        self.budget.says("finding who broke it")
        outcome = case.outcome(self.settings)
        if not outcome.is_fault:
            details = (
                "run again, the same model gives what onnxruntime gives: something is read before it is written",
            )
            return Culprit(Blame.PLAN, details=details), outcome
        seconds = self.budget.left + self.budget.seconds / 2
        if EVALUATIONS * outcome.seconds > seconds:
            return Culprit(Blame.UNKNOWN, comparison=outcome.differing[0]), outcome
        return find_culprit(case, outcome, self.settings, seconds), outcome

    def as_file(self, part: Part, seen: Outcome) -> Case:
        """The part as it is when it is run from a file of its own; where that shows nothing, as it is in the model."""
        case = self.case(part)
        try:
            own = alone(case, self.threads)
        except OnnxlaError as error:
            self.notes.append(f"onnxruntime does not run the small model by itself: {error}")
            return case
        if own.outcome(self.settings).is_like(seen):
            return own
        self.notes.append("onnxruntime, on the small model by itself, gives what onnxla gives")
        return case

    def on_smaller_arrays(self, case: Case, seen: Outcome) -> Case:
        """The case, or one with shorter axes that fails too."""
        limited = Budget(self.budget.left * _SHAPES_SHARE, lambda what, _: self.budget.says(what))
        fails = lambda c: c.outcome(self.settings).is_like(seen)  # noqa: E731
        return with_smaller_shapes(case, fails, self.threads, limited)

    def finding(self, culprit: Culprit, part: Part, outcome: Outcome, case: Case) -> Finding:
        difference = outcome.differing[0] if outcome.differing else None
        value = None if difference is None else self.value(difference.name)
        node = part.nodes[-1] if value is None else self.graph.maker[value]
        nodes: Sequence[int] = part.nodes
        return Finding(
            culprit,
            self.graph.label(node),
            tuple(self.graph.label(k) for k in nodes),
            difference,
            case,
            self.in_time or len(nodes) == 1,
        )
