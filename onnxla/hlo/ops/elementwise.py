"""Elementwise operations: every result element depends on the operand elements at its own index."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from onnxla.hlo.attributes import WORD
from onnxla.hlo.numerics import bitcast, convert, narrow, widen
from onnxla.hlo.op import Op, attribute, from_result, require, require_tensor
from onnxla.hlo.types import PRED, Array, ElementType, Kind, TensorType, element_of

ORDERED = frozenset({Kind.PRED, Kind.SIGNED, Kind.UNSIGNED, Kind.FLOAT})
INTEGERS = frozenset({Kind.SIGNED, Kind.UNSIGNED})
BITS = INTEGERS | {Kind.PRED}
FLOATS = frozenset({Kind.FLOAT})
FRACTIONAL = frozenset({Kind.FLOAT, Kind.COMPLEX})
SIGNED_NUMBERS = frozenset({Kind.SIGNED, Kind.FLOAT, Kind.COMPLEX})
NUMBERS = frozenset(Kind) - {Kind.PRED}
ANY = frozenset(Kind)


def scalar_like(array: Array) -> TensorType:
    """The type of one element of `array`."""
    return TensorType(element_of(array.dtype))


@dataclass(frozen=True)
class Elementwise(Op):
    """The base of operations whose operands and result have one shape."""

    arity: ClassVar[int]
    commutative: ClassVar[bool] = False
    """op(a, b) is op(b, a), up to which NaN comes out."""
    associative: ClassVar[bool] = False
    """op(op(a, b), c) is op(a, op(b, c)), up to rounding."""
    idempotent: ClassVar[bool] = False
    """op(a, a) is a, or for one operand op(op(a)) is op(a)."""
    kinds: ClassVar[frozenset[Kind]] = ANY
    """The element types it takes."""

    def require_kind(self, operand: TensorType) -> None:
        require(operand.element.kind in self.kinds, f"{self.opcode} does not take {operand}")


@dataclass(frozen=True)
class Unary(Elementwise):
    """One operand; the result has its type."""

    arity: ClassVar[int] = 1

    def infer(self, operand: TensorType) -> TensorType:
        self.require_kind(operand)
        return operand

    def compute(self, x: Array) -> Array:
        """The values for a widened operand."""
        raise NotImplementedError

    def evaluate(self, operand: Array) -> Array:
        with np.errstate(all="ignore"):
            return narrow(self.compute(widen(operand)), self.infer(scalar_like(operand)).element)


@dataclass(frozen=True)
class Binary(Elementwise):
    """Two operands of one type; the result has that type."""

    arity: ClassVar[int] = 2

    def infer(self, lhs: TensorType, rhs: TensorType) -> TensorType:
        require(lhs == rhs, f"the operands of {self.opcode} differ: {lhs}, {rhs}")
        self.require_kind(lhs)
        return lhs

    def compute(self, a: Array, b: Array) -> Array:
        """The values for widened operands."""
        raise NotImplementedError

    def evaluate(self, lhs: Array, rhs: Array) -> Array:
        with np.errstate(all="ignore"):
            return narrow(self.compute(widen(lhs), widen(rhs)), self.infer(scalar_like(lhs), scalar_like(rhs)).element)


_DIRECTIONS = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}


@dataclass(frozen=True)
class Compare(Elementwise, name="compare"):
    """`direction` is EQ, NE, LT, LE, GT or GE. NaN is equal to nothing, and in no order."""

    arity: ClassVar[int] = 2

    direction: str = attribute("direction", WORD)

    def infer(self, lhs: TensorType, rhs: TensorType) -> TensorType:
        require(lhs == rhs, f"the operands of compare differ: {lhs}, {rhs}")
        require(self.direction in _DIRECTIONS, f"unknown direction {self.direction}")
        ordered = self.direction in ("EQ", "NE") or not lhs.element.is_complex
        require(ordered, f"{lhs} has no order")
        return lhs.with_element(PRED)

    def evaluate(self, lhs: Array, rhs: Array) -> Array:
        return np.asarray(_DIRECTIONS[self.direction](widen(lhs), widen(rhs)))


@dataclass(frozen=True)
class Select(Elementwise, name="select"):
    """Elements of `on_true` where the predicate holds, else of `on_false`; the predicate may be a scalar."""

    arity: ClassVar[int] = 3

    def infer(self, pred: TensorType, on_true: TensorType, on_false: TensorType) -> TensorType:
        require(on_true == on_false, f"the branches of select differ: {on_true}, {on_false}")
        fits = pred.element is PRED and pred.shape in ((), on_true.shape)
        require(fits, f"the predicate of a select of {on_true} must be pred of that shape or a scalar, got {pred}")
        return on_true

    def evaluate(self, pred: Array, on_true: Array, on_false: Array) -> Array:
        return np.where(pred, on_true, on_false)


@dataclass(frozen=True)
class Clamp(Elementwise, name="clamp"):
    """min(max(low, x), high), NaN when one is NaN; `low` and `high` may be scalars."""

    arity: ClassVar[int] = 3
    kinds: ClassVar[frozenset[Kind]] = ORDERED

    def infer(self, low: TensorType, operand: TensorType, high: TensorType) -> TensorType:
        self.require_kind(operand)
        for bound in (low, high):
            fits = bound.element is operand.element and bound.shape in ((), operand.shape)
            require(fits, f"the bounds of a clamp of {operand} must have its type or be scalars of it, got {bound}")
        return operand

    def evaluate(self, low: Array, operand: Array, high: Array) -> Array:
        bounded = np.minimum(np.maximum(widen(low), widen(operand)), widen(high))
        return narrow(bounded, element_of(operand.dtype))


@dataclass(frozen=True)
class Convert(Elementwise, name="convert"):
    """Values as another element type. Floats become integers towards zero, saturating, NaN 0; integers wrap."""

    arity: ClassVar[int] = 1

    element: ElementType = from_result(lambda result: require_tensor(result).element)

    def infer(self, operand: TensorType) -> TensorType:
        return operand.with_element(self.element)

    def evaluate(self, operand: Array) -> Array:
        return convert(operand, self.element)


@dataclass(frozen=True)
class BitcastConvert(Op, name="bitcast-convert"):
    """The same bits as `type`; between widths, the last dimension counts narrow elements in a wide one, low first."""

    type: TensorType = from_result(require_tensor)

    def infer(self, operand: TensorType) -> TensorType:
        wide, slim = operand.element.bits, self.type.element.bits
        if wide == slim:
            fits = operand.shape == self.type.shape
        elif wide > slim:
            fits = self.type.shape == (*operand.shape, wide // slim)
        else:
            fits = operand.shape == (*self.type.shape, slim // wide)
        require(fits, f"the bits of {operand} are not those of {self.type}")
        return self.type

    def evaluate(self, operand: Array) -> Array:
        return bitcast(operand, self.type)
