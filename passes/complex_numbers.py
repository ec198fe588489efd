"""Complex values give way to pairs of real ones, so that kernels know real numbers only.

In memory a complex number is its real and its imaginary part, one after the other. Where complex values enter a
computation (parameters, results of loops and branches), they are seen as real ones by a bitcast to a further dimension
of size 2, which is free, and slices; where they leave it they are joined the same way. In between every value is
two values.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from onnxla.errors import Problem, UnsupportedOpError
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Computation, Instruction
from onnxla.hlo.ops.contraction import Convolution, Dot
from onnxla.hlo.ops.control_flow import Call, Conditional, Map, While
from onnxla.hlo.ops.elementwise import BitcastConvert, Compare, Convert, Select
from onnxla.hlo.ops.indexing import DynamicSlice, DynamicUpdateSlice, Gather, Scatter, Sort
from onnxla.hlo.ops.reduction import Reduce, ReduceWindow
from onnxla.hlo.ops.shape import Broadcast, Concatenate, Pad, Reshape, Reverse, Slice, Transpose
from onnxla.hlo.ops.structural import Constant, GetTupleElement, Iota, Parameter, Tuple
from onnxla.hlo.types import C64, C128, F32, F64, ElementType, TensorType, TupleType, Type
from onnxla.passes.expand import complex_arithmetic as arithmetic
from onnxla.passes.expand.complex_arithmetic import Pair
from onnxla.passes.pass_base import ComputationPass

_MOVES = (Broadcast, Concatenate, DynamicSlice, DynamicUpdateSlice, Gather, Pad, Reshape, Reverse, Slice, Transpose)
_BORDERS = (Parameter, GetTupleElement, While, Conditional, Call, Tuple, BitcastConvert)
"""Operations that give and take complex numbers as they lie in memory."""
_LISTS = (Reduce, ReduceWindow, Scatter, Sort, Map)
"""Operations that take a computation over scalars, and give several results for several operands."""


class SplitComplexNumbers(ComputationPass):
    """Compute with real and imaginary parts. Raises UnsupportedOpError for operations without such a form."""

    name = "split-complex-numbers"

    def run_on(self, computation: Computation) -> bool:
        if not any(is_complex(i.type) for i in computation.instructions()):
            return False
        splitter = _Splitter()
        order = computation.instructions()
        for instruction in order:
            splitter.visit(instruction)
        changed = False
        for instruction in order:
            new = splitter.replacement(instruction)
            if new is not None:
                computation.replace(instruction, new)
                self.count("split")
                changed = True
        return changed


def is_complex(type: Type) -> bool:
    """Whether a complex number is in it."""
    if isinstance(type, TupleType):
        return any(is_complex(e) for e in type.elements)
    return type.element.is_complex


def part_of(element: ElementType) -> ElementType:
    """The type of the parts; a real type is its own."""
    return {C64: F32, C128: F64}.get(element, element)


def parts_of(b: Builder, value: Instruction) -> Pair:
    """Real and imaginary part of a complex value that lies in memory."""
    type = value.tensor_type
    flat = b.bitcast_convert(value, TensorType(part_of(type.element), (*type.shape, 2)))
    rank = type.rank
    re, im = (b.reshape(b.slice(flat, (*(0,) * rank, k), (*type.shape, k + 1)), type.shape) for k in (0, 1))
    return re, im


def joined(b: Builder, pair: Pair) -> Instruction:
    """The complex value of two parts."""
    type = pair[0].tensor_type
    apart = [b.reshape(part, (*type.shape, 1)) for part in pair]
    both = b.concatenate(apart, type.rank)
    return b.bitcast_convert(both, type.with_element(C64 if type.element is F32 else C128))


class _Splitter:
    def __init__(self) -> None:
        self.pairs: dict[Instruction, Pair] = {}
        """What stands for each complex value."""
        self.lists: dict[Instruction, list[Instruction | Pair]] = {}
        """What stands for each leaf of a tuple that a reduction, sort or scatter gives."""
        self.real: dict[Instruction, Instruction] = {}
        """What stands for a real value that was computed from complex ones."""

    def visit(self, instruction: Instruction) -> None:
        op = instruction.op
        if isinstance(op, GetTupleElement) and instruction.operands[0] in self.lists:
            found = self.lists[instruction.operands[0]][op.index]
            if isinstance(found, tuple):
                self.pairs[instruction] = found
            else:
                self.real[instruction] = found
            return
        touched = is_complex(instruction.type) or any(is_complex(o.type) for o in instruction.operands)
        if touched and not isinstance(op, _BORDERS):
            self.split(Builder("complex", source=instruction.source), instruction)

    def replacement(self, instruction: Instruction) -> Instruction | None:
        """What users that were not split read in place of the instruction; None where it stays."""
        if instruction in self.real:
            return self.real[instruction]
        if instruction in self.pairs and not isinstance(instruction.op, _BORDERS):
            return joined(Builder("complex", source=instruction.source), self.pairs[instruction])
        if instruction in self.pairs and isinstance(instruction.op, GetTupleElement):
            if instruction.operands[0] in self.lists:
                return joined(Builder("complex", source=instruction.source), self.pairs[instruction])
        if instruction in self.lists:
            b = Builder("complex", source=instruction.source)
            return b.tuple(*(joined(b, x) if isinstance(x, tuple) else x for x in self.lists[instruction]))
        return None

    def pair(self, b: Builder, value: Instruction) -> Pair:
        if value not in self.pairs:
            self.pairs[value] = parts_of(b, value)
        return self.pairs[value]

    def plain(self, value: Instruction) -> Instruction:
        return self.real.get(value, value)

    def split(self, b: Builder, instruction: Instruction) -> None:
        op, operands = instruction.op, instruction.operands
        opcode = op.opcode
        pairs = [self.pair(b, o) if is_complex(o.type) else None for o in operands]
        known = [p for p in pairs if p is not None]
        if isinstance(op, Constant):
            array = op.literal.array
            self.pairs[instruction] = (b.constant(np.array(array.real)), b.constant(np.array(array.imag)))
        elif isinstance(op, Iota):
            counted = b.iota(op.type.with_element(part_of(op.type.element)), op.dimension)
            self.pairs[instruction] = (counted, b.full_like(counted, 0))
        elif opcode in ("real", "imag"):
            self.real[instruction] = known[0][opcode == "imag"]
        elif opcode == "complex":
            self.pairs[instruction] = (self.plain(operands[0]), self.plain(operands[1]))
        elif opcode == "abs":
            self.real[instruction] = arithmetic.absolute(b, known[0])
        elif isinstance(op, Compare):
            self.real[instruction] = arithmetic.equal(b, known[0], known[1], op.direction)
        elif isinstance(op, Convert):
            self.convert(b, instruction, op, pairs[0])
        elif isinstance(op, Select):
            first, second = known
            condition = self.plain(operands[0])
            re, im = (b.select(condition, x, y) for x, y in zip(first, second, strict=True))
            self.pairs[instruction] = (re, im)
        elif opcode in arithmetic.UNARY and len(known) == 1:
            self.pairs[instruction] = arithmetic.UNARY[opcode](b, known[0])
        elif opcode in arithmetic.BINARY and len(known) == 2:
            self.pairs[instruction] = arithmetic.BINARY[opcode](b, known[0], known[1])
        elif isinstance(op, _MOVES):
            re, im = (
                b.emit(op, *(self.plain(o) if p is None else p[k] for o, p in zip(operands, pairs, strict=True)))
                for k in (0, 1)
            )
            self.pairs[instruction] = (re, im)
        elif isinstance(op, Dot | Convolution):
            self.pairs[instruction] = _contraction(b, op, known[0], known[1])
        elif isinstance(op, _LISTS):
            self.listed(b, instruction, pairs)
        else:
            raise UnsupportedOpError([_refusal(instruction)])

    def convert(self, b: Builder, instruction: Instruction, op: Convert, pair: Pair | None) -> None:
        element = part_of(op.element)
        if pair is None:
            re = b.convert(self.plain(instruction.operands[0]), element)
            self.pairs[instruction] = (re, b.full_like(re, 0))
        elif op.element.is_complex:
            self.pairs[instruction] = (b.convert(pair[0], element), b.convert(pair[1], element))
        else:
            self.real[instruction] = b.convert(pair[0], element)

    def listed(self, b: Builder, instruction: Instruction, pairs: Sequence[Pair | None]) -> None:
        """A complex operand becomes two operands, and a complex parameter of the computation two parameters."""
        op = instruction.op
        (inner,) = op.computations
        split = split_scalars(inner, alternating=isinstance(op, Sort))
        field = "comparator" if isinstance(op, Sort) else "to_apply"
        operands: list[Instruction] = []
        for operand, pair in zip(instruction.operands, pairs, strict=True):
            operands += [self.plain(operand)] if pair is None else pair
        result = b.emit(replace(op, **{field: split}), *operands)
        single = isinstance(instruction.type, TensorType)
        types = (instruction.type,) if isinstance(instruction.type, TensorType) else instruction.type.elements
        leaves: list[Instruction | Pair] = []
        parts = (
            [result]
            if isinstance(result.type, TensorType)
            else [b.get_tuple_element(result, k) for k in range(len(result.type.elements))]
        )
        at = iter(parts)
        for type in types:
            leaves.append((next(at), next(at)) if is_complex(type) else next(at))
        if not single:
            self.lists[instruction] = leaves
        elif isinstance(leaves[0], tuple):
            self.pairs[instruction] = leaves[0]
        else:
            self.real[instruction] = leaves[0]


def _contraction(b: Builder, op: Dot | Convolution, x: Pair, y: Pair) -> Pair:
    real = replace(op, element=part_of(op.element))
    re = b.subtract(b.emit(real, x[0], y[0]), b.emit(real, x[1], y[1]))
    return re, b.add(b.emit(real, x[0], y[1]), b.emit(real, x[1], y[0]))


def split_scalars(computation: Computation, alternating: bool) -> Computation:
    """The computation with two parameters for each complex one, and two results for each complex result.

    A sort's comparator has its parameters in (left, right) couples, one couple for each operand (`alternating`).
    """
    b = Builder(f"{computation.name}_of_parts")
    splitter = _Splitter()
    groups = 2 if alternating else 1
    parameters = computation.parameters
    for start in range(0, len(parameters), groups):
        group = parameters[start : start + groups]
        if not is_complex(group[0].type):
            for parameter in group:
                splitter.real[parameter] = b.parameter(parameter.type)
            continue
        part = TensorType(part_of(group[0].tensor_type.element))
        made = [[b.parameter(part) for _ in group] for _ in range(2)]
        for k, parameter in enumerate(group):
            splitter.pairs[parameter] = (made[0][k], made[1][k])
    results: list[Instruction] = []
    for instruction in computation.instructions():
        if instruction in splitter.pairs or instruction in splitter.real or isinstance(instruction.op, Tuple):
            continue
        if is_complex(instruction.type) or any(is_complex(o.type) for o in instruction.operands):
            splitter.split(b, instruction)
        else:
            operands = [splitter.plain(o) for o in instruction.operands]
            splitter.real[instruction] = b.emit(instruction.op, *operands)
    root = computation.root
    for leaf in root.operands if isinstance(root.op, Tuple) else (root,):
        results += splitter.pairs[leaf] if is_complex(leaf.type) else (splitter.plain(leaf),)
    return b.build(results[0] if len(results) == 1 else b.tuple(*results))


def _refusal(instruction: Instruction) -> Problem:
    cause = f"{instruction.op.opcode} of complex numbers is not supported"
    return Problem(UnsupportedOpError, cause, instruction.source, hint="compute with real and imaginary parts instead")
