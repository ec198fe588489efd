"""Patterns over HLO values, written as the expression they match: `transpose(transpose(x, p), q)`.

    x, p, q = variables("x p q")
    transpose(transpose(x, p), q)      operands, then attributes in field order; trailing ones may be left out
    add(x, splat(c))                   operands of a commutative operation match in either order
    once(reshape(x))                   an instruction with one user

A match binds each variable to an instruction, an attribute value or, in `splat`, a scalar; a variable that stands twice
must be bound to the same thing.
"""

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from onnxla.hlo.module import Instruction
from onnxla.hlo.op import OPS
from onnxla.hlo.ops.elementwise import Elementwise
from onnxla.hlo.ops.shape import Broadcast, Reshape
from onnxla.hlo.ops.structural import Constant
from onnxla.hlo.types import Array

Binding: TypeAlias = dict[str, Any]


class Pattern:
    """Something an instruction may look like."""

    def match(self, instruction: Instruction, binding: Binding) -> Binding | None:
        """`binding` with this pattern's variables added, or None."""
        raise NotImplementedError

    def opcodes(self) -> Iterable[str] | None:
        """The opcodes of instructions that can match; None for any."""
        return None


@dataclass(frozen=True)
class Variable(Pattern):
    """Matches anything; the same thing wherever the name stands."""

    name: str

    def bind(self, value: Any, binding: Binding) -> Binding | None:
        if self.name in binding:
            known = binding[self.name]
            same = known is value or (not isinstance(value, Instruction) and bool(np.all(known == value)))
            return binding if same else None
        return {**binding, self.name: value}

    def match(self, instruction: Instruction, binding: Binding) -> Binding | None:
        return self.bind(instruction, binding)


def variables(names: str) -> tuple[Variable, ...]:
    """Variables of the names in a text: `x, y = variables("x y")`."""
    return tuple(Variable(name) for name in names.split())


@dataclass(frozen=True)
class Operation(Pattern):
    """An instruction of one opcode whose operands and attributes match."""

    opcode: str
    operands: tuple[Pattern, ...] | None
    """None for any operands."""
    attributes: tuple[tuple[str, Any], ...] = ()
    """Field names with a variable, or the value that the field must have."""

    def opcodes(self) -> Iterable[str]:
        return (self.opcode,)

    def match(self, instruction: Instruction, binding: Binding) -> Binding | None:
        op = instruction.op
        if op.opcode != self.opcode:
            return None
        for name, wanted in self.attributes:
            value = getattr(op, name)
            if isinstance(wanted, Variable):
                bound = wanted.bind(value, binding)
                if bound is None:
                    return None
                binding = bound
            elif wanted != value:
                return None
        if self.operands is None:
            return binding
        if len(self.operands) != len(instruction.operands):
            return None
        found = _match_all(self.operands, instruction.operands, binding)
        if found is None and isinstance(op, Elementwise) and op.commutative:
            found = _match_all(self.operands, instruction.operands[::-1], binding)
        return found


def _match_all(patterns: Iterable[Pattern], operands: Iterable[Instruction], binding: Binding | None) -> Binding | None:
    for pattern, operand in zip(patterns, operands, strict=True):
        if binding is None:
            return None
        binding = pattern.match(operand, binding)
    return binding


@dataclass(frozen=True)
class Splat(Pattern):
    """One constant number for all elements: a scalar constant, or the broadcast of one.

    `value` is the number it must be, to the sign of zero, or the variable that is bound to the scalar array.
    """

    value: Variable | float | bool

    def match(self, instruction: Instruction, binding: Binding) -> Binding | None:
        scalar = splat_value(instruction)
        if scalar is None:
            return None
        if isinstance(self.value, Variable):
            return self.value.bind(scalar, binding)
        wanted = np.asarray(self.value).astype(scalar.dtype)
        # comparing the bits tells -0.0 from 0.0
        same = wanted.tobytes() == scalar.tobytes() and bool(wanted == self.value)
        return binding if same else None


def splat_value(instruction: Instruction) -> Array | None:
    """The scalar that every element of `instruction` is, where it is a constant number."""
    source = instruction.operands[0] if isinstance(instruction.op, Broadcast | Reshape) else instruction
    if isinstance(source.op, Constant) and source.op.literal.array.size == 1:
        return source.op.literal.array.reshape(())
    return None


@dataclass(frozen=True)
class Once(Pattern):
    """An instruction that one other instruction reads."""

    inner: Pattern

    def opcodes(self) -> Iterable[str] | None:
        return self.inner.opcodes()

    def match(self, instruction: Instruction, binding: Binding) -> Binding | None:
        return self.inner.match(instruction, binding) if len(instruction.users) == 1 else None


@dataclass(frozen=True)
class AnyOf(Pattern):
    """An instruction of one of several opcodes, whatever its operands."""

    names: tuple[str, ...]

    def opcodes(self) -> Iterable[str]:
        return self.names

    def match(self, instruction: Instruction, binding: Binding) -> Binding | None:
        return binding if instruction.op.opcode in self.names else None


@dataclass(frozen=True)
class ConstantOf(Pattern):
    """A constant; the variable is bound to its array."""

    value: Variable

    def match(self, instruction: Instruction, binding: Binding) -> Binding | None:
        op = instruction.op
        return self.value.bind(op.literal.array, binding) if isinstance(op, Constant) else None


def splat(value: Variable | float | bool) -> Pattern:
    return Splat(value)


def constant(value: Variable) -> Pattern:
    return ConstantOf(value)


def once(inner: Pattern) -> Pattern:
    return Once(inner)


def any_of(*opcodes: str) -> Pattern:
    """Any instruction of these opcodes; the rule looks at `root` itself."""
    return AnyOf(opcodes)


def elementwise_opcodes() -> tuple[str, ...]:
    """The opcodes of all elementwise operations."""
    return tuple(name for name, op in OPS.items() if issubclass(op, Elementwise))


def operation(opcode: str, operands: int | None) -> Callable[..., Pattern]:
    """The constructor of patterns of `opcode`: that many operand patterns, then attributes in field order."""
    fields = [f.name for f in dataclasses.fields(OPS[opcode])]

    def construct(*parts: Any) -> Pattern:
        if operands is None:
            return Operation(opcode, None, tuple(zip(fields, parts, strict=False)))
        return Operation(opcode, parts[:operands], tuple(zip(fields, parts[operands:], strict=False)))

    return construct
