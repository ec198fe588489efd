"""Emit instructions: every method infers the type and attaches the current source node.

Method names are opcodes with underscores; arguments are the operands, then the attributes in
the order of the operation's fields. Convenience forms (`zeros_like`, `broadcast_scalar`,
`binary`) emit only the primitive operations.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from onnxla.errors import SourceNode
from onnxla.hlo.literal import Literal
from onnxla.hlo.module import Computation, Instruction
from onnxla.hlo.op import OPS, Op
from onnxla.hlo.ops import (
    contraction,
    control_flow,
    elementwise,
    indexing,
    linear_algebra,
    reduction,
    shape,
    structural,
)
from onnxla.hlo.types import PRED, Array, ElementType, Shape, TensorType, Type

Ints = Sequence[int]


class Builder:
    """Appends instructions; one builder serves one computation."""

    def __init__(self, name: str = "main", source: SourceNode | None = None) -> None:
        self.name = name
        self.source = source
        self.parameters: list[Instruction] = []
        self._combiners: dict[tuple[str, ElementType], Computation] = {}

    def emit(self, op: Op, *operands: Instruction, name: str = "") -> Instruction:
        """One instruction. Raises HloError when the operand types do not fit."""
        return Instruction(op, operands, name=name, source=self.source)

    @contextmanager
    def at(self, source: SourceNode | None) -> Iterator[None]:
        """Attach `source` to everything emitted inside."""
        before, self.source = self.source, source
        try:
            yield
        finally:
            self.source = before

    def build(self, root: Instruction) -> Computation:
        """The computation of the parameters made so far with `root` as its result."""
        return Computation(self.name, self.parameters, root)

    # Structure

    def parameter(self, type: Type, name: str = "") -> Instruction:
        parameter = self.emit(structural.Parameter(len(self.parameters), type), name=name)
        self.parameters.append(parameter)
        return parameter

    def constant(self, value: npt.ArrayLike, element: ElementType | None = None, name: str = "") -> Instruction:
        """A constant of `value`; `element` converts it first."""
        array: Array = np.asarray(value) if element is None else np.asarray(value).astype(element.dtype)
        return self.literal(Literal(array, name))

    def literal(self, literal: Literal) -> Instruction:
        return self.emit(structural.Constant(literal), name=literal.name)

    def iota(self, type: TensorType, dimension: int) -> Instruction:
        return self.emit(structural.Iota(type, dimension))

    def tuple(self, *elements: Instruction) -> Instruction:
        return self.emit(structural.Tuple(), *elements)

    def get_tuple_element(self, operand: Instruction, index: int) -> Instruction:
        return self.emit(structural.GetTupleElement(index), operand)

    # Elementwise

    def unary(self, opcode: str, operand: Instruction) -> Instruction:
        """An attribute-free unary operation by opcode: `negate`, `exponential`, `erf`, ..."""
        return self.emit(OPS[opcode](), operand)

    def binary(self, opcode: str, lhs: Instruction, rhs: Instruction) -> Instruction:
        """An attribute-free binary operation by opcode: `add`, `maximum`, `shift-left`, ..."""
        return self.emit(OPS[opcode](), lhs, rhs)

    def add(self, lhs: Instruction, rhs: Instruction) -> Instruction:
        return self.binary("add", lhs, rhs)

    def subtract(self, lhs: Instruction, rhs: Instruction) -> Instruction:
        return self.binary("subtract", lhs, rhs)

    def multiply(self, lhs: Instruction, rhs: Instruction) -> Instruction:
        return self.binary("multiply", lhs, rhs)

    def divide(self, lhs: Instruction, rhs: Instruction) -> Instruction:
        """Integers round towards zero."""
        return self.binary("divide", lhs, rhs)

    def remainder(self, lhs: Instruction, rhs: Instruction) -> Instruction:
        """The sign follows the dividend, as C's fmod and %."""
        return self.binary("remainder", lhs, rhs)

    def maximum(self, lhs: Instruction, rhs: Instruction) -> Instruction:
        """NaN when either is NaN."""
        return self.binary("maximum", lhs, rhs)

    def minimum(self, lhs: Instruction, rhs: Instruction) -> Instruction:
        """NaN when either is NaN."""
        return self.binary("minimum", lhs, rhs)

    def power(self, lhs: Instruction, rhs: Instruction) -> Instruction:
        return self.binary("power", lhs, rhs)

    def and_(self, lhs: Instruction, rhs: Instruction) -> Instruction:
        return self.binary("and", lhs, rhs)

    def or_(self, lhs: Instruction, rhs: Instruction) -> Instruction:
        return self.binary("or", lhs, rhs)

    def xor(self, lhs: Instruction, rhs: Instruction) -> Instruction:
        return self.binary("xor", lhs, rhs)

    def not_(self, operand: Instruction) -> Instruction:
        return self.unary("not", operand)

    def negate(self, operand: Instruction) -> Instruction:
        return self.unary("negate", operand)

    def exponential(self, operand: Instruction) -> Instruction:
        return self.unary("exponential", operand)

    def compare(self, lhs: Instruction, rhs: Instruction, direction: str) -> Instruction:
        """`direction` is EQ, NE, LT, LE, GT or GE; the result is pred."""
        return self.emit(elementwise.Compare(direction), lhs, rhs)

    def select(self, pred: Instruction, on_true: Instruction, on_false: Instruction) -> Instruction:
        """`pred` has the operands' shape, or is a scalar."""
        return self.emit(elementwise.Select(), pred, on_true, on_false)

    def clamp(self, low: Instruction, operand: Instruction, high: Instruction) -> Instruction:
        """`low` and `high` have the operand's shape, or are scalars."""
        return self.emit(elementwise.Clamp(), low, operand, high)

    def convert(self, operand: Instruction, element: ElementType) -> Instruction:
        """The operand itself where it has that element type already."""
        if operand.tensor_type.element is element:
            return operand
        return self.emit(elementwise.Convert(element), operand)

    def bitcast_convert(self, operand: Instruction, type: TensorType) -> Instruction:
        return self.emit(elementwise.BitcastConvert(type), operand)

    # Data movement

    def broadcast(self, operand: Instruction, shape_: Ints, dimensions: Ints) -> Instruction:
        """Operand dimension i becomes result dimension `dimensions[i]`; sizes must be equal (no stretching)."""
        return self.emit(shape.Broadcast(tuple(shape_), tuple(dimensions)), operand)

    def reshape(self, operand: Instruction, shape_: Ints) -> Instruction:
        if operand.shape == tuple(shape_):
            return operand
        return self.emit(shape.Reshape(tuple(shape_)), operand)

    def transpose(self, operand: Instruction, permutation: Ints) -> Instruction:
        """Result dimension i is operand dimension `permutation[i]`."""
        if tuple(permutation) == tuple(range(len(permutation))):
            return operand
        return self.emit(shape.Transpose(tuple(permutation)), operand)

    def reverse(self, operand: Instruction, dimensions: Ints) -> Instruction:
        return self.emit(shape.Reverse(tuple(dimensions)), operand)

    def slice(self, operand: Instruction, starts: Ints, limits: Ints, strides: Ints | None = None) -> Instruction:
        """Strides are positive; all default to 1."""
        steps = tuple(strides) if strides is not None else (1,) * len(starts)
        return self.emit(shape.Slice(tuple(starts), tuple(limits), steps), operand)

    def concatenate(self, operands: Sequence[Instruction], dimension: int) -> Instruction:
        return operands[0] if len(operands) == 1 else self.emit(shape.Concatenate(dimension), *operands)

    def pad(
        self, operand: Instruction, value: Instruction, low: Ints, high: Ints, interior: Ints | None = None
    ) -> Instruction:
        """Negative `low` and `high` crop."""
        between = tuple(interior) if interior is not None else (0,) * len(low)
        return self.emit(shape.Pad(tuple(low), tuple(high), between), operand, value)

    def dynamic_slice(self, operand: Instruction, starts: Sequence[Instruction], sizes: Ints) -> Instruction:
        """`starts` are scalars of one integer type, clamped so that the slice stays inside."""
        return self.emit(indexing.DynamicSlice(tuple(sizes)), operand, *starts)

    def dynamic_update_slice(
        self, operand: Instruction, update: Instruction, starts: Sequence[Instruction]
    ) -> Instruction:
        return self.emit(indexing.DynamicUpdateSlice(), operand, update, *starts)

    def gather(self, operand: Instruction, indices: Instruction, op: indexing.Gather) -> Instruction:
        """XLA's gather; start indices are clamped."""
        return self.emit(op, operand, indices)

    def take(self, operand: Instruction, indices: Instruction, axis: int) -> Instruction:
        """numpy.take: `indices` of any shape replace dimension `axis`; out of range is clamped."""
        shape = (*operand.shape[:axis], *indices.shape, *operand.shape[axis + 1 :])
        if 0 in shape:  # nothing is read, so there may be nothing to read
            return self.full(shape, 0, operand.tensor_type.element)
        return self.gather(operand, indices, indexing.take(operand.tensor_type, indices.tensor_type, axis))

    def scatter(
        self, operand: Instruction, indices: Instruction, updates: Instruction, op: indexing.Scatter
    ) -> Instruction:
        """XLA's scatter; an update window that does not fit is skipped."""
        return self.emit(op, operand, indices, updates)

    def sort(
        self, operands: Sequence[Instruction], dimension: int, comparator: Computation, is_stable: bool = True
    ) -> Instruction:
        """One operand gives a tensor, several a tuple; `comparator(l0, r0, l1, r1, ...)` says l before r."""
        return self.emit(indexing.Sort(dimension, is_stable, comparator), *operands)

    # Contractions

    def dot(
        self,
        lhs: Instruction,
        rhs: Instruction,
        lhs_contracting: Ints,
        rhs_contracting: Ints,
        lhs_batch: Ints = (),
        rhs_batch: Ints = (),
        element: ElementType | None = None,
    ) -> Instruction:
        """Result dimensions: batch, then lhs free, then rhs free. `element` accumulates in another type."""
        op = contraction.Dot(
            tuple(lhs_batch),
            tuple(rhs_batch),
            tuple(lhs_contracting),
            tuple(rhs_contracting),
            element or lhs.tensor_type.element,
        )
        return self.emit(op, lhs, rhs)

    def matmul(self, lhs: Instruction, rhs: Instruction, element: ElementType | None = None) -> Instruction:
        """`[..., m, k] @ [..., k, n]` with equal leading dimensions."""
        rank = len(lhs.shape)
        batch = range(rank - 2)
        return self.dot(lhs, rhs, [rank - 1], [rank - 2], batch, batch, element)

    def convolution(
        self,
        lhs: Instruction,
        rhs: Instruction,
        window: contraction.Window,
        dimensions: contraction.ConvolutionDimensions,
        feature_group_count: int = 1,
        batch_group_count: int = 1,
        element: ElementType | None = None,
    ) -> Instruction:
        op = contraction.Convolution(
            window, dimensions, feature_group_count, batch_group_count, element or lhs.tensor_type.element
        )
        return self.emit(op, lhs, rhs)

    # Reductions

    def combiner(self, opcode: str, element: ElementType) -> Computation:
        """The scalar computation `(a, b) -> opcode(a, b)`, the same object each time."""
        if (opcode, element) not in self._combiners:
            inner = Builder(f"{opcode}_{element}".replace("-", "_"))
            a, b = inner.parameter(TensorType(element)), inner.parameter(TensorType(element))
            self._combiners[opcode, element] = inner.build(inner.binary(opcode, a, b))
        return self._combiners[opcode, element]

    def reduce(
        self, operands: Sequence[Instruction], inits: Sequence[Instruction], dimensions: Ints, to_apply: Computation
    ) -> Instruction:
        """One operand gives a tensor, several a tuple; `to_apply(acc0, acc1, ..., x0, x1, ...)`."""
        return self.emit(reduction.Reduce(tuple(dimensions), to_apply), *operands, *inits)

    def reduce_by(self, opcode: str, operand: Instruction, dimensions: Ints) -> Instruction:
        """Reduce with a named combiner (`add`, `maximum`, `and`, ...) from its identity."""
        element = operand.tensor_type.element
        init = self.constant(reduction.identity_of(opcode, element))
        return self.reduce([operand], [init], dimensions, self.combiner(opcode, element))

    def reduce_window(
        self,
        operands: Sequence[Instruction],
        inits: Sequence[Instruction],
        window: contraction.Window,
        to_apply: Computation,
    ) -> Instruction:
        """`window` has one entry for every dimension of the operand."""
        return self.emit(reduction.ReduceWindow(window, to_apply), *operands, *inits)

    def select_and_scatter(
        self,
        operand: Instruction,
        source: Instruction,
        init: Instruction,
        window: contraction.Window,
        select: Computation,
        scatter: Computation,
    ) -> Instruction:
        return self.emit(reduction.SelectAndScatter(window, select, scatter), operand, source, init)

    # Control flow

    def while_(self, init: Instruction, condition: Computation, body: Computation) -> Instruction:
        return self.emit(control_flow.While(condition, body), init)

    def conditional(
        self, index: Instruction, arguments: Sequence[Instruction], branches: Sequence[Computation]
    ) -> Instruction:
        """A pred index takes branch 0 when true, as XLA's; an s32 index out of range takes the last."""
        return self.emit(control_flow.Conditional(tuple(branches)), index, *arguments)

    def call(self, to_apply: Computation, *arguments: Instruction) -> Instruction:
        return self.emit(control_flow.Call(to_apply), *arguments)

    def map(self, to_apply: Computation, dimensions: Ints, *operands: Instruction) -> Instruction:
        return self.emit(control_flow.Map(tuple(dimensions), to_apply), *operands)

    # Others

    def rng_bit_generator(self, state: Instruction, type: TensorType, algorithm: str = "rng_three_fry") -> Instruction:
        """A tuple of the next state (u64[2]) and random bits of `type` (u32 or u64)."""
        return self.emit(linear_algebra.RngBitGenerator(algorithm, type), state)

    def fft(self, operand: Instruction, fft_type: str, fft_length: Ints) -> Instruction:
        """`fft_type` is FFT, IFFT, RFFT or IRFFT over the last `len(fft_length)` dimensions."""
        return self.emit(linear_algebra.Fft(fft_type, tuple(fft_length)), operand)

    # Convenience

    def broadcast_scalar(self, scalar: Instruction, shape_: Ints) -> Instruction:
        return scalar if scalar.shape == tuple(shape_) else self.broadcast(scalar, shape_, ())

    def full(self, shape_: Ints, value: float | int | bool, element: ElementType) -> Instruction:
        """`value` everywhere: a broadcast scalar constant."""
        return self.broadcast_scalar(self.constant(value, element), shape_)

    def full_like(self, operand: Instruction, value: float | int | bool) -> Instruction:
        return self.full(operand.shape, value, operand.tensor_type.element)

    def numpy_broadcast(self, operand: Instruction, shape_: Ints) -> Instruction:
        """Stretch to `shape_` by numpy's rule: trailing dimensions align, size 1 repeats."""
        target: Shape = tuple(shape_)
        if operand.shape == target:
            return operand
        lead = len(target) - len(operand.shape)
        kept = [d for d, n in enumerate(operand.shape) if n != 1 or target[lead + d] == 1]
        squeezed = self.reshape(operand, [operand.shape[d] for d in kept])
        return self.broadcast(squeezed, target, [lead + d for d in kept])

    def is_nan(self, operand: Instruction) -> Instruction:
        return self.compare(operand, operand, "NE")

    def false(self, shape_: Ints) -> Instruction:
        return self.full(shape_, False, PRED)
