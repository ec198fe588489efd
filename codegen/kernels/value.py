"""The value of an HLO instruction at an index: the only place that knows what an HLO op computes.

`ValueEmitter.value(instruction, index)` emits, through the whole fusion, what one instruction is at
one index, and gives a scalar, or a vector where the index differs from lane to lane. Data movement
becomes substitution in index expressions; arithmetic goes to `elementwise`; reductions, windows and
contractions become loops around their operands' values. Schedules decide which indices are asked
for, in which loops, and where results are stored.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

from onnxla.codegen.kernels import elementwise, storage
from onnxla.codegen.kernels import index as ix
from onnxla.codegen.kernels.builder import KernelBuilder
from onnxla.codegen.kernels.index import Expr, Variable
from onnxla.codegen.kernels.ir import INDEX, Buffer, Value
from onnxla.errors import InternalError
from onnxla.hlo.module import Computation, Instruction
from onnxla.hlo.ops import contraction, control_flow, indexing, reduction, structural
from onnxla.hlo.ops import shape as shape_ops
from onnxla.hlo.types import PRED, U32, ElementType, Shape, TensorType

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


class ValueEmitter:
    """Emits values into a kernel under construction.

    `leaves` gives the instructions whose values are at hand. `lane` is the variable that counts the
    lanes of a vector; while it is None everything is scalar.
    """

    def __init__(self, b: KernelBuilder, leaves: dict[Instruction, Leaf]) -> None:
        self.b = b
        self.leaves = leaves
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
        rule = _RULES.get(type(op))
        if rule is not None:
            return rule(self, instruction, index)
        if not elementwise.is_elementwise(op.opcode):
            raise InternalError(f"no kernel computes {op.opcode} at an index")
        operands = []
        for operand in instruction.operands:
            scalar = operand.tensor_type.rank == 0 and instruction.tensor_type.rank > 0
            operands.append(self.value(operand, () if scalar else index))
        source = instruction.operands[-1].tensor_type.element
        result = elementwise.emit(self.b, op, source, operands)
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


# Structure and data movement


def _constant(e: ValueEmitter, instruction: Instruction, index: Index) -> Value:
    op = instruction.op
    assert isinstance(op, structural.Constant)
    array, element = op.literal.array, op.literal.type.element
    if array.size == 1:
        wide = array.astype(storage.compute_element(element).dtype)
        return e.b.const(wide.reshape(())[()], storage.compute_element(element))
    if all(i.is_constant for i in index):
        return e.literal(array[tuple(i.constant for i in index)], element)
    raise InternalError(f"a constant of {array.size} elements must be an operand of its fusion")


def _iota(e: ValueEmitter, instruction: Instruction, index: Index) -> Value:
    op = instruction.op
    assert isinstance(op, structural.Iota)
    element = op.type.element
    counted = e.position(index[op.dimension])
    if counted.lanes > 1 or not counted.is_constant:
        return storage.round_to(e.b, e.b.convert(counted, storage.compute_element(element)), element)
    return e.literal(counted.attributes[0], element)


def _tuple(e: ValueEmitter, instruction: Instruction, index: Index) -> list[Value]:
    return [e.value(o, index) for o in instruction.operands]


def _get_tuple_element(e: ValueEmitter, instruction: Instruction, index: Index) -> Emitted:
    op, (operand,) = instruction.op, instruction.operands
    assert isinstance(op, structural.GetTupleElement)
    if isinstance(operand.op, structural.Tuple):
        return e.emitted(operand.operands[op.index], index)
    return e.emitted(operand, index)[op.index]  # type: ignore[index]  # a tuple-typed operand emits a list


def _broadcast(e: ValueEmitter, instruction: Instruction, index: Index) -> Value:
    op = instruction.op
    assert isinstance(op, shape_ops.Broadcast)
    return e.value(instruction.operands[0], tuple(index[d] for d in op.dimensions))


def _reshape(e: ValueEmitter, instruction: Instruction, index: Index) -> Value:
    (operand,) = instruction.operands
    return e.value(operand, ix.reshape(index, instruction.shape, operand.shape))


def _transpose(e: ValueEmitter, instruction: Instruction, index: Index) -> Value:
    op = instruction.op
    assert isinstance(op, shape_ops.Transpose)
    source: list[Expr] = [ix.ZERO] * len(index)
    for position, dimension in enumerate(op.permutation):
        source[dimension] = index[position]
    return e.value(instruction.operands[0], tuple(source))


def _reverse(e: ValueEmitter, instruction: Instruction, index: Index) -> Value:
    op = instruction.op
    assert isinstance(op, shape_ops.Reverse)
    shape = instruction.shape
    source = tuple(i * -1 + (shape[d] - 1) if d in op.dimensions else i for d, i in enumerate(index))
    return e.value(instruction.operands[0], source)


def _slice(e: ValueEmitter, instruction: Instruction, index: Index) -> Value:
    op = instruction.op
    assert isinstance(op, shape_ops.Slice)
    source = tuple(i * step + start for i, start, step in zip(index, op.starts, op.strides, strict=True))
    return e.value(instruction.operands[0], source)


def _concatenate(e: ValueEmitter, instruction: Instruction, index: Index) -> Value:
    op = instruction.op
    assert isinstance(op, shape_ops.Concatenate)
    dimension = op.dimension
    at = index[dimension]
    pieces = []
    start = 0
    for operand in instruction.operands:
        size = operand.shape[dimension]
        if size and at.high >= start and at.low < start + size:
            pieces.append((operand, start, start + size))
        start += size

    lanes = e.width(index)

    def pick(pieces: list[tuple[Instruction, int, int]]) -> list[Value]:
        """Halve the pieces: a lookup in logarithmic depth."""
        if len(pieces) == 1:
            operand, first, _ = pieces[0]
            source = (*index[:dimension], at - first, *index[dimension + 1 :])
            return [e.value(operand, source)]
        middle = len(pieces) // 2
        left, right = pieces[:middle], pieces[middle:]
        return e.choose(e.inside(at, left[0][1], right[0][1]), lambda: pick(left), lambda: pick(right), lanes)

    return pick(pieces)[0]


def _pad(e: ValueEmitter, instruction: Instruction, index: Index) -> Value:
    op, (operand, padding) = instruction.op, instruction.operands
    assert isinstance(op, shape_ops.Pad)
    present = e.b.const(True, PRED)
    source = []
    for i, size, low, interior in zip(index, operand.shape, op.low, op.interior, strict=True):
        moved = i - low
        present = e.b.and_(present, e.inside(moved, 0, size + max(size - 1, 0) * interior))
        if interior:
            present = e.b.and_(present, e.inside(moved % (interior + 1), 0, 1))
        source.append(moved // (interior + 1))
    lanes = e.width(index)
    return e.choose(present, lambda: [e.value(operand, tuple(source))], lambda: [e.value(padding, ())], lanes)[0]


# Data-dependent positions


def clamped_start(e: ValueEmitter, value: Value, last: int, name: str) -> Expr:
    """A start position read from data, clamped to [0, last] as XLA does."""
    b = e.b
    if value.element.is_signed:
        wide = b.convert(value, INDEX)
        return e.bind(name, b.max(b.min(wide, b.const(last)), b.const(0)), 0, last)
    limit = b.const(min(last, (1 << value.element.bits) - 1), value.element)
    return e.bind(name, b.convert(b.min(value, limit), INDEX), 0, last)


def _dynamic_slice(e: ValueEmitter, instruction: Instruction, index: Index) -> Value:
    operand, *starts = instruction.operands
    source = []
    for d, (i, start) in enumerate(zip(index, starts, strict=True)):
        last = operand.shape[d] - instruction.shape[d]
        source.append(i + (clamped_start(e, e.value(start, ()), last, f"start{d}") if last else 0))
    return e.value(operand, tuple(source))


def _dynamic_update_slice(e: ValueEmitter, instruction: Instruction, index: Index) -> Value:
    operand, update, *starts = instruction.operands
    inside = e.b.const(True, PRED)
    source = []
    for d, (i, start) in enumerate(zip(index, starts, strict=True)):
        last = operand.shape[d] - update.shape[d]
        moved = i - clamped_start(e, e.value(start, ()), last, f"start{d}") if last else i
        inside = e.b.and_(inside, e.inside(moved, 0, update.shape[d]))
        source.append(moved)
    lanes = e.width((*index, *source))
    return e.choose(inside, lambda: [e.value(update, tuple(source))], lambda: [e.value(operand, index)], lanes)[0]


def _gather(e: ValueEmitter, instruction: Instruction, index: Index) -> Value:
    op, (operand, indices) = instruction.op, instruction.operands
    assert isinstance(op, indexing.Gather)
    batch = [i for d, i in enumerate(index) if d not in op.offset_dims]
    hidden = (*op.collapsed_slice_dims, *op.operand_batching_dims)
    window = [d for d in range(len(operand.shape)) if d not in hidden]
    source: list[Expr] = [ix.ZERO] * len(operand.shape)
    for dimension, result_dimension in zip(window, op.offset_dims, strict=True):
        source[dimension] = index[result_dimension]

    def batch_at(indices_dimension: int) -> Expr:
        return batch[indices_dimension - (indices_dimension > op.index_vector_dim)]

    for dimension, indices_dimension in zip(op.operand_batching_dims, op.start_indices_batching_dims, strict=True):
        source[dimension] = batch_at(indices_dimension)
    for component, dimension in enumerate(op.start_index_map):
        at = list(batch)
        if op.index_vector_dim < len(indices.shape):
            at.insert(op.index_vector_dim, ix.constant(component))
        last = operand.shape[dimension] - op.slice_sizes[dimension]
        if last:
            start = clamped_start(e, e.value(indices, tuple(at)), last, f"gather{dimension}")
            source[dimension] = source[dimension] + start
    return e.value(operand, tuple(source))


# Reductions


def _reduce(e: ValueEmitter, instruction: Instruction, index: Index) -> Emitted:
    op = instruction.op
    assert isinstance(op, reduction.Reduce)
    count = len(instruction.operands) // 2
    operands, inits = instruction.operands[:count], instruction.operands[count:]
    shape = operands[0].shape
    dimensions = [d for d in range(len(shape)) if d in op.dimensions]
    start = _initial(e, inits, index)
    if any(shape[d] == 0 for d in dimensions):
        return _finished(e, start, operands, instruction)

    def body(inner: dict[int, Expr], accumulated: Sequence[Value]) -> list[Value]:
        outer = iter(index)
        at = tuple(inner[d] if d in inner else next(outer) for d in range(len(shape)))
        values = [e.value(o, at) for o in operands]
        return e.combine(op.to_apply, accumulated, values, operands[0].tensor_type.element)

    result = accumulate(e, [(d, shape[d]) for d in dimensions], start, body)
    return _finished(e, result, operands, instruction)


def _initial(e: ValueEmitter, inits: Sequence[Instruction], index: Index) -> list[Value]:
    values = [e.value(init, ()) for init in inits]
    return [e.b.splat(v, e.width(index)) for v in values]


def _finished(
    e: ValueEmitter, values: Sequence[Value], operands: Sequence[Instruction], instruction: Instruction
) -> Emitted:
    rounded = [storage.round_to(e.b, v, o.tensor_type.element) for v, o in zip(values, operands, strict=True)]
    return rounded[0] if isinstance(instruction.type, TensorType) else rounded


def accumulate(
    e: ValueEmitter,
    dimensions: Sequence[tuple[int, int]],
    start: Sequence[Value],
    body: Callable[[dict[int, Expr], Sequence[Value]], Sequence[Value]],
) -> list[Value]:
    """Nested loops over (dimension, size) pairs that carry values through `body(index by dimension, carried)`."""

    def nest(level: int, inner: dict[int, Expr], carried: Sequence[Value]) -> list[Value]:
        if level == len(dimensions):
            return [e.b.splat(v, c.lanes) for v, c in zip(body(inner, carried), carried, strict=True)]
        dimension, size = dimensions[level]
        if size == 1:
            return nest(level + 1, {**inner, dimension: ix.ZERO}, carried)
        with e.loop(f"r{dimension}", size, carry=carried) as (at, loop):
            loop.next = nest(level + 1, {**inner, dimension: at}, loop.carried)
        return loop.results

    return nest(0, {}, list(start))


def _reduce_window(e: ValueEmitter, instruction: Instruction, index: Index) -> Emitted:
    op = instruction.op
    assert isinstance(op, reduction.ReduceWindow)
    count = len(instruction.operands) // 2
    operands, inits = instruction.operands[:count], instruction.operands[count:]
    shape = operands[0].shape
    element = operands[0].tensor_type.element

    def body(inner: dict[int, Expr], accumulated: Sequence[Value]) -> list[Value]:
        present, at = window_position(e, op.window, index, inner, shape)
        return e.choose(
            present,
            lambda: e.combine(op.to_apply, accumulated, [e.value(o, at) for o in operands], element),
            lambda: accumulated,
            accumulated[0].lanes,
        )

    sizes = [(d, w.size) for d, w in enumerate(op.window.dimensions)]
    return _finished(e, accumulate(e, sizes, _initial(e, inits, index), body), operands, instruction)


def window_position(
    e: ValueEmitter, window: contraction.Window, index: Index, inner: dict[int, Expr], shape: Shape
) -> tuple[Value, Index]:
    """Where a window's element lies in the operand, and whether it is there and not padding."""
    present = e.b.const(True, PRED)
    source = []
    for d, w in enumerate(window.dimensions):
        offset = inner[d] * -1 + (w.size - 1) if w.reversal else inner[d]
        at = index[d] * w.stride + offset * w.window_dilation - w.pad_low
        dilated = max(shape[d] - 1, 0) * w.base_dilation + 1 if shape[d] else 0
        present = e.b.and_(present, e.inside(at, 0, dilated))
        if w.base_dilation > 1:
            present = e.b.and_(present, e.inside(at % w.base_dilation, 0, 1))
        source.append(at // w.base_dilation)
    return present, tuple(source)


# Contractions: plain loops, for element types and shapes that no contraction schedule takes


def _dot(e: ValueEmitter, instruction: Instruction, index: Index) -> Value:
    op, (lhs, rhs) = instruction.op, instruction.operands
    assert isinstance(op, contraction.Dot)
    batch = index[: len(op.lhs_batch)]
    lhs_free = [d for d in range(len(lhs.shape)) if d not in op.lhs_batch and d not in op.lhs_contracting]
    rhs_free = [d for d in range(len(rhs.shape)) if d not in op.rhs_batch and d not in op.rhs_contracting]
    lhs_index = index[len(batch) : len(batch) + len(lhs_free)]
    rhs_index = index[len(batch) + len(lhs_free) :]
    sizes = [(k, lhs.shape[d]) for k, d in enumerate(op.lhs_contracting)]

    def body(inner: dict[int, Expr], accumulated: Sequence[Value]) -> list[Value]:
        def at(batch_dims: Shape, contracting: Shape, free: list[int], free_index: Index, rank: int) -> Index:
            where = dict(zip(batch_dims, batch, strict=True))
            where |= dict(zip(free, free_index, strict=True))
            where |= {d: inner[k] for k, d in enumerate(contracting)}
            return tuple(where[d] for d in range(rank))

        x = e.value(lhs, at(op.lhs_batch, op.lhs_contracting, lhs_free, lhs_index, len(lhs.shape)))
        y = e.value(rhs, at(op.rhs_batch, op.rhs_contracting, rhs_free, rhs_index, len(rhs.shape)))
        return [_multiply_add(e, x, y, lhs, rhs, accumulated[0], op.element)]

    start = [_zero(e, op.element, index)]
    total = start if any(size == 0 for _, size in sizes) else accumulate(e, sizes, start, body)
    return storage.round_to(e.b, total[0], op.element)


def _zero(e: ValueEmitter, element: ElementType, index: Index) -> Value:
    return e.b.splat(e.literal(0, element), e.width(index))


def _multiply_add(
    e: ValueEmitter, x: Value, y: Value, lhs: Instruction, rhs: Instruction, total: Value, element: ElementType
) -> Value:
    b = e.b
    x = storage.convert(b, x, lhs.tensor_type.element, element) if x.element is not total.element else x
    y = storage.convert(b, y, rhs.tensor_type.element, element) if y.element is not total.element else y
    if total.element.is_float:
        return b.fma(x, y, total)
    if total.element is PRED:
        return b.or_(b.and_(x, y), total)
    return storage.wrap(b, b.add(b.mul(x, y), total), element)


def _convolution(e: ValueEmitter, instruction: Instruction, index: Index) -> Value:
    op, (lhs, rhs) = instruction.op, instruction.operands
    assert isinstance(op, contraction.Convolution)
    dims = op.dimensions
    batch, feature = index[dims.output_batch], index[dims.output_feature]
    spatial = tuple(index[d] for d in dims.output_spatial)
    in_features = rhs.shape[dims.kernel_input_feature]
    out_features = rhs.shape[dims.kernel_output_feature]
    group = feature // (out_features // op.feature_group_count)
    if op.batch_group_count > 1:
        group_batch = lhs.shape[dims.input_batch] // op.batch_group_count
        batch = batch + (feature // (out_features // op.batch_group_count)) * group_batch
    shape = tuple(lhs.shape[d] for d in dims.input_spatial)
    rank = len(shape)
    sizes = [(d, w.size) for d, w in enumerate(op.window.dimensions)] + [(rank, in_features)]

    def body(inner: dict[int, Expr], accumulated: Sequence[Value]) -> list[Value]:
        present, at = window_position(e, op.window, spatial, inner, shape)

        def product() -> list[Value]:
            left = {dims.input_batch: batch, dims.input_feature: group * in_features + inner[rank]}
            left |= dict(zip(dims.input_spatial, at, strict=True))
            right = {dims.kernel_input_feature: inner[rank], dims.kernel_output_feature: feature}
            right |= {d: inner[k] for k, d in enumerate(dims.kernel_spatial)}
            x = e.value(lhs, tuple(left[d] for d in range(rank + 2)))
            y = e.value(rhs, tuple(right[d] for d in range(rank + 2)))
            return [_multiply_add(e, x, y, lhs, rhs, accumulated[0], op.element)]

        return e.choose(present, product, lambda: accumulated, accumulated[0].lanes)

    total = accumulate(e, sizes, [_zero(e, op.element, index)], body)
    return storage.round_to(e.b, total[0], op.element)


# Calls


def _call(e: ValueEmitter, instruction: Instruction, index: Index) -> Emitted:
    """The callee's root, with its parameters standing for the operands at whatever index it asks."""
    (callee,) = instruction.op.computations
    outer = e.leaves
    e.leaves = dict(outer)
    for parameter, operand in zip(callee.parameters, instruction.operands, strict=True):
        e.leaves[parameter] = _operand(e, operand, outer)
    with e.scope():
        result = e.emitted(callee.root, index)
    e.leaves = outer
    return result


def _operand(e: ValueEmitter, operand: Instruction, leaves: dict[Instruction, Leaf]) -> Callable[[Index], Value]:
    def read(index: Index) -> Value:
        inner, e.leaves = e.leaves, leaves
        result = e.value(operand, index)
        e.leaves = inner
        return result

    return read


def _map(e: ValueEmitter, instruction: Instruction, index: Index) -> Emitted:
    op = instruction.op
    assert isinstance(op, control_flow.Map)
    results = e.apply(op.to_apply, [e.value(o, index) for o in instruction.operands])
    return results[0] if isinstance(instruction.type, TensorType) else results


_RULES: dict[type, Callable[[ValueEmitter, Instruction, Index], Emitted]] = {
    structural.Constant: _constant,
    structural.Iota: _iota,
    structural.Tuple: _tuple,
    structural.GetTupleElement: _get_tuple_element,
    shape_ops.Broadcast: _broadcast,
    shape_ops.Reshape: _reshape,
    shape_ops.Transpose: _transpose,
    shape_ops.Reverse: _reverse,
    shape_ops.Slice: _slice,
    shape_ops.Concatenate: _concatenate,
    shape_ops.Pad: _pad,
    indexing.DynamicSlice: _dynamic_slice,
    indexing.DynamicUpdateSlice: _dynamic_update_slice,
    indexing.Gather: _gather,
    reduction.Reduce: _reduce,
    reduction.ReduceWindow: _reduce_window,
    contraction.Dot: _dot,
    contraction.Convolution: _convolution,
    control_flow.Call: _call,
    control_flow.Fusion: _call,
    control_flow.Map: _map,
}


def can_emit(instruction: Instruction) -> bool:
    """Whether `value` has a rule for the instruction (its operands aside)."""
    return type(instruction.op) in _RULES or elementwise.is_elementwise(instruction.op.opcode)
