"""Operations that XLA prints and we spell with others: what the parser makes of each.

A compiled XLA program has copies between layouts, bitcasts that look at the bytes of another
layout, and total-order comparisons of floats. Values here have no layout, so a copy is its
operand, and such a bitcast is a transpose to the order of the bytes, a reshape and a transpose back.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from onnxla.errors import SourceNode
from onnxla.hlo.attributes import BOOL, INT, INT_IN_BRACES
from onnxla.hlo.batch_norm import BatchNorm
from onnxla.hlo.builder import Builder
from onnxla.hlo.lapack.calls import Function, letters_of
from onnxla.hlo.lapack.calls import find as find_lapack
from onnxla.hlo.module import Instruction
from onnxla.hlo.op import fail, require, require_tensor
from onnxla.hlo.types import BF16, ELEMENT_TYPES, F16, F32, F64, S32, Shape, TensorType, TupleType, Type


@dataclass
class Form:
    """One line of such text: `type opcode(operands), attributes`."""

    operands: Sequence[Instruction]
    attributes: dict[str, str]
    type: Type
    order: Shape
    """The dimensions of the result from the one that varies slowest in memory to the fastest."""
    operand_orders: Sequence[Shape]
    source: SourceNode | None


def same_value(form: Form) -> Instruction:
    """`copy`, `opt-barrier`: the operand."""
    return _only_operand(form)


def bitcast(form: Form) -> Instruction:
    """The bytes of the operand, in its layout, as a value of another type in another layout."""
    b, operand, result = Builder(source=form.source), _only_operand(form), require_tensor(form.type)
    in_memory = b.transpose(operand, form.operand_orders[0])
    of_result = TensorType(result.element, tuple(result.shape[d] for d in form.order))
    if operand.tensor_type.element.bits != result.element.bits:
        moved = b.bitcast_convert(in_memory, of_result)
    else:
        moved = b.reshape(in_memory, of_result.shape)
        moved = moved if moved.type == of_result else b.bitcast_convert(moved, of_result)
    return b.transpose(moved, [form.order.index(d) for d in range(result.rank)])


def dimension_size(form: Form) -> Instruction:
    """`get-dimension-size`: every shape is static, so it is a constant."""
    operand = _only_operand(form)
    dimension = INT_IN_BRACES.parse(form.attributes.get("dimensions", ""), {})
    require(0 <= dimension < operand.tensor_type.rank, f"no dimension {dimension} in {operand.type}")
    return Builder(source=form.source).constant(operand.shape[dimension], S32)


def total_order_compare(form: Form) -> Instruction:
    """`compare(x, y), type=TOTALORDER`."""
    require(len(form.operands) == 2, "compare needs two operands")
    lhs, rhs = form.operands
    return ordered_compare(Builder(source=form.source), lhs, rhs, form.attributes.get("direction", ""))


def ordered_compare(b: Builder, lhs: Instruction, rhs: Instruction, direction: str) -> Instruction:
    """Floats by the total order: -NaN < -inf < ... < -0 < 0 < ... < inf < NaN.

    As signed integers the bits of non-negative floats are in order, those of negative floats in
    reverse: flipping all but the sign of the latter orders them all.
    """
    return b.compare(_ordered_bits(b, lhs), _ordered_bits(b, rhs), direction)


def top_k(form: Form) -> Instruction:
    """`topk`: the first k of each row, sorted by the total order, and their places; the earlier of equals first."""
    b, operand = Builder(source=form.source), _only_operand(form)
    type, result = operand.tensor_type, form.type
    if type.rank == 0 or not isinstance(result, TupleType) or not result.elements:
        fail(f"topk takes rows and gives a pair, not {result}")
    shape = require_tensor(result.elements[0]).shape
    require(len(shape) == type.rank, f"topk of {type} does not give {result}")
    return b.tuple(*largest(b, operand, shape[-1], BOOL.parse(form.attributes.get("largest", "true"), {})))


def largest(b: Builder, operand: Instruction, count: int, is_largest: bool) -> tuple[Instruction, Instruction]:
    """The first `count` of each row, the largest or the smallest first by the total order, and their places.

    The earlier of equals comes first.
    """
    type = operand.tensor_type
    row = type.rank - 1
    require(row >= 0 and 0 <= count <= type.shape[row], f"there are no {count} largest in a row of {type}")
    limits = (*type.shape[:row], count)
    direction = "GT" if is_largest else "LT"
    comparator = Builder("comes_before")
    value, place = type.with_shape(()), TensorType(S32)
    lhs, rhs, _, _ = (comparator.parameter(scalar) for scalar in (value, value, place, place))
    keys = _ordered_bits(comparator, lhs), _ordered_bits(comparator, rhs)
    before = comparator.build(comparator.compare(*keys, direction))
    both = b.sort([operand, b.iota(type.with_element(S32), row)], row, before)
    values, places = (b.slice(b.get_tuple_element(both, i), [0] * type.rank, limits) for i in range(2))
    return values, places


def lapack_call(form: Form, function: Function) -> Instruction:
    """`custom-call` of a function of LAPACK."""
    b = Builder(source=form.source)
    results = function(b, form.operands, _letters(form))
    return b.tuple(*results) if isinstance(form.type, TupleType) else results[0]


def _letters(form: Form) -> dict[str, str]:
    """`backend_config={uplo = 76 : ui8}`."""
    found = _ARGUMENT.findall(form.attributes.get("backend_config", ""))
    return letters_of({name: int(code) for name, code in found})


_ARGUMENT = re.compile(r"(?a)(\w+) = (\d{1,3}) : ui8")


def batch_norm(form: Form, count: int, make: Callable[..., object]) -> Instruction:
    """`batch-norm-...`, of `count` operands."""
    require(len(form.operands) == count, f"expected {count} operands, found {len(form.operands)}")
    epsilon = _DECIMAL.fullmatch(form.attributes.get("epsilon", ""))
    require(epsilon is not None, "epsilon is no number")
    settings = BatchNorm(float(form.attributes["epsilon"]), INT.parse(form.attributes.get("feature_index", ""), {}))
    b = Builder(source=form.source)
    made = make(settings, b, *form.operands)
    return made if isinstance(made, Instruction) else b.tuple(*made)  # type: ignore[misc]


_DECIMAL = re.compile(r"(?a)\d{1,40}(?:\.\d{0,40})?(?:e[+-]?\d{1,5})?")


def reduce_precision(form: Form) -> Instruction:
    """`reduce-precision`."""
    bits = [INT.parse(form.attributes.get(f"{part}_bits", ""), {}) for part in ("exponent", "mantissa")]
    return reduced_precision(Builder(source=form.source), _only_operand(form), bits[0], bits[1])


def reduced_precision(b: Builder, operand: Instruction, exponent_bits: int, mantissa_bits: int) -> Instruction:
    """Each element rounded to even as in a float of so many bits, back in its own type.

    XLA's way: what is too large becomes infinite, what is below the smallest normal number becomes a zero of its sign.
    """
    type = operand.tensor_type
    require(type.element in _MANTISSA_BITS, f"the precision of {type} cannot be reduced")
    require(1 <= exponent_bits <= 64 and 0 <= mantissa_bits <= 64, "a float has 1 exponent bit at least")
    width, mantissa = type.element.bits, _MANTISSA_BITS[type.element]
    exponent = width - 1 - mantissa
    unsigned = ELEMENT_TYPES[f"u{width}"]

    def full(value: int) -> Instruction:
        return b.full(type.shape, value, unsigned)

    bits = b.bitcast_convert(operand, TensorType(unsigned, type.shape))
    sign = b.and_(bits, full(1 << (width - 1)))
    dropped = mantissa - mantissa_bits
    if dropped > 0:
        last = b.and_(b.binary("shift-right-logical", bits, full(dropped)), full(1))
        bits = b.add(bits, b.add(last, full((1 << (dropped - 1)) - 1)))
        bits = b.and_(bits, full(((1 << width) - 1) ^ ((1 << dropped) - 1)))
    if exponent_bits < exponent:
        bias, reduced = (1 << (exponent - 1)) - 1, (1 << (exponent_bits - 1)) - 1
        infinite = ((1 << exponent) - 1) << mantissa
        power = b.and_(bits, full(infinite))
        over = b.compare(power, full((bias + reduced) << mantissa), "GT")
        under = b.compare(power, full((bias - reduced) << mantissa), "LE")
        bits = b.select(over, b.or_(sign, full(infinite)), b.select(under, sign, bits))
    result = b.bitcast_convert(bits, type)
    return b.select(b.is_nan(operand), operand, result)


_MANTISSA_BITS = {BF16: 7, F16: 10, F32: 23, F64: 52}


def find(opcode: str, attributes: dict[str, str]) -> Callable[[Form], Instruction] | None:
    """What to make of the operation, or None where it is one of ours. Other kinds of comparison are the usual one."""
    if opcode == "compare" and attributes.pop("type", "") == "TOTALORDER":
        return total_order_compare
    if opcode == "custom-call":
        target = attributes.get("custom_call_target", "").strip('"')
        if target == "TopK":
            return top_k
        if (function := find_lapack(target)) is not None:
            return partial(lapack_call, function=function)
    return FORMS.get(opcode)


def _ordered_bits(b: Builder, value: Instruction) -> Instruction:
    type = value.tensor_type
    if not type.element.is_float:
        return value
    require(type.element.bits >= 8, f"a total order of {type.element} is not supported")
    signed = ELEMENT_TYPES[f"s{type.element.bits}"]
    bits = b.bitcast_convert(value, TensorType(signed, type.shape))
    flipped = b.xor(bits, b.full(type.shape, int(np.iinfo(signed.dtype).max), signed))
    return b.select(b.compare(bits, b.full(type.shape, 0, signed), "LT"), flipped, bits)


def _only_operand(form: Form) -> Instruction:
    if len(form.operands) != 1:
        fail(f"expected one operand, found {len(form.operands)}")
    return form.operands[0]


FORMS: dict[str, Callable[[Form], Instruction]] = {
    "copy": same_value,
    "opt-barrier": same_value,
    "optimization-barrier": same_value,
    "bitcast": bitcast,
    "get-dimension-size": dimension_size,
    "topk": top_k,
    "reduce-precision": reduce_precision,
    "batch-norm-inference": lambda form: batch_norm(form, 5, BatchNorm.inference),
    "batch-norm-training": lambda form: batch_norm(form, 3, BatchNorm.training),
    "batch-norm-grad": lambda form: batch_norm(form, 5, BatchNorm.gradient),
}
