"""Are two modules the same program? Names and source nodes do not count; everything else does."""

import hashlib

from onnxla.hlo.module import Computation, Instruction, Module
from onnxla.hlo.op_text import format_attributes
from onnxla.hlo.ops.structural import Constant, Parameter


def fingerprint(module: Module) -> str:
    """A digest that is equal, in every process, for modules that are equal but for names."""
    digest = hashlib.sha256()
    numbers: dict[Computation, int] = {}
    for computation in module.computations():
        digest.update(_computation_text(computation, numbers).encode())
        numbers[computation] = len(numbers)
    return digest.hexdigest()


def structurally_equal(a: Module, b: Module) -> bool:
    """The same operations with equal attributes and types on the same operands, in the same order."""
    return fingerprint(a) == fingerprint(b)


def _computation_text(computation: Computation, numbers: dict[Computation, int]) -> str:
    order = computation.instructions()
    places = {instruction: i for i, instruction in enumerate(order)}
    lines = [_instruction_text(i, places, numbers) for i in order]
    return "\n".join([f"{len(computation.parameters)} parameters", *lines, f"root {places[computation.root]}\n"])


def _instruction_text(instruction: Instruction, places: dict[Instruction, int], numbers: dict[Computation, int]) -> str:
    op = instruction.op
    operands = ",".join(str(places[o]) for o in instruction.operands)
    attributes = format_attributes(op, [o.type for o in instruction.operands], lambda c: str(numbers[c]))
    if isinstance(op, Constant):
        attributes.append(op.literal.digest)
    if isinstance(op, Parameter):
        attributes.append(str(op.number))
    return f"{instruction.type} {op.opcode}({operands}) {attributes}"
