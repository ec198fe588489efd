"""Where there is more than one way to compute a kernel: the ways, what they are said to take, and which was taken.

A schedule that knows several ways gives them to `Choices.choose`, its own preference first. The cost model decides
unless the ways were measured here before (`onnxla/tuning`). Either leaves a `Decision`, which the artifact keeps, so
that what is shown later, and code made again from HLO, follow it.
"""

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from onnxla.codegen.cost import Machine, Work
from onnxla.codegen.lowering import Lowering
from onnxla.codegen.sharing import lowering_key
from onnxla.errors import ArtifactError, harmless_line
from onnxla.hlo.module import Instruction

MARGIN = 1.03
"""How much faster a way must have been measured than the cost model's, which else stays."""


@dataclass(frozen=True)
class Way:
    """One way to compute an instruction. Names are short, and unique among the ways of one instruction."""

    name: str
    work: Work
    lower: Callable[[], Lowering]


@dataclass(frozen=True)
class Candidate:
    """What is known of one way: the seconds that the model predicts, and those that were measured."""

    name: str
    predicted: float
    measured: float | None = None


@dataclass(frozen=True)
class Decision:
    """One place where there was a choice. `candidates[0]` is the cost model's own."""

    site: str
    """The same for equal operations on equal types, in any model."""
    what: str
    """The operation and its types, for people."""
    candidates: tuple[Candidate, ...]
    chosen: str

    @property
    def is_measured(self) -> bool:
        return any(c.measured is not None for c in self.candidates)

    @property
    def gain(self) -> float:
        """How many times as fast the chosen way was measured as the model's own; 1 where nobody measured."""
        own, taken = self.candidates[0].measured, self.candidate(self.chosen).measured
        return own / taken if own and taken else 1.0

    def candidate(self, name: str) -> Candidate:
        return next(c for c in self.candidates if c.name == name)

    def with_times(self, seconds: Mapping[str, float]) -> "Decision":
        """The decision that follows from measured times: the fastest way, or the model's own where that is as good."""
        candidates = tuple(replace(c, measured=seconds.get(c.name, c.measured)) for c in self.candidates)
        own = candidates[0]
        known = [c for c in candidates if c.measured is not None]
        best = min(known, key=lambda c: c.measured or 0.0, default=own)
        if own.measured is None or best.measured is None or best.measured * MARGIN >= own.measured:
            best = own
        return replace(self, candidates=candidates, chosen=best.name)


@dataclass(frozen=True)
class Site:
    """One place where there was a choice, as the compiler met it first."""

    instruction: Instruction
    ways: tuple[Way, ...]
    lowering: Lowering
    """What was chosen."""


class Choices:
    """The decisions of one program: those known before, and those that the cost model takes."""

    def __init__(self, machine: Machine, known: Mapping[str, Decision] | None = None) -> None:
        self.machine = machine
        self.known = known or {}
        self.decisions: dict[str, Decision] = {}
        """By site, in the order they were met."""
        self.sites: dict[str, Site] = {}

    def choose(self, instruction: Instruction, ways: Sequence[Way]) -> Lowering:
        """The lowering of one of `ways`: of the one that is known to be fastest, else of the first."""
        if len(ways) == 1:
            return ways[0].lower()
        site = site_of(instruction)
        decision = self.known.get(site)
        names = [way.name for way in ways]
        if decision is None or [c.name for c in decision.candidates] != names:
            candidates = tuple(Candidate(way.name, self.machine.seconds(way.work)) for way in ways)
            decision = Decision(site, described(instruction), candidates, names[0])
        lowering = ways[names.index(decision.chosen)].lower()
        self.decisions[site] = decision
        self.sites[site] = Site(instruction, tuple(ways), lowering)
        return lowering


def site_of(instruction: Instruction) -> str:
    """A digest of what decides the ways of an instruction: operation, types, and which operands are constants."""
    return hashlib.sha256("\n".join(_texts(lowering_key(instruction))).encode()).hexdigest()


def _texts(key: Any) -> Iterator[str]:
    """The parts of a key, nested tuples opened, as texts that are the same in every process."""
    if isinstance(key, tuple):
        yield "("
        for part in key:
            yield from _texts(part)
        yield ")"
    else:
        yield str(key)


def described(instruction: Instruction) -> str:
    """`dot_add_fusion f32[1,128,768] <- f32[1,128,3072], f32[3072,768], f32[768]`: printable in one line."""
    operands = ", ".join(str(o.type) for o in instruction.operands)
    return harmless_line(f"{instruction.name} {instruction.type} <- {operands}")


def print_decisions(decisions: Iterable[Decision]) -> str:
    """One line of JSON for each, as an artifact keeps them."""
    return "".join(json.dumps(asdict(d), sort_keys=True) + "\n" for d in decisions)


def read_decisions(text: str) -> dict[str, Decision]:
    """The inverse, by site. Raises ArtifactError for anything else."""
    try:
        return {d.site: d for d in map(_decision, text.splitlines())}
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ArtifactError(f"the decisions in the compiled model are malformed: {error}") from error


def _decision(line: str) -> Decision:
    row = json.loads(line)
    candidates = tuple(
        Candidate(str(c["name"]), float(c["predicted"]), None if c["measured"] is None else float(c["measured"]))
        for c in row["candidates"]
    )
    decision = Decision(str(row["site"]), str(row["what"]), candidates, str(row["chosen"]))
    if decision.chosen not in {c.name for c in candidates}:
        raise ValueError("the chosen way is not among the candidates")
    if not all(math.isfinite(t) and t >= 0 for c in candidates for t in (c.predicted, c.measured or 0.0)):
        raise ValueError("impossible times")
    return decision
