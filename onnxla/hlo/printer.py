"""HLO as text, in XLA's modern style: XLA's own tools read it, and `parser.py` reads it back.

    %sum = f32[4]{0} reduce(%x, %zero), dimensions={1}, to_apply=%add_f32, metadata={op_type="ReduceSum" op_name="/r"}

An operation's attributes are its fields in order: each names its attribute and its codec. Every
name is made safe, and unique within its computation; equal modules give equal text.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal as OneOf

from onnxla.errors import SourceNode
from onnxla.hlo.attributes import quote
from onnxla.hlo.literal import Literal
from onnxla.hlo.literal_text import format_literal, is_long
from onnxla.hlo.module import Computation, Instruction, Module, called_by
from onnxla.hlo.names import UniqueNames
from onnxla.hlo.op_text import format_attributes
from onnxla.hlo.ops.structural import Constant, Parameter

Weights = OneOf["elide", "full", "parameters"]
"""How constants of many elements are written: as `{...}`, in full, or (those of the entry) as further parameters."""

LONGEST_CONSTANT = 32
"""Constants of more elements than this are `{...}` in an elided text."""


def print_module(module: Module, *, weights: Weights = "elide") -> str:
    """The whole module: header, computations before their callers, the entry last.

    With `weights="parameters"` the long constants of the entry follow its own parameters, in the
    order of `long_constants`; those of other computations are written in full.
    """
    names = _Names.of(module)
    added = list(_entry_weights(module)) if weights == "parameters" else []
    parameters = [i.type for i in (*module.entry.parameters, *added)]
    layout = f"{{({', '.join(map(str, parameters))})->{module.entry.result_type}}}"
    head = f"HloModule {names.module}, entry_computation_layout={layout}"
    numbers = {c: len(module.entry.parameters) + k for k, c in enumerate(added)}
    bodies = [
        _computation(c, names, "full" if weights == "parameters" else weights, c is module.entry, numbers)
        for c in names.computations
    ]
    return "\n\n".join([head, *bodies]) + "\n"


def print_computation(computation: Computation, *, weights: Weights = "elide") -> str:
    """One computation, without those it calls."""
    names = _Names()
    for called in (*called_by(computation.instructions()), computation):
        names.add(called)
    return _computation(computation, names, weights, False, {})


def print_instruction(instruction: Instruction) -> str:
    """One line: the names are the wishes of the instruction and its operands, as good as they are."""
    names = _Names()
    for called in instruction.op.computations:
        names.computations.setdefault(called, UniqueNames().give(called.name, "computation"))
    for i in (*instruction.operands, instruction):
        names.instructions[i] = UniqueNames().give(i.name, i.op.opcode)
    return _instruction(instruction, names, "elide", {})


def long_constants(module: Module) -> dict[str, Literal]:
    """The constants that `weights="elide"` leaves out, by `computation/instruction` as the text names them."""
    names = _Names.of(module)
    return {
        f"{names.computations[c]}/{names.instructions[i]}": literal
        for c in names.computations
        for i in c.instructions()
        if (literal := constant_of(i)) is not None and is_long(literal.type, LONGEST_CONSTANT)
    }


def entry_weights(module: Module) -> list[Literal]:
    """The constants that `weights="parameters"` makes parameters, in their order."""
    return [literal for i in _entry_weights(module) if (literal := constant_of(i)) is not None]


def constant_of(instruction: Instruction) -> Literal | None:
    """The literal of a `constant`, None for another instruction."""
    return instruction.op.literal if isinstance(instruction.op, Constant) else None


@dataclass
class _Names:
    """The names in one text."""

    module: str = ""
    computations: dict[Computation, str] = field(default_factory=dict)
    instructions: dict[Instruction, str] = field(default_factory=dict)
    _unique: UniqueNames = field(default_factory=UniqueNames)

    @staticmethod
    def of(module: Module) -> "_Names":
        names = _Names(UniqueNames().give(module.name, "module"))
        for computation in module.computations():
            names.add(computation)
        return names

    def add(self, computation: Computation) -> None:
        self.computations[computation] = self._unique.give(computation.name, "computation")
        unique = UniqueNames()
        for i in computation.instructions():
            self.instructions[i] = unique.give(i.name, i.op.opcode)


def _entry_weights(module: Module) -> Iterator[Instruction]:
    for i in module.entry.instructions():
        literal = constant_of(i)
        if literal is not None and is_long(literal.type, LONGEST_CONSTANT):
            yield i


def _computation(
    computation: Computation, names: _Names, weights: Weights, is_entry: bool, numbers: dict[Instruction, int]
) -> str:
    instructions = computation.instructions()
    lines = []
    for i in instructions:
        mark = "ROOT " if i is computation.root else ""
        lines.append(f"  {mark}{_instruction(i, names, weights, numbers)}")
    head = f"{'ENTRY ' if is_entry else ''}%{names.computations[computation]} {{"
    return "\n".join([head, *lines, "}"])


def _instruction(instruction: Instruction, names: _Names, weights: Weights, numbers: dict[Instruction, int]) -> str:
    op = instruction.op
    opcode, inside = op.opcode, ", ".join(f"%{names.instructions[o]}" for o in instruction.operands)
    literal = constant_of(instruction)
    if instruction in numbers:
        opcode, inside = "parameter", str(numbers[instruction])
    elif literal is not None:
        inside = _constant(literal, weights)
    elif isinstance(op, Parameter):
        inside = str(op.number)
    parts = [f"%{names.instructions[instruction]} = {instruction.type} {opcode}({inside})"]
    parts += format_attributes(op, [o.type for o in instruction.operands], names.computations.__getitem__)
    if instruction.source is not None:
        parts.append(_metadata(instruction.source))
    return ", ".join(parts)


def _constant(literal: Literal, weights: Weights) -> str:
    hidden = is_long(literal.type, LONGEST_CONSTANT) and (weights == "elide" or literal.type.size == 0)
    return "{...}" if hidden else format_literal(literal.array, literal.type.element)


def _metadata(source: SourceNode) -> str:
    op_type = f"op_type={quote(source.op_type)} " if source.op_type else ""
    return f"metadata={{{op_type}op_name={quote(source.name)}}}"
