"""Which function imports which operation: `@stablehlo_op(name, ...)` and the lookup. mhlo's are the same."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias, TypeVar, cast

from onnxla.frontends.hlo.operation_view import OperationView
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction

RuleResult: TypeAlias = Instruction | Sequence[Instruction]
Rule: TypeAlias = Callable[[OperationView, Builder], RuleResult]
AnyRule = TypeVar("AnyRule", bound=Callable[..., object])

_RULES: dict[str, Rule] = {}


def stablehlo_op(*names: str) -> Callable[[AnyRule], AnyRule]:
    """Register a function as the import rule of operations, named with their dialect where it is not StableHLO.

    Raises TypeError for an operation that has a rule already.
    """

    def register(rule: AnyRule) -> AnyRule:
        for name in names:
            full = name if "." in name else f"stablehlo.{name}"
            if full in _RULES:
                raise TypeError(f"two import rules for {full}")
            _RULES[full] = cast(Rule, rule)
        return rule

    return register


def lookup(name: str) -> Rule | None:
    """The rule of an operation; None where there is none."""
    return _RULES.get(f"stablehlo.{name[5:]}" if name.startswith("mhlo.") else name)


def coverage() -> Iterator[str]:
    """Every operation there is a rule for, by name."""
    yield from sorted(_RULES)
