"""Sequences and optionals whose structure is known at import: they never reach HLO."""

import numpy as np

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.axes import normal_axis
from onnxla.frontends.onnx.values import OptionalValue, SequenceValue, Value
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import PRED, S64


@onnx_op("SequenceConstruct", since=11)
def sequence_construct(node: NodeView, b: Builder) -> SequenceValue:
    return SequenceValue(tuple(node.value(i) for i in range(node.input_count)))


@onnx_op("SequenceEmpty", since=11)
def sequence_empty(node: NodeView, b: Builder) -> SequenceValue:
    return SequenceValue(())


def _position(node: NodeView, i: int, length: int, last: int) -> int:
    """The constant position in input `i`, from 0; `last` is the largest one allowed."""
    position = int(node.constant(i).reshape(()))
    if not -length <= position <= last:
        node.shape_error(f"position {position} is outside a sequence of {length}")
    return position + length if position < 0 else position


@onnx_op("SequenceAt", since=11)
def sequence_at(node: NodeView, b: Builder) -> Value:
    elements = node.sequence(0).elements
    return elements[_position(node, 1, len(elements), len(elements) - 1)]


@onnx_op("SequenceInsert", since=11)
def sequence_insert(node: NodeView, b: Builder) -> SequenceValue:
    elements = node.sequence(0).elements
    length = len(elements)
    at = _position(node, 2, length, length) if node.has_input(2) else length
    return SequenceValue((*elements[:at], node.value(1), *elements[at:]))


@onnx_op("SequenceErase", since=11)
def sequence_erase(node: NodeView, b: Builder) -> SequenceValue:
    elements = node.sequence(0).elements
    if not elements:
        node.shape_error("SequenceErase of an empty sequence")
    at = _position(node, 1, len(elements), len(elements) - 1) if node.has_input(1) else len(elements) - 1
    return SequenceValue((*elements[:at], *elements[at + 1 :]))


@onnx_op("SequenceLength", since=11)
def sequence_length(node: NodeView, b: Builder) -> Instruction:
    return b.constant(len(node.sequence(0).elements), S64)


@onnx_op("SplitToSequence", since=11)
def split_to_sequence(node: NodeView, b: Builder) -> SequenceValue:
    """`split` is a scalar (pieces of that size, a shorter one last), a list of sizes, or left out (pieces of 1)."""
    x = node.input(0)
    axis = normal_axis(node, node.int("axis", 0), len(x.shape))
    size = x.shape[axis]
    split = node.optional_constant(1)
    if split is None or split.ndim == 0:
        step = 1 if split is None else int(split)
        if step < 1:
            node.shape_error(f"split is {step}; a positive size was expected")
        node.require_pieces(-(-size // step))
        sizes = [min(step, size - start) for start in range(0, size, step)]
    else:
        sizes = [int(n) for n in split]
        if any(n < 0 for n in sizes) or sum(sizes) != size:
            node.shape_error(f"split {sizes} does not divide dimension {axis} of size {size}")
    drop = split is None and not node.int("keepdims", 1)
    pieces: list[Value] = []
    start = 0
    for n in sizes:
        starts, limits = [0] * len(x.shape), list(x.shape)
        starts[axis], limits[axis] = start, start + n
        piece = b.slice(x, starts, limits)
        pieces.append(b.reshape(piece, x.shape[:axis] + x.shape[axis + 1 :]) if drop else piece)
        start += n
    return SequenceValue(tuple(pieces))


@onnx_op("ConcatFromSequence", since=11)
def concat_from_sequence(node: NodeView, b: Builder) -> Instruction:
    elements = [e for e in node.sequence(0).elements if isinstance(e, Instruction)]
    if not elements or len(elements) != len(node.sequence(0).elements):
        node.shape_error("ConcatFromSequence needs a sequence of at least one tensor of numbers")
    rank = len(elements[0].shape)
    if node.int("new_axis", 0):
        axis = normal_axis(node, node.int("axis"), rank + 1)
        elements = [b.reshape(e, (*e.shape[:axis], 1, *e.shape[axis:])) for e in elements]
    else:
        axis = normal_axis(node, node.int("axis"), rank)
    return b.concatenate(elements, axis)


@onnx_op("SequenceMap", since=17)
def sequence_map(node: NodeView, b: Builder) -> list[Value]:
    """The body once for every position; further inputs are sequences walked along, or tensors given each time."""
    length = len(node.sequence(0).elements)
    columns: list[list[Value]] = []
    for i in range(node.input_count):
        value = node.value(i)
        elements: list[Value] = list(value.elements) if isinstance(value, SequenceValue) else [value] * length
        if len(elements) != length:
            node.shape_error(f"input {i} is a sequence of {len(elements)}; the first has {length}")
        columns.append(elements)
    rows = [node.import_body("body", arguments, b) for arguments in zip(*columns, strict=True)]
    return [SequenceValue(tuple(row[i] for row in rows)) for i in range(node.output_count)]


@onnx_op("Optional", since=15)
def optional(node: NodeView, b: Builder) -> OptionalValue:
    return OptionalValue(node.value(0) if node.has_input(0) else None)


@onnx_op("OptionalHasElement", since=15)
def optional_has_element(node: NodeView, b: Builder) -> Instruction:
    """From opset 18 the input may be a plain tensor or sequence (true), or left out (false)."""
    value = node.value(0) if node.has_input(0) else None
    present = value is not None and not (isinstance(value, OptionalValue) and value.value is None)
    return b.constant(np.bool_(present), PRED)


@onnx_op("OptionalGetElement", since=15)
def optional_get_element(node: NodeView, b: Builder) -> Value:
    value = node.value(0)
    if not isinstance(value, OptionalValue):
        return value
    if value.value is None:
        node.shape_error("OptionalGetElement of an empty optional")
    return value.value
