"""Between integers and the next rounding, scales become one factor for each term.

    round(((convert(n) * a) * b + d) / c)            ==  round(convert(n + d / (a * b)) * (a * b / c))
    round((convert(p) * a + convert(q) * b) / c)     ==  round(convert(p) * (a / c) + convert(q) * (b / c))
    round((convert(p) * a) * (convert(q) * b) / c)   ==  round(convert(p) * convert(q) * (a * b / c))

What is left of a convolution between its sums and its bytes is one product, and of two quantised values, added or
multiplied, two. Factors are f32, rounded after each of their own products as onnxruntime's are, so where it merges too
(QLinearConv, QLinearAdd, QLinearMul) both round the same number. The first line holds where d is a multiple of a * b,
as the biases of quantised models are; another d is scaled like the terms.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from onnxla.errors import SourceNode
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Computation, Instruction
from onnxla.hlo.ops.contraction import Convolution, Dot
from onnxla.hlo.ops.elementwise import Convert
from onnxla.hlo.ops.shape import Broadcast
from onnxla.hlo.ops.structural import Constant
from onnxla.hlo.types import F32, S32, Array, Shape
from onnxla.passes.pass_base import ComputationPass

MOST_TERMS = 4
MOST_BITS = 32
"""Of integers: the product of two of them is no infinity in f32."""
DEEPEST = 16
"""Operations between an integer and the rounding."""
DIVISION = 4
"""Products that a division counts for."""
LARGEST_BIAS = 1 << 30
TINY = float(np.finfo(np.float32).tiny)


class MergeScales(ComputationPass):
    """Compute what is rounded to a grid from integers with one factor each, where that takes fewer operations."""

    name = "merge-scales"

    def run_on(self, computation: Computation) -> bool:
        changed = False
        for instruction in list(computation.instructions()):
            if instruction.op.opcode != "round-nearest-even" or instruction.tensor_type.element is not F32:
                continue
            found = _read(instruction.operands[0], DEEPEST)
            if found is None or found.merged_cost >= found.cost:
                continue
            b = Builder(source=instruction.source)
            computation.replace(instruction, b.unary("round-nearest-even", found.write(b, instruction.shape)))
            self.count("roundings")
            changed = True
        return changed


@dataclass(frozen=True)
class _Spread:
    """Constant numbers, the same everywhere or along one axis."""

    numbers: Array
    axis: int | None = None

    @staticmethod
    def of(value: Instruction) -> "_Spread | None":
        source = value.operands[0] if isinstance(value.op, Broadcast) else value
        if not isinstance(source.op, Constant) or len(source.shape) > 1 or source.tensor_type.size == 0:
            return None
        if source.shape == ():
            return _Spread(source.op.literal.array)
        return _Spread(source.op.literal.array, value.op.dimensions[0]) if isinstance(value.op, Broadcast) else None

    def combined(self, function: Callable[[Array, Array], Array], other: "_Spread") -> "_Spread | None":
        """`function` of both, place by place; None where they lie along different axes."""
        if None not in (self.axis, other.axis) and self.axis != other.axis:
            return None
        axis = other.axis if self.axis is None else self.axis
        with np.errstate(all="ignore"):
            return _Spread(np.asarray(function(self.numbers, other.numbers)), axis)

    def write(self, b: Builder, shape: Shape) -> Instruction:
        return b.broadcast(b.constant(self.numbers), shape, () if self.axis is None else (self.axis,))

    @property
    def is_usual(self) -> bool:
        """Whether no number is infinite, NaN, zero or so small that it has lost digits."""
        size = np.abs(self.numbers)
        return bool((np.isfinite(size) & (size >= TINY)).all())

    @property
    def is_one(self) -> bool:
        return bool((self.numbers == 1).all())


_ONE = _Spread(np.asarray(1, np.float32))


@dataclass(frozen=True)
class _Term:
    """`factor * value`; the value is converted from integers, or the product of such."""

    value: Instruction
    factor: _Spread
    source: SourceNode | None
    """Of the operation that adds it to the terms before."""


@dataclass(frozen=True)
class _Sum:
    """bounded(sum of terms + shift), and the operations that spell it now."""

    terms: tuple[_Term, ...]
    shift: _Spread | None = None
    bounds: tuple[tuple[str, float], ...] = ()
    """`maximum` or `minimum` with a number, in order."""
    cost: int = 0

    @property
    def merged_cost(self) -> int:
        factors = sum(not t.factor.is_one for t in self.terms)
        return factors + len(self.terms) - 1 + (self.shift is not None) + len(self.bounds)

    def scaled(self, function: Callable[[Array, Array], Array], by: _Spread, cost: int) -> "_Sum | None":
        factors = [t.factor.combined(function, by) for t in self.terms]
        shift = None if self.shift is None else self.shift.combined(function, by)
        if self.bounds and (by.axis is not None or not (by.numbers > 0).all()):
            return None
        bounds = tuple((kind, float(function(np.asarray(at, np.float32), by.numbers))) for kind, at in self.bounds)
        if any(f is None or not f.is_usual for f in factors) or (shift is None) != (self.shift is None):
            return None
        if (
            shift is not None
            and not np.isfinite(shift.numbers).all()
            or not np.isfinite([at for _, at in bounds]).all()
        ):
            return None
        terms = tuple(replace(t, factor=f) for t, f in zip(self.terms, factors, strict=True) if f is not None)
        return _Sum(terms, shift, bounds, self.cost + cost)

    def shifted(self, b: Builder, by: _Spread) -> "_Sum | None":
        """With a constant added: to the integers where it is a multiple of their factor, else to the sum."""
        if self.bounds or not np.isfinite(by.numbers).all():
            return None
        if len(self.terms) == 1 and self.shift is None:
            (term,) = self.terms
            value = _with_bias(b, term, by)
            if value is not None:
                return _Sum((replace(term, value=value),), None, (), self.cost + 1)
        shift = by if self.shift is None else self.shift.combined(np.add, by)
        return None if shift is None else _Sum(self.terms, shift, (), self.cost + 1)

    def write(self, b: Builder, shape: Shape) -> Instruction:
        total: Instruction | None = None
        for term in self.terms:
            with b.at(term.source):
                scaled = term.value
                if not term.factor.is_one:
                    scaled = b.multiply(scaled, term.factor.write(b, shape))
                total = scaled if total is None else b.add(total, scaled)
        assert total is not None
        if self.shift is not None:
            total = b.add(total, self.shift.write(b, shape))
        for kind, at in self.bounds:
            total = b.binary(kind, total, b.full(shape, at, F32))
        return total


def _read(value: Instruction, deepest: int) -> _Sum | None:
    """`value` as a sum of scaled integers; None where it is something else."""
    op = value.op
    if isinstance(op, Convert) and value.tensor_type.element is F32:
        element = value.operands[0].tensor_type.element
        return _Sum((_Term(value, _ONE, value.source),)) if element.is_integer and element.bits <= MOST_BITS else None
    if op.opcode not in ("multiply", "divide", "add", "maximum", "minimum") or deepest == 0:
        return None
    first, second = value.operands
    constant = _Spread.of(second)
    left = _read(first, deepest - 1)
    if left is None:
        return None
    if constant is None:
        right = _read(second, deepest - 1) if op.opcode in ("add", "multiply") else None
        if right is None:
            return None
        return (_joined if op.opcode == "add" else _multiplied)(left, right, value.source)
    match op.opcode:
        case "multiply":
            return left.scaled(np.multiply, constant, 1)
        case "divide":
            return left.scaled(np.divide, constant, DIVISION)
        case "add":
            return left.shifted(Builder(source=value.source), constant)
    if constant.axis is not None or not np.isfinite(constant.numbers):
        return None
    return replace(left, bounds=(*left.bounds, (op.opcode, float(constant.numbers))), cost=left.cost + 1)


def _joined(left: _Sum, right: _Sum, source: SourceNode | None) -> _Sum | None:
    if left.bounds or right.bounds or len(left.terms) + len(right.terms) > MOST_TERMS:
        return None
    shifts = [s for s in (left.shift, right.shift) if s is not None]
    shift = shifts[0].combined(np.add, shifts[1]) if len(shifts) == 2 else shifts[0] if shifts else None
    if len(shifts) == 2 and shift is None:
        return None
    first, *others = right.terms
    return _Sum((*left.terms, replace(first, source=source), *others), shift, (), left.cost + right.cost + 1)


def _multiplied(left: _Sum, right: _Sum, source: SourceNode | None) -> _Sum | None:
    """The product of two scaled integers: that of the integers, scaled."""
    if left.bounds or right.bounds or left.shift or right.shift or len(left.terms) + len(right.terms) != 2:
        return None
    (x,), (y,) = left.terms, right.terms
    factor = x.factor.combined(np.multiply, y.factor)
    if factor is None or not factor.is_usual:
        return None
    product = Builder(source=source).multiply(x.value, y.value)
    return _Sum((_Term(product, factor, source),), None, (), left.cost + right.cost)


def _with_bias(b: Builder, term: _Term, by: _Spread) -> Instruction | None:
    """convert(n + by / factor) for `convert(n) * factor + by`, where n are sums of products of bytes that cannot wrap
    with it, and `by` is that multiple of the factor, in f32."""
    if not isinstance(term.value.op, Convert):
        return None
    (sums,) = term.value.operands
    known = _Spread(np.asarray(0, np.int64))
    while sums.op.opcode in ("add", "subtract"):
        constant = _Spread.of(sums.operands[1])
        further = known.combined(np.add if sums.op.opcode == "add" else np.subtract, constant) if constant else None
        if further is None:
            return None
        known, sums = further, sums.operands[0]
    with np.errstate(all="ignore"):
        multiple = by.combined(lambda d, f: np.rint(d.astype(np.float64) / f), term.factor)
    if multiple is None or not (np.abs(multiple.numbers) < LARGEST_BIAS).all() or not _is_small(sums):
        return None
    again = multiple.combined(lambda n, f: n.astype(np.float32) * f, term.factor)
    exact = again.combined(np.equal, by) if again is not None else None
    whole = known.combined(lambda k, n: k + n.astype(np.int64), multiple)
    if exact is None or not exact.numbers.all() or whole is None or not (np.abs(whole.numbers) < LARGEST_BIAS).all():
        return None
    if whole.numbers.any():
        wide = _Spread(whole.numbers.astype(np.int32), whole.axis)
        sums = b.add(sums, wide.write(b, sums.shape))
    return b.convert(sums, F32)


def _is_small(sums: Instruction) -> bool:
    """Whether they are sums of products of bytes, and few enough to stay below 2^30."""
    if not isinstance(sums.op, Dot | Convolution) or sums.tensor_type.element is not S32:
        return False
    bits = sum(o.tensor_type.element.bits for o in sums.operands)
    weights = sums.operands[1]
    if isinstance(sums.op, Convolution):
        depth = weights.tensor_type.size // max(weights.shape[sums.op.dimensions.kernel_output_feature], 1)
    else:
        depth = 1
        for d in sums.op.rhs_contracting:
            depth *= weights.shape[d]
    return depth << bits < LARGEST_BIAS
