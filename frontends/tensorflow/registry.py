"""Which function imports which TensorFlow operation: `@tf_op(name, ..., outputs=(...))` and the lookup."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar, cast

from onnxla.frontends.tensorflow.node_view import NodeView
from onnxla.frontends.tensorflow.values import Value
from onnxla.hlo.builder import Builder

RuleResult: TypeAlias = Value | Sequence[Value | None] | None
"""One output, or all of them in order; None stands for an output that nobody reads, or for none at all."""
Rule: TypeAlias = Callable[[NodeView, Builder], RuleResult]
AnyRule = TypeVar("AnyRule", bound=Callable[..., object])
"""A rule with its own type of result, which decorating keeps."""


@dataclass(frozen=True)
class RuleEntry:
    """One rule, and the names of the operation's output arguments where it has several."""

    name: str
    rule: Rule
    outputs: tuple[str, ...]


_RULES: dict[str, RuleEntry] = {}


def tf_op(*names: str, outputs: Sequence[str] = ()) -> Callable[[AnyRule], AnyRule]:
    """Register a function as the import rule of operations.

    `outputs` names the output arguments of operations that have several, each one tensor: functions refer to outputs
    by them. Raises TypeError for an operation that has a rule already.
    """

    def register(rule: AnyRule) -> AnyRule:
        for name in names:
            if name in _RULES:
                raise TypeError(f"two import rules for {name}")
            _RULES[name] = RuleEntry(name, cast("Rule", rule), tuple(outputs))
        return rule

    return register


def lookup(name: str) -> RuleEntry | None:
    """The rule of an operation; None where there is none."""
    return _RULES.get(name)


def coverage() -> Iterator[RuleEntry]:
    """Every rule, by operation."""
    for name in sorted(_RULES):
        yield _RULES[name]
