"""What a sweep carries for a reduction from vector to vector, and what that comes to in the end.

The pieces of a plain reduction (`combine_each`, `neutral`, `with_inits`) are also those of the schedules of GPUs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from onnxla.codegen.kernels import storage
from onnxla.codegen.kernels.ir import Value
from onnxla.codegen.kernels.math.parts import integer_of
from onnxla.codegen.kernels.value import ValueEmitter
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.reduction import Reduce, identity_of, simple_combiner
from onnxla.hlo.ops.structural import Constant


@dataclass(frozen=True)
class Accumulation:
    """A reduction whose results so far are what is carried."""

    reduction: Instruction

    def start(self, e: ValueEmitter) -> list[Value]:
        return neutral(e, self.reduction)

    def step(self, e: ValueEmitter, carried: Sequence[Value], values: Sequence[Value]) -> list[Value]:
        """What is carried after one more element of each operand."""
        return _combine(e, self.reduction, carried, values)

    def merge(self, e: ValueEmitter, x: Sequence[Value], y: Sequence[Value]) -> list[Value]:
        """What is carried after the elements of both."""
        return _combine(e, self.reduction, x, y)

    def results(self, e: ValueEmitter, carried: Sequence[Value]) -> list[Value]:
        return list(carried)


@dataclass(frozen=True)
class ExtremeAccumulation(Accumulation):
    """The largest or smallest float, and the largest bits without sign, which are above those of infinity for NaN.

    Whether one of many is NaN is asked once, so that each costs a maximum of floats and one of integers and neither
    waits for a comparison.
    """

    opcode: str

    def start(self, e: ValueEmitter) -> list[Value]:
        (extreme,) = neutral(e, self.reduction)
        return [extreme, e.b.const(0, integer_of(extreme.element)[0])]

    def step(self, e: ValueEmitter, carried: Sequence[Value], values: Sequence[Value]) -> list[Value]:
        b, (x,) = e.b, values
        integer = carried[1].element
        bits = b.and_(b.bitcast(x, integer), b.const(np.iinfo(integer.dtype).max, integer))
        return [b.binary(self.opcode, carried[0], x), b.max(carried[1], bits)]

    def merge(self, e: ValueEmitter, x: Sequence[Value], y: Sequence[Value]) -> list[Value]:
        return [e.b.binary(self.opcode, x[0], y[0]), e.b.max(x[1], y[1])]

    def results(self, e: ValueEmitter, carried: Sequence[Value]) -> list[Value]:
        b, (extreme, bits) = e.b, carried
        infinity = b.bitcast(b.const(np.inf, extreme.element), bits.element)
        return [b.select(b.compare("GT", bits, infinity), b.const(np.nan, extreme.element), extreme)]


def accumulation_of(reduction: Instruction) -> Accumulation:
    assert isinstance(reduction.op, Reduce)
    element = storage.compute_element(reduction.operands[0].tensor_type.element)
    opcode = _EXTREMES.get(simple_combiner(reduction.op.to_apply) or "")
    if opcode and element.is_float:
        return ExtremeAccumulation(reduction, opcode)
    return Accumulation(reduction)


_EXTREMES = {"maximum": "max", "minimum": "min"}


def combine_each(e: ValueEmitter, sweep: Sequence[Instruction], x: Sequence[Value], y: Sequence[Value]) -> list[Value]:
    """Two sets of accumulators of all reductions of a sweep made one."""
    merged: list[Value] = []
    for reduction in sweep:
        count = len(reduction.operands) // 2
        at = slice(len(merged), len(merged) + count)
        merged += _combine(e, reduction, x[at], y[at])
    return merged


def _combine(e: ValueEmitter, reduction: Instruction, x: Sequence[Value], y: Sequence[Value]) -> list[Value]:
    assert isinstance(reduction.op, Reduce)
    return e.combine(reduction.op.to_apply, x, y, reduction.operands[0].tensor_type.element)


def neutral(e: ValueEmitter, reduction: Instruction) -> list[Value]:
    """What accumulators start from: the combiner's identity, or the initial values of a combiner without a name."""
    assert isinstance(reduction.op, Reduce)
    opcode = simple_combiner(reduction.op.to_apply)
    if opcode is None:
        return [e.value(init, ()) for init in reduction.operands[len(reduction.operands) // 2 :]]
    element = reduction.operands[0].tensor_type.element
    return [e.literal(identity_of(opcode, element).astype(storage.compute_element(element).dtype), element)]


def with_inits(e: ValueEmitter, sweep: Sequence[Instruction], total: Sequence[Value]) -> list[list[Value]]:
    """Initial values joined in, and each result rounded to its type."""
    results: list[list[Value]] = []
    done = 0
    for reduction in sweep:
        assert isinstance(reduction.op, Reduce)
        count = len(reduction.operands) // 2
        values = list(total[done : done + count])
        done += count
        if simple_combiner(reduction.op.to_apply) is not None and not _starts_neutral(reduction):
            values = _combine(e, reduction, values, [e.value(reduction.operands[1], ())])
        kinds = [o.tensor_type.element for o in reduction.operands[:count]]
        results.append([storage.round_to(e.b, v, kind) for v, kind in zip(values, kinds, strict=True)])
    return results


def _starts_neutral(reduction: Instruction) -> bool:
    assert isinstance(reduction.op, Reduce)
    init = reduction.operands[1]
    opcode = simple_combiner(reduction.op.to_apply)
    if opcode is None or not isinstance(init.op, Constant):
        return False
    return init.op.literal.array.tobytes() == identity_of(opcode, init.tensor_type.element).tobytes()
