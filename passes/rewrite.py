"""Rewrite rules and the driver that applies them until none fires.

A rule is a pattern, a reason and a replacement:

    @rule(transpose(transpose(x, p), q))
    def merge_transposes(b: Builder, x: Instruction, p: Shape, q: Shape) -> Instruction:
        \"\"\"transpose(transpose(x, p), q) == transpose(x, p[q])\"\"\"
        return b.transpose(x, [p[i] for i in q])

The function's parameters are the pattern's variables by name, `b` for a builder at the matched instruction, and `root`
for that instruction itself. It gives the replacement, of the same type, or NoMatch with the reason.
"""

import inspect
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from onnxla import watch
from onnxla.errors import HloError, InternalError, SourceNode
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Computation, Instruction
from onnxla.hlo.ops.contraction import Convolution, Dot
from onnxla.hlo.ops.structural import Parameter
from onnxla.passes.pass_base import ComputationPass
from onnxla.passes.pattern import Pattern

_NEAR = 3
"""How far from what a rule replaces the product in it is looked for."""


@dataclass(frozen=True)
class NoMatch:
    """Why a rule whose pattern matched does not apply."""

    reason: str


Replacement = Instruction | NoMatch


@dataclass(frozen=True)
class Rule:
    """One rewrite. Rules with `exact=False` may change values beyond rounding and run only under fast_math."""

    name: str
    pattern: Pattern
    replace: Callable[..., Replacement]
    exact: bool
    arguments: frozenset[str]

    def apply(self, instruction: Instruction) -> Replacement | None:
        """The replacement for `instruction`; None where the pattern does not match."""
        binding = self.pattern.match(instruction, {})
        if binding is None:
            return None
        if "b" in self.arguments:
            binding = {**binding, "b": Builder(source=instruction.source)}
        if "root" in self.arguments:
            binding = {**binding, "root": instruction}
        outcome = self.replace(**{name: binding[name] for name in self.arguments})
        if isinstance(outcome, Instruction) and outcome.source is instruction.source:
            outcome.source = _product_source(outcome, instruction)
        return outcome


def _product_source(outcome: Instruction, replaced: Instruction) -> SourceNode | None:
    """A product that takes in what was done to its result, or to its operands, stays that of its own node: by that name
    the user knows it."""
    if isinstance(outcome.op, Dot | Convolution) and not isinstance(replaced.op, Dot | Convolution):
        near = list(replaced.operands)
        for _ in range(_NEAR):
            products = [i for i in near if isinstance(i.op, Dot | Convolution)]
            if products:
                return products[0].source
            near = [operand for i in near for operand in i.operands]
    return outcome.source


@dataclass
class RuleTable:
    """The rules of one file, in order: the first that applies wins."""

    rules: list[Rule] = field(default_factory=list)

    def rule(self, pattern: Pattern, *, exact: bool = True) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Register a function as the replacement for what `pattern` matches."""

        def register(replace: Callable[..., Any]) -> Callable[..., Any]:
            arguments = frozenset(inspect.signature(replace).parameters)
            self.rules.append(Rule(replace.__name__, pattern, replace, exact, arguments))
            return replace

        return register


class RewritePass(ComputationPass):
    """Applies rule tables to a fixed point. `stats` counts what fired, `refusals` why matching rules did not."""

    def __init__(self, tables: Sequence[RuleTable], *, fast_math: bool = False) -> None:
        super().__init__()
        self.refusals: dict[str, dict[str, int]] = {}
        self._by_opcode: dict[str, list[Rule]] = {}
        self._anywhere: list[Rule] = []
        for rule in (r for table in tables for r in table.rules if r.exact or fast_math):
            opcodes = rule.pattern.opcodes()
            if opcodes is None:
                self._anywhere.append(rule)
            for opcode in opcodes or ():
                self._by_opcode.setdefault(opcode, []).append(rule)

    def run_on(self, computation: Computation) -> bool:
        return _Rewriting(self, computation).run()

    def leave_out(self, name: str) -> None:
        """Run without the rules of that name: for finding the one that is wrong."""
        self._anywhere = [rule for rule in self._anywhere if rule.name != name]
        self._by_opcode = {
            opcode: [rule for rule in rules if rule.name != name] for opcode, rules in self._by_opcode.items()
        }

    def rules_for(self, instruction: Instruction) -> list[Rule]:
        return self._by_opcode.get(instruction.op.opcode, []) + self._anywhere

    def refuse(self, rule: Rule, reason: str) -> None:
        reasons = self.refusals.setdefault(rule.name, {})
        reasons[reason] = reasons.get(reason, 0) + 1


class _Rewriting:
    """One computation on its way to the fixed point."""

    def __init__(self, owner: RewritePass, computation: Computation) -> None:
        self.owner = owner
        self.computation = computation
        self.waiting = deque(computation.instructions())
        self.queued = set(self.waiting)
        self.known = set(self.waiting)
        self.limit = 50 * len(self.waiting) + 1000

    def run(self) -> bool:
        fired = 0
        while self.waiting:
            instruction = self.waiting.popleft()
            self.queued.discard(instruction)
            if not instruction.users and instruction is not self.computation.root:
                continue
            if self._rewrite(instruction):
                fired += 1
                watch.check()
                if fired > self.limit:
                    often = sorted(self.owner.stats.items(), key=lambda item: -item[1])[:4]
                    raise InternalError(f"rewriting {self.computation.name} does not end; most often fired: {often}")
        return fired > 0

    def _rewrite(self, instruction: Instruction) -> bool:
        for rule in self.owner.rules_for(instruction):
            try:
                outcome = rule.apply(instruction)
                if outcome is None:
                    continue
                if isinstance(outcome, NoMatch):
                    self.owner.refuse(rule, outcome.reason)
                    continue
                self._replace(instruction, outcome)
            except HloError as error:
                raise InternalError(f"the rule {rule.name} is wrong about {instruction}: {error}") from error
            self.owner.count(rule.name)
            return True
        return False

    def _replace(self, old: Instruction, new: Instruction) -> None:
        self._enter(new)
        self.computation.replace(old, new)
        for user in new.users:
            self._push(user)
        self._erase(old)

    def _enter(self, new: Instruction) -> None:
        """Queue what a rule made, operands first."""
        stack = [(new, False)]
        while stack:
            instruction, expanded = stack.pop()
            if expanded:
                self._push(instruction)
            elif instruction not in self.known:
                self.known.add(instruction)
                stack.append((instruction, True))
                stack += [(operand, False) for operand in reversed(instruction.operands)]
        self._push(new)

    def _erase(self, instruction: Instruction) -> None:
        """Forget what nobody reads any more; what lost a reader is looked at again, with its other readers."""
        stack = [instruction]
        while stack:
            current = stack.pop()
            if current.users or current is self.computation.root or isinstance(current.op, Parameter):
                continue
            operands = dict.fromkeys(current.operands)
            current.set_operands(())
            for operand in operands:
                stack.append(operand)
                if len(operand.users) == 1:
                    self._push(operand)
                    self._push(next(iter(operand.users)))

    def _push(self, instruction: Instruction) -> None:
        if instruction not in self.queued:
            self.queued.add(instruction)
            self.waiting.append(instruction)
