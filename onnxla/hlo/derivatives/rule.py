"""What a derivative's rule is, and the table of them: `@derivative("multiply")`."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction

Parts: TypeAlias = "Sequence[Instruction | None]"
"""What each operand of an instruction receives; None for nothing."""
Rule: TypeAlias = Callable[[Builder, Instruction, Instruction], Parts]
"""From an instruction and the derivative by its value to those by its operands."""

RULES: dict[str, Rule] = {}
"""By opcode."""


class NoDerivativeError(Exception):
    """This case of an operation has no rule; the text says which. Never seen by users."""


def derivative(*opcodes: str) -> Callable[[Rule], Rule]:
    """Register a rule for operations."""

    def register(rule: Rule) -> Rule:
        for opcode in opcodes:
            assert opcode not in RULES, opcode
            RULES[opcode] = rule
        return rule

    return register
