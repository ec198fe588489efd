"""How many rounds a loop has, where numbers in the program alone decide it: counters, and limits that are constants.

A GPU can then be asked for all rounds at once, and the host need not learn after each whether there is another one.
Only what the condition needs is computed, here, round by round.
"""

from collections.abc import Callable

import numpy as np

from onnxla.hlo.module import Computation, Instruction
from onnxla.hlo.ops.control_flow import Fusion, While
from onnxla.hlo.ops.elementwise import BitcastConvert, Elementwise
from onnxla.hlo.ops.shape import Broadcast, Reshape, Slice
from onnxla.hlo.ops.structural import Constant, GetTupleElement, Parameter, Tuple
from onnxla.hlo.types import Array, TensorType

MOST_ROUNDS = 4096
LARGEST = 16
"""Elements of a tensor that may be a counter."""

_Given = Callable[[int], Array]
"""The value of an element of a computation's one parameter, a tuple."""


class _Unknown(Exception):
    """Data decide it, or it is more than counting."""


def rounds_of(loop: Instruction) -> int | None:
    """How many times the body runs; None where data decide that, or it is more than MOST_ROUNDS."""
    op, (init,) = loop.op, loop.operands
    assert isinstance(op, While)
    if not isinstance(init.op, Tuple) or not isinstance(op.body.root.op, Tuple):
        return None
    try:
        return _count(op, init.operands)
    except _Unknown:
        return None


def _count(op: While, inits: tuple[Instruction, ...]) -> int:
    state: dict[int, Array] = {}

    def given(element: int) -> Array:
        # elements that the condition or a counter needs show when it is first computed, in round 0
        if element not in state:
            state[element] = _Numbers(_nothing).of(inits[element])
        return state[element]

    for rounds in range(MOST_ROUNDS + 1):
        if not _Numbers(given).of(op.condition.root):
            return rounds
        numbers, after, waiting = _Numbers(given), {}, list(state)
        while waiting:
            element = waiting.pop()
            if element not in after:
                after[element] = numbers.of(op.body.root.operands[element])
                waiting += [k for k in state if k not in after]
        state.update(after)
    raise _Unknown


def _nothing(element: int) -> Array:
    raise _Unknown


class _Numbers:
    """Small values inside a computation, from the elements of its parameter."""

    def __init__(self, given: _Given) -> None:
        self.given = given
        self.known: dict[Instruction, Array] = {}

    def of(self, value: Instruction) -> Array:
        if value not in self.known:
            self.known[value] = self._computed(value)
        return self.known[value]

    def _computed(self, value: Instruction) -> Array:
        op = value.op
        if not isinstance(value.type, TensorType) or value.type.size > LARGEST:
            raise _Unknown
        if isinstance(op, Constant):
            return op.literal.array
        if isinstance(op, GetTupleElement):
            return self._element(value.operands[0], op.index)
        if isinstance(op, Fusion):
            return self._inside(value, op.calls, op.calls.root)
        if isinstance(op, Elementwise | BitcastConvert | Broadcast | Reshape | Slice):
            with np.errstate(all="ignore"):
                return np.asarray(op.evaluate(*map(self.of, value.operands)))
        raise _Unknown

    def _element(self, whole: Instruction, index: int) -> Array:
        op = whole.op
        if isinstance(op, Parameter):
            return self.given(index)
        if isinstance(op, Tuple):
            return self.of(whole.operands[index])
        if isinstance(op, Fusion) and isinstance(op.calls.root.op, Tuple):
            return self._inside(whole, op.calls, op.calls.root.operands[index])
        raise _Unknown

    def _inside(self, fusion: Instruction, body: Computation, root: Instruction) -> Array:
        """A value in a fusion, whose parameters are computed as they are needed."""
        return _InFusion(self, dict(zip(body.parameters, fusion.operands, strict=True))).of(root)


class _InFusion(_Numbers):
    def __init__(self, outside: _Numbers, operands: dict[Instruction, Instruction]) -> None:
        super().__init__(_nothing)
        self.outside, self.operands = outside, operands

    def _computed(self, value: Instruction) -> Array:
        operand = self.operands.get(value)
        return super()._computed(value) if operand is None else self.outside.of(operand)
