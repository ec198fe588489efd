"""What a row computes once and keeps in scratch for a later sweep, and where.

A value that several sweeps need is kept where computing it anew, from what lies in memory already, takes longer than
storing it. Values share a place where one is read for the last time in the sweep that stores the other, so that as
little as can be takes up the fastest cache.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from onnxla.codegen.kernels import storage
from onnxla.codegen.kernels.rows import Rows
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import ElementType, TensorType

SCRATCH_BYTES = 256 << 10
DEAR = frozenset(
    "exponential exponential-minus-one log log-plus-one logistic tanh erf power sine cosine tan atan2 divide cbrt "
    "gather convolution dot".split()
)
"""Opcodes that cost more than storing their result and reading it back."""
FREE = frozenset({"broadcast", "reshape", "constant"})
CHEAP = 5
"""Operations and reads from memory that cost about as much."""


@dataclass(frozen=True)
class Kept:
    """A value in scratch: the sweep that stores it, the last one that reads it, and its place."""

    instruction: Instruction
    stored: int
    last: int
    place: int

    @property
    def element(self) -> ElementType:
        return storage.compute_element(self.instruction.tensor_type.element)


def plan_kept(rows: Rows) -> list[Kept]:
    """In the order in which they are stored. Sweeps count from 0; the last one writes the results."""
    targets = [[o for r in sweep for o in r.operands[: len(r.operands) // 2]] for sweep in rows.sweeps]
    targets.append([r for r in rows.cluster.roots if isinstance(r.type, TensorType)])
    inside = set(rows.cluster.instructions) - {r for sweep in rows.sweeps for r in sweep}
    first: dict[Instruction, int] = {}
    stored: dict[Instruction, int] = {}
    last: dict[Instruction, int] = {}
    room = SCRATCH_BYTES
    for number, roots in enumerate(targets):
        stack, seen = list(roots), set()
        while stack:
            instruction = stack.pop()
            if instruction in seen or instruction not in inside:
                continue
            seen.add(instruction)
            earlier = first.setdefault(instruction, number)
            wide = isinstance(instruction.type, TensorType) and instruction.shape == rows.full
            if earlier < number and wide and instruction not in stored and _is_dear(instruction, inside, stored):
                room -= rows.columns * storage.compute_element(instruction.tensor_type.element).bytes
                if room >= 0:
                    stored[instruction] = earlier
            if stored.get(instruction, number) < number:
                last[instruction] = number
            else:
                stack += instruction.operands
    return _place(sorted(stored, key=stored.__getitem__), stored, last)


def _is_dear(instruction: Instruction, inside: set[Instruction], stored: Mapping[Instruction, int]) -> bool:
    """Whether to compute it from values in memory takes longer than to keep it there."""
    cost, stack, seen = 0, [instruction], set()
    while stack:
        at = stack.pop()
        if at in seen or not isinstance(at.type, TensorType):
            continue
        seen.add(at)
        if at in stored or at not in inside:
            cost += at.tensor_type.size > 1
            continue
        if at.op.opcode in DEAR:
            return True
        cost += at.op.opcode not in FREE
        stack += at.operands
    return cost > CHEAP


def _place(
    order: Sequence[Instruction], stored: Mapping[Instruction, int], last: Mapping[Instruction, int]
) -> list[Kept]:
    """Places that are given back when their value has been read for the last time."""
    found: list[Kept] = []
    holder: list[Kept] = []
    for instruction in order:
        kept = Kept(instruction, stored[instruction], last[instruction], len(holder))
        for place, other in enumerate(holder):
            if other.last <= kept.stored and other.element is kept.element:
                kept = Kept(instruction, kept.stored, kept.last, place)
                break
        holder[kept.place : kept.place + 1] = [kept]
        found.append(kept)
    return found
