"""Long elementwise work on one 8-bit value becomes a table of its 256 results.

Quantised models round between the steps of an activation, so a swish is a chain of exponentials, divisions, roundings
and clamps from bytes to bytes. A table is computed by the same operations, once, while compiling. Bytes are looked up
one by one, so that those of a vector take as long as some tens of operations on it.
"""

from dataclasses import dataclass

import numpy as np

from onnxla.hlo.builder import Builder
from onnxla.hlo.constant_evaluation import ConstantEvaluator
from onnxla.hlo.module import Computation, Instruction
from onnxla.hlo.ops.elementwise import Elementwise
from onnxla.hlo.ops.shape import Broadcast
from onnxla.hlo.ops.structural import Constant
from onnxla.hlo.types import S8, S32, U8, TensorType
from onnxla.passes.fuse.traits import is_elementwise, is_expensive, is_scalar_constant
from onnxla.passes.pass_base import ComputationPass

VALUES = 256
LEAST_ELEMENTS = 1 << 12
"""A smaller tensor is computed in less time than a table takes to come into cache."""
EXPENSIVE, LEAST_WORK = 10, 36
"""Cheap operations that a division or an exponential counts for, and those that looking up a vector costs: with AVX-512
chains of 24 to 31 take half of the time computed, with AVX2 nine tenths (Zen 5)."""


class Tabulate(ComputationPass):
    """Replace what depends on one 8-bit value, element by element, where computing it costs more than looking it up."""

    name = "tabulate"

    def run_on(self, computation: Computation) -> bool:
        regions = _regions(computation)
        tables = {}
        for instruction, region in regions.items():
            used_elsewhere = any(regions.get(u) is not region for u in instruction.users)
            if used_elsewhere or instruction is computation.root:
                steps = region.steps_to(instruction)
                if sum(EXPENSIVE if is_expensive(s) else 1 for s in steps) >= LEAST_WORK:
                    tables[instruction] = _lookup(region.source, steps)
        for instruction, table in tables.items():
            computation.replace(instruction, table)
        if tables:
            self.count("tables", len(tables))
        return bool(tables)


@dataclass(eq=False)
class _Region:
    """Elementwise instructions that depend on `source`, 8 bits, and nothing else that changes."""

    source: Instruction
    members: dict[Instruction, None]

    def steps_to(self, end: Instruction) -> list[Instruction]:
        """What `end` is made of, in order, itself included."""
        needed = {end}
        for member in reversed(self.members):
            if member in needed:
                needed.update(o for o in member.operands if o in self.members)
        return [member for member in self.members if member in needed]


def _regions(computation: Computation) -> dict[Instruction, _Region]:
    """The region of every instruction that is in one: that of the earliest source it depends on alone."""
    found: dict[Instruction, _Region] = {}
    by_source: dict[Instruction, _Region] = {}
    for instruction in computation.instructions():
        if not is_elementwise(instruction) or instruction.tensor_type.size < LEAST_ELEMENTS:
            continue
        changing = [o for o in dict.fromkeys(instruction.operands) if not _is_one_number(o)]
        sources = {found[o].source if o in found else o for o in changing}
        if len(sources) != 1 or any(o.shape != instruction.shape for o in changing):
            continue
        (source,) = sources
        if source not in by_source:
            if source.tensor_type.element not in (S8, U8):
                continue
            by_source[source] = _Region(source, {})
        by_source[source].members[instruction] = None
        found[instruction] = by_source[source]
    return found


def _is_one_number(operand: Instruction) -> bool:
    return is_scalar_constant(operand) or isinstance(operand.op, Broadcast) and is_scalar_constant(operand.operands[0])


def _lookup(source: Instruction, steps: list[Instruction]) -> Instruction:
    """The last of `steps`, read from a table at the place of `source` among the 8-bit values."""
    element = source.tensor_type.element
    least = int(np.iinfo(element.dtype).min)
    b = Builder(source=steps[-1].source)
    known = {source: b.constant(np.arange(least, least + VALUES).astype(element.dtype))}
    for step in steps:
        assert isinstance(step.op, Elementwise)
        operands = [known[o] if o in known else _number(b, o, step) for o in step.operands]
        known[step] = b.emit(step.op, *operands)
    table = ConstantEvaluator(1 << 20, 10.0).value(known[steps[-1]])
    assert table is not None and table.shape == (VALUES,)
    place = source
    if least:
        place = b.convert(source, S32)
        place = b.subtract(place, b.broadcast(b.constant(least, S32), place.shape, ()))
    return b.take(b.constant(table), place, 0)


def _number(b: Builder, operand: Instruction, user: Instruction) -> Instruction:
    """A number as the operand of a step over the table: with the table's shape where it has that of its user."""
    constant = operand if isinstance(operand.op, Constant) else operand.operands[0]
    assert isinstance(constant.op, Constant) and isinstance(constant.type, TensorType)
    number = b.constant(constant.op.literal.array.reshape(()))
    return number if operand.shape == () and user.shape != () else b.broadcast(number, (VALUES,), ())
