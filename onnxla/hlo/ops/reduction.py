"""Many elements to one: reduce, reduce-window, select-and-scatter, and what is known about combiners."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from onnxla.hlo.attributes import COMPUTATION, INTS, spelled_by
from onnxla.hlo.module import Computation, Instruction
from onnxla.hlo.numerics import integer_limits, narrow, widen
from onnxla.hlo.op import Op, attribute, fail, require
from onnxla.hlo.ops.control_flow import apply_to_elements, require_arguments
from onnxla.hlo.ops.shape import require_dimensions
from onnxla.hlo.ops.windowing import pad_for_window, window_view
from onnxla.hlo.types import PRED, Array, ElementType, Shape, TensorType, TupleType, Type, Value, element_of
from onnxla.hlo.window import Window

_UFUNCS: dict[str, np.ufunc] = {
    "add": np.add,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def identity_of(opcode: str, element: ElementType) -> Array:
    """The scalar i with `opcode(i, x) == x` for every x of `element`. Raises HloError where there is none.

    The identity of add is 0, although 0 + -0 is 0.
    """
    if opcode in ("and", "or", "xor") and not (element.is_integer or element is PRED):
        fail(f"{opcode} of {element} has no identity")
    match opcode:
        case "add" | "or" | "xor":
            value: object = 0
        case "multiply":
            value = 1
        case "maximum":
            value = lowest(element)
        case "minimum":
            value = highest(element)
        case "and":
            value = -1 if element.is_signed else highest(element)
        case _:
            fail(f"{opcode} has no identity")
    return np.asarray(value).astype(element.dtype)


def _has_infinity(element: ElementType) -> bool:
    return bool(np.isposinf(widen(np.array(np.inf, np.float32).astype(element.dtype))))


def lowest(element: ElementType) -> object:
    """The least value: -infinity where the type has it."""
    if element is PRED:
        return False
    if element.is_integer:
        return integer_limits(element)[0]
    if element.is_float:
        return -np.inf if _has_infinity(element) else float(ml_dtypes.finfo(element.dtype).min)  # type: ignore[no-untyped-call]
    fail(f"{element} has no order")


def highest(element: ElementType) -> object:
    """The greatest value: infinity where the type has it."""
    if element is PRED:
        return True
    if element.is_integer:
        return integer_limits(element)[1]
    if element.is_float:
        return np.inf if _has_infinity(element) else float(ml_dtypes.finfo(element.dtype).max)  # type: ignore[no-untyped-call]
    fail(f"{element} has no order")


def simple_combiner(computation: Computation) -> str | None:
    """The opcode of a computation that is one commutative binary operation on its two parameters, else None."""
    root, parameters = computation.root, computation.parameters
    if len(parameters) != 2 or len(root.operands) != 2 or set(root.operands) != set(parameters):
        return None
    return root.op.opcode if root.op.opcode in _UFUNCS else None


def combining_ufunc(computation: Computation) -> np.ufunc | None:
    """numpy's function for a simple combiner, to be applied to widened values."""
    return _UFUNCS.get(simple_combiner(computation) or "")


def combine_at(results: Sequence[Array], places: Array, updates: Sequence[Array], to_apply: Computation) -> None:
    """`results[i][place] = to_apply(results..., updates...)` for each place in turn, in flat arrays."""
    ufunc = combining_ufunc(to_apply)
    if ufunc is not None and len(results) == 1:
        wide = widen(results[0])
        with np.errstate(all="ignore"):
            ufunc.at(wide, places, widen(updates[0]))
        results[0][...] = narrow(wide, element_of(results[0].dtype))
        return
    if to_apply.root in to_apply.parameters[len(results) :] and len(results) == 1:
        results[0][places] = updates[0]
        return
    distinct = len(np.unique(places)) == places.size
    steps: Sequence[Any] = [slice(None)] if distinct else [slice(i, i + 1) for i in range(places.size)]
    for step in steps:
        here = places[step]
        value = apply_to_elements(to_apply, *(r[here] for r in results), *(u[step] for u in updates))
        for result, leaf in zip(results, value if isinstance(value, tuple) else (value,), strict=True):
            result[here] = leaf


def reduced_type(to_apply: Computation, operands: Sequence[TensorType], shapes: Shape) -> Type:
    """The result of reducing `n` operands with `n` initial values that follow them, to `shapes`."""
    require(len(operands) >= 2 and len(operands) % 2 == 0, "a reduction takes n operands and n initial values")
    count = len(operands) // 2
    scalars = tuple(o.with_shape(()) for o in operands[:count])
    for operand, init, scalar in zip(operands[:count], operands[count:], scalars, strict=True):
        require(operand.shape == operands[0].shape, f"the operands of a reduction differ in shape: {operands[:count]}")
        require(init == scalar, f"the initial value for {operand} must be {scalar}, got {init}")
    require_arguments(to_apply, scalars * 2)
    expected: Type = scalars[0] if count == 1 else TupleType(scalars)
    require(to_apply.result_type == expected, f"{to_apply.name} must give {expected}, not {to_apply.result_type}")
    return operands[0].with_shape(shapes) if count == 1 else TupleType(tuple(s.with_shape(shapes) for s in scalars))


@dataclass(frozen=True)
class Reduce(Op, name="reduce"):
    """The elements along `dimensions` combined by `to_apply(acc0, acc1, ..., x0, x1, ...)` from the initial values.

    Operands: n tensors, n initial scalars; several give a tuple. The order of combination is open.
    """

    dimensions: Shape = attribute("dimensions", INTS)
    to_apply: Computation = attribute("to_apply", COMPUTATION)

    def infer(self, *operands: TensorType) -> Type:
        require(len(operands) > 0, "reduce needs an operand")
        require_dimensions(self.dimensions, operands[0].rank, "dimensions")
        kept = tuple(n for d, n in enumerate(operands[0].shape) if d not in self.dimensions)
        return reduced_type(self.to_apply, operands, kept)

    def evaluate(self, *operands: Array) -> Value:
        count = len(operands) // 2
        values, inits = operands[:count], operands[count:]
        kept = tuple(d for d in range(values[0].ndim) if d not in self.dimensions)
        shape = tuple(values[0].shape[d] for d in kept)
        size = math.prod(values[0].shape[d] for d in self.dimensions)
        level = tuple(v.transpose(kept + self.dimensions).reshape(*shape, size) for v in values)
        ufunc = combining_ufunc(self.to_apply)
        if ufunc is not None:
            # numpy sums pairwise, with little error, along a contiguous last dimension only
            line = np.ascontiguousarray(widen(level[0]))
            with np.errstate(all="ignore"):
                total = ufunc.reduce(line, axis=-1, dtype=line.dtype, initial=widen(inits[0])[()])
            return narrow(total, element_of(values[0].dtype))
        # neighbours pairwise, until one element is left: the order of elements is kept
        while level[0].shape[-1] > 1:
            even = level[0].shape[-1] // 2 * 2
            pairs = self._combine(tuple(v[..., :even:2] for v in level), tuple(v[..., 1:even:2] for v in level))
            level = tuple(np.concatenate([p, v[..., even:]], axis=-1) for p, v in zip(pairs, level, strict=True))
        first = tuple(np.broadcast_to(init, shape) for init in inits)
        total_values = self._combine(first, tuple(v[..., 0] for v in level)) if size else first
        results = tuple(np.array(v) for v in total_values)
        return results[0] if count == 1 else results

    def _combine(self, accumulated: tuple[Array, ...], values: tuple[Array, ...]) -> tuple[Array, ...]:
        result = apply_to_elements(self.to_apply, *accumulated, *values)
        return result if isinstance(result, tuple) else (result,)


@dataclass(frozen=True)
class ReduceWindow(Op, name="reduce-window"):
    """The elements in each place of a sliding window, combined by `to_apply`. Padding holds the initial value.

    Operands: n tensors, n initial scalars; several give a tuple. The window has an entry for every dimension.
    """

    window: Window = attribute("window", spelled_by(Window), absent=Window())
    to_apply: Computation = attribute("to_apply", COMPUTATION)

    def infer(self, *operands: TensorType) -> Type:
        require(len(operands) > 0, "reduce-window needs an operand")
        require_window(self.window, operands[0])
        return reduced_type(self.to_apply, operands, self.window.output_shape(operands[0].shape))

    def evaluate(self, *operands: Array) -> Value:
        count = len(operands) // 2
        ufunc = combining_ufunc(self.to_apply)
        values = operands[:count] if ufunc is None else (widen(operands[0]),)
        inits = operands[count:] if ufunc is None else (widen(operands[1]),)
        places = self.window.output_shape(operands[0].shape)
        padded = [pad_for_window(v, self.window, 0, init[()]) for v, init in zip(values, inits, strict=True)]
        total = tuple(np.full(places, init[()], init.dtype) for init in inits)
        for position in np.ndindex(*(d.size for d in self.window.dimensions)):
            seen = tuple(window_view(p, self.window, 0, position, places) for p in padded)
            if ufunc is not None:
                with np.errstate(all="ignore"):
                    total = (ufunc(total[0], seen[0]),)
            else:
                result = apply_to_elements(self.to_apply, *total, *seen)
                total = result if isinstance(result, tuple) else (result,)
        results = tuple(narrow(t, element_of(o.dtype)) for t, o in zip(total, operands[:count], strict=True))
        return results[0] if count == 1 else results


@dataclass(frozen=True)
class SelectAndScatter(Op, name="select-and-scatter"):
    """The gradient of a max pool: each source element goes to the operand element its window selects.

    `select(a, b)` says whether to keep a; `scatter` combines what arrives at one element, from the initial value.
    """

    window: Window = attribute("window", spelled_by(Window), absent=Window())
    select: Computation = attribute("select", COMPUTATION)
    scatter: Computation = attribute("scatter", COMPUTATION)

    def infer(self, operand: TensorType, source: TensorType, init: TensorType) -> TensorType:
        require_window(self.window, operand)
        plain = all(d.base_dilation == d.window_dilation == 1 and not d.reversal for d in self.window.dimensions)
        require(plain, f"select-and-scatter takes no dilation: window={self.window}")
        expected = TensorType(source.element, self.window.output_shape(operand.shape))
        require(source == expected, f"the source must be {expected}, got {source}")
        scalar, value = operand.with_shape(()), source.with_shape(())
        require(init == value, f"the initial value must be {value}, got {init}")
        require_arguments(self.select, [scalar, scalar])
        require(self.select.result_type == TensorType(PRED), "select must give pred[]")
        require_arguments(self.scatter, [value, value])
        require(self.scatter.result_type == value, f"scatter must give {value}")
        return source.with_shape(operand.shape)

    def evaluate(self, operand: Array, source: Array, init: Array) -> Array:
        places = source.shape
        numbers = np.arange(operand.size).reshape(operand.shape)
        padded = pad_for_window(operand, self.window, 0, operand.dtype.type(0))
        padded_numbers = pad_for_window(numbers, self.window, 0, -1)
        chosen, chosen_number = np.zeros(places, operand.dtype), np.full(places, -1)
        for position in np.ndindex(*(d.size for d in self.window.dimensions)):
            value = window_view(padded, self.window, 0, position, places)
            number = window_view(padded_numbers, self.window, 0, position, places)
            keep = (chosen_number >= 0) & apply_to_elements(self.select, chosen, value)
            replace = (number >= 0) & ~keep
            chosen, chosen_number = np.where(replace, value, chosen), np.where(replace, number, chosen_number)
        result = np.full(operand.size, init[()], source.dtype)
        inside = chosen_number >= 0
        combine_at([result], chosen_number[inside], [source[inside]], self.scatter)
        return result.reshape(operand.shape)


def require_window(window: Window, operand: TensorType) -> None:
    """Raise HloError unless `window` has an entry in range for every dimension of `operand`."""
    require(len(window.dimensions) == operand.rank, f"window={window} does not fit {operand}")
    window.check()


MOST_PARTS = 16
"""Of a product's depth (`passes/split_depth.py`)."""


def adds_parts(instruction: Instruction) -> bool:
    """Whether it adds up a few tensors that lie side by side, each in whole rows: it costs what reading them does."""
    op = instruction.op
    if not isinstance(op, Reduce) or len(instruction.operands) != 2 or len(op.dimensions) != 1:
        return False
    (dimension,), shape = op.dimensions, instruction.operands[0].shape
    inner = math.prod(shape[dimension + 1 :])
    return 1 < shape[dimension] <= MOST_PARTS and inner > 1 and simple_combiner(op.to_apply) == "add"
