"""Operations that XLA prints and we spell with others: what the parser makes of each.

A compiled XLA program has copies between layouts, bitcasts that look at the bytes of another
layout, and total-order comparisons of floats. Values here have no layout, so a copy is its
operand, and such a bitcast is a transpose to the order of the bytes, a reshape and a transpose back.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from onnxla.errors import SourceNode
from onnxla.hlo.attributes import BOOL, INT_IN_BRACES
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.op import fail, require, require_tensor
from onnxla.hlo.types import ELEMENT_TYPES, S32, Shape, TensorType, TupleType, Type


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
    """`compare(x, y), type=TOTALORDER` of floats: -NaN < -inf < ... < -0 < 0 < ... < inf < NaN.

    As signed integers the bits of non-negative floats are in order, those of negative floats in
    reverse: flipping all but the sign of the latter orders them all.
    """
    require(len(form.operands) == 2, "compare needs two operands")
    direction = form.attributes.get("direction", "")
    b = Builder(source=form.source)
    lhs, rhs = (_ordered_bits(b, operand) for operand in form.operands)
    return b.compare(lhs, rhs, direction)


def top_k(form: Form) -> Instruction:
    """`topk`: the first k of each row, sorted by the total order, and their places; the earlier of equals first."""
    b, operand = Builder(source=form.source), _only_operand(form)
    type, result = operand.tensor_type, form.type
    if type.rank == 0 or not isinstance(result, TupleType) or not result.elements:
        fail(f"topk takes rows and gives a pair, not {result}")
    row = type.rank - 1
    limits = (*type.shape[:row], *require_tensor(result.elements[0]).shape[-1:])
    require(len(limits) == type.rank, f"topk of {type} does not give {result}")
    direction = "GT" if BOOL.parse(form.attributes.get("largest", "true"), {}) else "LT"
    comparator = Builder("comes_before")
    value, place = type.with_shape(()), TensorType(S32)
    lhs, rhs, _, _ = (comparator.parameter(scalar) for scalar in (value, value, place, place))
    keys = _ordered_bits(comparator, lhs), _ordered_bits(comparator, rhs)
    before = comparator.build(comparator.compare(*keys, direction))
    both = b.sort([operand, b.iota(type.with_element(S32), row)], row, before)
    parts = (b.slice(b.get_tuple_element(both, i), [0] * type.rank, limits) for i in range(2))
    return b.tuple(*parts)


def find(opcode: str, attributes: dict[str, str]) -> Callable[[Form], Instruction] | None:
    """What to make of the operation, or None where it is one of ours. Other kinds of comparison are the usual one."""
    if opcode == "compare" and attributes.pop("type", "") == "TOTALORDER":
        return total_order_compare
    if opcode == "custom-call" and attributes.get("custom_call_target") == '"TopK"':
        return top_k
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
}
