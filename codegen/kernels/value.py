"""The value of an HLO instruction at an index: the only place that knows what an HLO op computes.

`ValueEmitter.value(instruction, index)` emits, through the whole fusion, what one instruction is at
one index, and gives a scalar, or a vector where the index differs from lane to lane. Data movement
becomes substitution in index expressions (`movement`); arithmetic goes to `elementwise`; reductions,
windows and contractions become loops around their operands' values (`sums`). Schedules decide which indices are asked
for, in which loops, and where results are stored.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

from onnxla.codegen.kernels import elementwise, storage
from onnxla.codegen.kernels import index as ix
from onnxla.codegen.kernels.builder import KernelBuilder
from onnxla.codegen.kernels.index import Expr, Variable
from onnxla.codegen.kernels.ir import Buffer, Value
from onnxla.errors import InternalError
from onnxla.hlo.module import Computation, Instruction
from onnxla.hlo.op import Op
from onnxla.hlo.ops import reduction
from onnxla.hlo.types import PRED, U32, ElementType, TensorType

Index: TypeAlias = tuple[Expr, ...]
Emitted: TypeAlias = Value | list[Value]
"""A value, or one for each leaf of a tuple."""


@dataclass(frozen=True)
class Array:
    """A leaf instruction that lies in memory, dense and row-major."""

    buffer: Buffer
    type: TensorType


Leaf: TypeAlias = Array | Callable[[Index], Emitted]
"""How the value of a leaf is had: from memory, or from registers that a schedule already holds."""


Rule: TypeAlias = "Callable[[ValueEmitter, Instruction, Index], Emitted]"
"""What one kind of operation is at an index."""


class ValueEmitter:
    """Emits values into a kernel under construction, by the `rules` of each operation.

    `leaves` gives the instructions whose values are at hand. `lane` is the variable that counts the
    lanes of a vector; while it is None everything is scalar.
    """

    def __init__(self, b: KernelBuilder, leaves: dict[Instruction, Leaf], rules: Mapping[type[Op], Rule]) -> None:
        self.b = b
        self.leaves = leaves
        self.rules = rules
        self.lane: Variable | None = None
        self.lanes = 1
        self.bound: dict[Variable, Value] = {}
        self.mask: Value | None = None
        """Lanes whose loads are allowed; None for all."""
        self._speculative = False
        self._record: list[tuple[Buffer | None, Expr]] | None = None
        self._memo: list[dict[tuple[Instruction, Index, int], Emitted]] = [{}]

    # Variables and scopes

    def bind(self, name: str, value: Value, low: int, high: int) -> Expr:
        """An index expression for a kernel value known to lie in [low, high]."""
        if low == high:
            return ix.constant(low)
        variable = Variable(name, low, high, value.lanes > 1)
        self.bound[variable] = value
        return ix.of(variable)

    @contextmanager
    def vector(self, lanes: int, active: int | None = None) -> Iterator[Expr]:
        """Inside, the yielded expression counts lanes 0..lanes-1, and everything that depends on it is a vector.

        With `active` below `lanes`, the lanes from there on touch no memory: `mask` is false for them.
        """
        outer = (self.lane, self.lanes, self.mask)
        active = lanes if active is None else active
        self.lane, self.lanes = Variable("lane", 0, active - 1, True), lanes
        self.mask = None if active == lanes else self.b.compare("LT", self.b.step(lanes), self.b.const(active))
        self.bound[self.lane] = self.b.step(lanes)
        with self.scope():
            yield Expr(((self.lane, 1),))
        self.lane, self.lanes, self.mask = outer

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Values made inside belong to a block that is about to close, and are not reused after it."""
        self._memo.append({})
        try:
            yield
        finally:
            self._memo.pop()

    @contextmanager
    def loop(self, name: str, size: int, carry: Sequence[Value] = ()) -> Iterator[tuple[Expr, "LoopHandle"]]:
        """A loop over range(size) whose counter is an index expression; one round only is no loop at all."""
        if size == 1:
            handle = LoopHandle(list(carry), [])
            with self.scope():
                yield ix.ZERO, handle
            handle.results += handle.next
            return
        with self.b.loop(0, size, carry=carry) as loop, self.scope():
            handle = LoopHandle(list(loop.carried), loop.results)
            yield self.bind(name, loop.index, 0, size - 1), handle
            loop.yield_(*handle.next)

    @contextmanager
    def recording(self) -> Iterator[list[tuple[Buffer | None, Expr]]]:
        """Inside, every expression turned into a position is noted, with its buffer where one is read."""
        self._record = []
        yield self._record
        self._record = None

    # Index arithmetic in registers

    def position(self, expr: Expr) -> Value:
        """The expression as an INDEX value."""
        b = self.b
        if self._record is not None:
            self._record.append((None, expr))
        # what is known furthest out is summed first, and the constant last: an address is then
        # a loop-invariant part, the counters, and a displacement
        parts = [self._atom(atom, coefficient) for atom, coefficient in expr.terms]
        parts.sort(key=lambda part: (part.lanes, part.level))
        total = b.const(0)
        for part in parts:
            total = b.add(total, part)
        return b.add(total, b.const(expr.constant))

    def _per_lane(self, atom: ix.Atom) -> bool:
        return atom.per_lane if isinstance(atom, Variable) else atom.operand.per_lane

    def _atom(self, atom: ix.Atom, coefficient: int) -> Value:
        b = self.b
        if isinstance(atom, Variable):
            return b.mul(self.bound[atom], b.const(coefficient))
        operand = self.position(atom.operand)
        shift = 0
        if atom.operand.low < 0:
            # truncating division becomes floor division once the operand is shifted to be positive
            shift = -(atom.operand.low // atom.divisor)
            operand = b.add(operand, b.const(shift * atom.divisor))
        kept = operand.element
        if operand.lanes > 1 and atom.operand.high + shift * atom.divisor < 1 << 31:
            operand = b.convert(operand, U32)  # vectors divide by constants far better in 32 bits
        divisor = b.const(atom.divisor, operand.element)
        if isinstance(atom, ix.Mod):
            return b.mul(b.convert(b.binary("rem", operand, divisor), kept), b.const(coefficient))
        quotient = b.convert(b.div(operand, divisor), kept)
        return b.mul(b.sub(quotient, b.const(shift)), b.const(coefficient))

    def inside(self, expr: Expr, low: int, high: int) -> Value:
        """Whether low <= expr < high, a constant where the ranges already say so."""
        b = self.b
        if expr.low >= low and expr.high < high:
            return b.const(True, PRED)
        if expr.high < low or expr.low >= high:
            return b.const(False, PRED)
        at = self.position(expr)
        above = b.const(True, PRED) if expr.low >= low else b.compare("GE", at, b.const(low))
        below = b.const(True, PRED) if expr.high < high else b.compare("LT", at, b.const(high))
        return b.and_(above, below)

    def choose(
        self,
        condition: Value,
        on_true: Callable[[], Sequence[Value]],
        on_false: Callable[[], Sequence[Value]],
        lanes: int,
    ) -> list[Value]:
        """on_true() where the condition holds, else on_false(), as vectors of `lanes`.

        Memory is touched only on the side that is taken.
        """
        b = self.b
        if condition.is_constant:
            return list(on_true() if condition.attributes[0] else on_false())
        if condition.lanes > 1:
            with self._masked(condition):
                yes = on_true()
            with self._masked(b.not_(condition)):
                no = on_false()
            return [b.select(condition, y, n) for y, n in zip(yes, no, strict=True)]
        with b.if_(condition) as branch:
            for side, emit in ((branch.then, on_true), (branch.otherwise, on_false)):
                with side(), self.scope():
                    branch.yield_(*(b.splat(v, lanes) for v in emit()))
        return list(branch.results)

    @contextmanager
    def _masked(self, condition: Value) -> Iterator[None]:
        outer = (self.mask, self._speculative)
        self.mask = condition if self.mask is None else self.b.and_(self.mask, condition)
        self._speculative = True
        with self.scope():
            yield
        self.mask, self._speculative = outer

    # Values

    def value(self, instruction: Instruction, index: Index) -> Value:
        """One tensor instruction at an index, in the compute type of its element type."""
        emitted = self.emitted(instruction, index)
        if isinstance(emitted, list):
            raise InternalError(f"{instruction} is a tuple where one value was wanted")
        return emitted

    def emitted(self, instruction: Instruction, index: Index) -> Emitted:
        """Like `value`, with a list for an instruction that gives a tuple."""
        key = (instruction, index, id(self.mask) if self._speculative else 0)
        for memo in reversed(self._memo):
            if key in memo:
                return memo[key]
        result = self._emit(instruction, index)
        self._memo[-1][key] = result
        return result

    def _emit(self, instruction: Instruction, index: Index) -> Emitted:
        leaf = self.leaves.get(instruction)
        if isinstance(leaf, Array):
            return self.load(leaf, index)
        if leaf is not None:
            return leaf(index)
        op = instruction.op
        rule = self.rules.get(type(op))
        if rule is not None:
            return rule(self, instruction, index)
        if not elementwise.is_elementwise(op.opcode):
            raise InternalError(f"no kernel computes {op.opcode} at an index")
        return self.elementwise(instruction, index)

    def elementwise(self, instruction: Instruction, index: Index) -> Value:
        """An elementwise instruction from its operands at the same index."""
        operands = []
        for operand in instruction.operands:
            scalar = operand.tensor_type.rank == 0 and instruction.tensor_type.rank > 0
            operands.append(self.value(operand, () if scalar else index))
        source = instruction.operands[-1].tensor_type.element
        result = elementwise.emit(self.b, instruction.op, source, operands)
        return storage.round_to(self.b, result, instruction.tensor_type.element)

    def load(self, array: Array, index: Index) -> Value:
        """Read memory: a scalar, consecutive lanes, or a gather, whichever the index expression needs."""
        b, buffer = self.b, array.buffer
        at = ix.linearize(index, array.type.shape)
        size = array.type.size
        if self._record is not None:
            self._record.append((buffer, at))
        if not at.per_lane:
            position = self.position(at)
            if self._speculative and (at.low < 0 or at.high >= size):
                position = b.max(b.min(position, b.const(max(size - 1, 0))), b.const(0))
            raw = b.load(buffer, position)
        elif self.lane is not None and self._only_lane(at) and at.coefficient(self.lane) == 1:
            start = at.substitute({self.lane: ix.ZERO})
            raw = b.load(buffer, self.position(start), self.lanes, self.mask)
        elif self.lane is not None and self._only_lane(at) and at.coefficient(self.lane) == -1 and self.mask is None:
            start = at.substitute({self.lane: ix.constant(self.lanes - 1)})
            forward = b.load(buffer, self.position(start), self.lanes)
            raw = b.shuffle(forward, forward, range(self.lanes - 1, -1, -1))
        else:
            raw = b.load(buffer, self.position(at), self.lanes, self.mask)
        return storage.decode(b, raw, array.type.element)

    def _only_lane(self, at: Expr) -> bool:
        """Whether the lane number is all that differs between lanes, and linearly."""
        assert self.lane is not None
        return at.coefficient(self.lane) is not None and all(
            a is self.lane or not self._per_lane(a) for a, _ in at.terms
        )

    def splat(self, value: Value) -> Value:
        return self.b.splat(value, self.lanes)

    def width(self, index: Index) -> int:
        """How many lanes a value at this index has."""
        return self.lanes if any(i.per_lane for i in index) else 1

    def literal(self, number: object, element: ElementType) -> Value:
        """A constant in compute form."""
        return self.b.const(number, storage.compute_element(element))

    # Scalar computations

    def apply(self, computation: Computation, arguments: Sequence[Value]) -> list[Value]:
        """A computation of scalars, inlined: the values of its root's leaves."""
        outer = self.leaves
        self.leaves = dict(outer)
        for parameter, argument in zip(computation.parameters, arguments, strict=True):
            self.leaves[parameter] = _constantly(argument)
        with self.scope():
            result = self.emitted(computation.root, ())
        self.leaves = outer
        return result if isinstance(result, list) else [result]

    def combine(
        self, computation: Computation, accumulated: Sequence[Value], values: Sequence[Value], element: ElementType
    ) -> list[Value]:
        """One step of a reduction. A plain sum of narrow floats stays in the compute type, unrounded."""
        opcode = reduction.simple_combiner(computation)
        if opcode is not None:
            operand_element = computation.parameters[0].tensor_type.element
            combined = elementwise.emit(self.b, computation.root.op, operand_element, [accumulated[0], values[0]])
            return [storage.wrap(self.b, combined, element)]
        return self.apply(computation, [*accumulated, *values])


def _constantly(value: Value) -> Callable[[Index], Value]:
    return lambda index: value


@dataclass
class LoopHandle:
    """The carried values of a loop under construction: read `carried`, set `next`, then read `results`."""

    carried: list[Value]
    results: list[Value]
    next: Sequence[Value] = ()
