"""The values of instructions that depend on constants only, within a budget of bytes and seconds.

The frontend asks for the operands that decide shapes, the folding pass for all that it may replace.
Loops run here and not in `While.evaluate`, so that one that never ends meets the budget. The seconds are those that
the work is guessed to take: a clock would fold more on one day than on another, and equal models make equal code.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from onnxla import watch
from onnxla.errors import HloError
from onnxla.hlo.module import Computation, Instruction
from onnxla.hlo.ops.contraction import Convolution, Dot
from onnxla.hlo.ops.control_flow import Call, Conditional, Fusion, While
from onnxla.hlo.ops.indexing import Scatter, Sort
from onnxla.hlo.ops.reduction import Reduce, ReduceWindow, SelectAndScatter, simple_combiner
from onnxla.hlo.ops.shape import Reshape
from onnxla.hlo.ops.structural import Constant, GetTupleElement, Parameter, Tuple
from onnxla.hlo.types import Array, TensorType, Type, Value

_FAST, _SLOW = 1e8, 1e6
"""Scalar operations a second that an evaluation in numpy does at least: as whole arrays, and element by element."""
_STEP = 1e-5
"""Seconds that any step takes in Python, however small."""


class ConstantEvaluator:
    """Computes constants, each once. What it answered holds while nobody changes the operands of what was asked.

    `max_bytes` bounds the sum of the bytes of all results kept, `max_seconds` the time that all
    questions together are guessed to take. What goes beyond either counts as unknown, and is not tried again.
    """

    def __init__(self, max_bytes: int, max_seconds: float) -> None:
        self.bytes_left = max_bytes
        self.seconds_left = max_seconds
        self._values: dict[Instruction, Value] = {}
        self._constant: set[Instruction] = set()
        self._unknown: set[Instruction] = set()

    def value(self, instruction: Instruction) -> Array | None:
        """What `instruction` always computes; None where it is a tuple, not constant, or beyond the budget.

        A tensor without elements is known, whatever it comes from.
        """
        kind = instruction.type
        if isinstance(kind, TensorType) and not kind.size:
            return np.empty(kind.shape, kind.element.dtype)
        if not isinstance(kind, TensorType) or not self.is_constant(instruction):
            return None
        steps = self._steps_to(instruction)
        for step in steps:
            if not self._evaluate(step):
                self._unknown.add(step)
                self._constant.difference_update(steps)
                return None
        value: Array = self._values[instruction]
        return value

    def is_constant(self, instruction: Instruction) -> bool:
        """Whether it depends on constants only, and was not found to be beyond the budget."""
        stack = [(instruction, False)]
        while stack:
            current, expanded = stack.pop()
            if current in self._unknown or isinstance(current.op, Parameter):
                self._unknown.update(user for user, is_on_path in stack if is_on_path)
                return False
            if expanded:
                self._constant.add(current)
            elif current not in self._constant:
                stack.append((current, True))
                stack += [(operand, False) for operand in _inputs(current)]
        return True

    def _steps_to(self, instruction: Instruction) -> list[Instruction]:
        """What must be evaluated for it, operands first; all of it is constant."""
        order: dict[Instruction, None] = {}
        stack = [(instruction, False)]
        while stack:
            current, expanded = stack.pop()
            if current in order or current in self._values:
                continue
            if expanded:
                order[current] = None
            else:
                stack.append((current, True))
                stack += [(operand, False) for operand in _inputs(current)]
        return list(order)

    def _evaluate(self, instruction: Instruction) -> bool:
        """Compute and keep the value; False where that is beyond the budget, or the operation has no value."""
        run = _Run(self.bytes_left, self.seconds_left)
        try:
            with np.errstate(all="ignore"):
                value = run.instruction(instruction, [self._values[o] for o in _inputs(instruction)])
        except (_OverBudget, HloError, MemoryError):
            return False
        finally:
            self.seconds_left = run.seconds
        self._values[instruction] = value
        if not isinstance(instruction.op, (Constant, Reshape, Tuple, GetTupleElement)):
            self.bytes_left -= _bytes(instruction.type)
        return True


class _OverBudget(Exception):
    """The value cannot be had within the budget."""


class _Run:
    """One evaluation: at most `bytes` for any one result, and work for `seconds`, which it uses up."""

    def __init__(self, bytes: int, seconds: float) -> None:
        self.bytes = bytes
        self.seconds = seconds

    def instruction(self, instruction: Instruction, operands: Sequence[Value]) -> Value:
        op: Any = instruction.op
        self._spend(_STEP)
        match op:
            case While():
                return self._loop(op, operands[0])
            case Conditional():
                index = operands[0]
                number = int(not index) if index.dtype == np.bool_ else int(index)
                number = number if 0 <= number < len(op.branches) else len(op.branches) - 1
                return self._computation(op.branches[number], [operands[1 + number]])
            case Call():
                return self._computation(op.to_apply, operands)
            case Fusion():
                return self._computation(op.calls, operands)
            case GetTupleElement() if isinstance(instruction.operands[0].op, Tuple):
                return operands[0]
        self._afford(instruction)
        return op.evaluate(*operands)

    def _loop(self, op: While, value: Value) -> Value:
        while self._computation(op.condition, [value]):
            self._spend(_STEP)
            value = self._computation(op.body, [value])
        return value

    def _computation(self, computation: Computation, arguments: Sequence[Value]) -> Value:
        values: dict[Instruction, Value] = dict(zip(computation.parameters, arguments, strict=True))
        for instruction in computation.instructions():
            if instruction not in values:
                values[instruction] = self.instruction(instruction, [values[o] for o in _inputs(instruction)])
        return values[computation.root]

    def _afford(self, instruction: Instruction) -> None:
        """Raise _OverBudget where the result is too large, or the work too long for the time that is left."""
        if _bytes(instruction.type) > self.bytes and not isinstance(instruction.op, (Constant, Reshape)):
            raise _OverBudget
        self._spend(_seconds(instruction))

    def _spend(self, seconds: float) -> None:
        watch.check()
        if seconds > self.seconds:
            raise _OverBudget
        self.seconds -= seconds


def _inputs(instruction: Instruction) -> Sequence[Instruction]:
    """The operands that the value depends on: an element of a tuple being made depends on that element only."""
    op = instruction.op
    if isinstance(op, GetTupleElement) and isinstance(instruction.operands[0].op, Tuple):
        return (instruction.operands[0].operands[op.index],)
    return instruction.operands


def _bytes(type: Type) -> int:
    return type.bytes if isinstance(type, TensorType) else sum(map(_bytes, type.elements))


def _elements(type: Type) -> int:
    return type.size if isinstance(type, TensorType) else sum(map(_elements, type.elements))


def _seconds(instruction: Instruction) -> float:
    """A guess, on the safe side, at the time `evaluate` takes."""
    op = instruction.op
    results = _elements(instruction.type)
    work = results + sum(_elements(o.type) for o in instruction.operands)
    match op:
        case Dot():
            work += results * math.prod(instruction.operands[0].shape[d] for d in op.lhs_contracting)
        case Convolution():
            kernel = instruction.operands[1].tensor_type
            work += results * kernel.size // max(1, kernel.shape[op.dimensions.kernel_output_feature])
        case ReduceWindow():
            work += results * math.prod(d.size for d in op.window.dimensions)
        case SelectAndScatter():
            work += instruction.operands[1].tensor_type.size * math.prod(d.size for d in op.window.dimensions)
    slow = isinstance(op, (Scatter, Sort, SelectAndScatter)) or (
        isinstance(op, (Reduce, ReduceWindow)) and simple_combiner(op.to_apply) is None
    )
    return work / (_SLOW if slow else _FAST)
