"""Which function imports which ONNX operator: `@onnx_op(name, since, until, domain)` and the lookup.

A rule covers a range of opsets. Two rules of one operator must not overlap, which is checked as the
rules are defined; an opset between ranges is an error that lists the ranges, never a nearest guess.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.operator_names import normal_domain, qualified_name
from onnxla.frontends.onnx.values import Value
from onnxla.hlo.builder import Builder

RuleResult: TypeAlias = Value | Sequence[Value | None]
"""One output, or all of them in order; None stands for an optional output that nobody reads."""
Rule: TypeAlias = Callable[[NodeView, Builder], RuleResult]


@dataclass(frozen=True)
class RuleEntry:
    """One rule and the opsets it covers: `since` to `until`, both included; no `until` means all later ones."""

    name: str
    domain: str
    since: int
    until: int | None
    rule: Rule

    def covers(self, opset: int) -> bool:
        return self.since <= opset and (self.until is None or opset <= self.until)

    @property
    def range(self) -> str:
        """`7..12`, `13..`."""
        return f"{self.since}..{'' if self.until is None else self.until}"


class NoRule(LookupError):
    """No rule covers an operator at an opset; the message lists the ranges that are covered."""


_RULES: dict[tuple[str, str], list[RuleEntry]] = {}


def onnx_op(name: str, since: int = 1, until: int | None = None, domain: str = "") -> Callable[[Rule], Rule]:
    """Register a function as the import rule of `domain`::`name` for opsets `since` to `until`.

    Decorators stack: one function may serve several operators or ranges. Raises TypeError when
    the range is empty or meets another rule's.
    """
    domain = normal_domain(domain)
    if until is not None and until < since:
        raise TypeError(f"{name}: the range {since}..{until} is empty")

    def register(rule: Rule) -> Rule:
        entry = RuleEntry(name, domain, since, until, rule)
        entries = _RULES.setdefault((domain, name), [])
        for other in entries:
            if entry.covers(other.since) or other.covers(entry.since):
                raise TypeError(f"{qualified_name(name, domain)}: rules {other.range} and {entry.range} overlap")
        entries.append(entry)
        entries.sort(key=lambda e: e.since)
        return rule

    return register


def lookup(name: str, domain: str, opset: int) -> Rule:
    """The rule of an operator at an opset. Raises NoRule, which lists the ranges there are."""
    domain = normal_domain(domain)
    entries = _RULES.get((domain, name), [])
    for entry in entries:
        if entry.covers(opset):
            return entry.rule
    known = f" (rules cover: {', '.join(e.range for e in entries)})" if entries else ""
    raise NoRule(f"{qualified_name(name, domain)} at opset {opset} has no import rule{known}")


def ranges(name: str, domain: str) -> list[str]:
    """The ranges of opsets that rules of an operator cover."""
    return [e.range for e in _RULES.get((normal_domain(domain), name), [])]


def coverage() -> Iterator[RuleEntry]:
    """Every rule, by domain, operator and opset: the coverage table."""
    for key in sorted(_RULES):
        yield from _RULES[key]
