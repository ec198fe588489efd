"""Many elements to one: reduce, reduce-window, select-and-scatter, and what is known about combiners."""

from collections.abc import Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from onnxla.hlo.attributes import COMPUTATION, INTS, spelled_by
from onnxla.hlo.module import Computation
from onnxla.hlo.op import Op, attribute, fail, require
from onnxla.hlo.ops.control_flow import require_arguments
from onnxla.hlo.ops.shape import require_dimensions
from onnxla.hlo.types import PRED, Array, ElementType, Shape, TensorType, TupleType, Type
from onnxla.hlo.window import Window


def identity_of(opcode: str, element: ElementType) -> Array:
    """The scalar i with `opcode(i, x) == x` for every x of `element`. Raises HloError where there is none."""
    match opcode:
        case "add":
            # -0.0 is add's identity; 0.0 differs only in the sum of nothing but -0.0
            value: object = 0
        case "multiply":
            value = 1
        case "maximum":
            value = lowest(element)
        case "minimum":
            value = highest(element)
        case "and":
            value = True if element.kind is PRED.kind else -1
        case "or" | "xor":
            value = False if element.kind is PRED.kind else 0
        case _:
            fail(f"{opcode} has no identity")
    if value == -1 and not element.is_signed:
        value = highest(element)
    return np.asarray(value).astype(element.dtype)


def lowest(element: ElementType) -> object:
    """The least value: -infinity where the type has it."""
    if element is PRED:
        return False
    if element.is_integer:
        return int(ml_dtypes.iinfo(element.dtype).min)
    if element.is_float:
        infinite = np.isneginf(np.float64(np.array(-np.inf).astype(element.dtype)))
        return -np.inf if infinite else float(ml_dtypes.finfo(element.dtype).min)
    fail(f"{element} has no order")


def highest(element: ElementType) -> object:
    """The greatest value: infinity where the type has it."""
    if element is PRED:
        return True
    if element.is_integer:
        return int(ml_dtypes.iinfo(element.dtype).max)
    if element.is_float:
        infinite = np.isposinf(np.float64(np.array(np.inf).astype(element.dtype)))
        return np.inf if infinite else float(ml_dtypes.finfo(element.dtype).max)
    fail(f"{element} has no order")


def simple_combiner(computation: Computation) -> str | None:
    """The opcode of a computation that is one commutative binary operation on its two parameters, else None."""
    root, parameters = computation.root, computation.parameters
    if len(parameters) != 2 or len(root.operands) != 2 or set(root.operands) != set(parameters):
        return None
    opcode = root.op.opcode
    known = ("add", "multiply", "maximum", "minimum", "and", "or", "xor")
    return opcode if opcode in known or root.operands == tuple(parameters) and root.op.computations == () else None


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


def require_window(window: Window, operand: TensorType) -> None:
    """Raise HloError unless `window` has an entry in range for every dimension of `operand`."""
    require(len(window.dimensions) == operand.rank, f"window={window} does not fit {operand}")
    window.check()
