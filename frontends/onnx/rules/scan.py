"""Scan: HLO's while over slices of its inputs, writing slices of its outputs."""

from collections.abc import Sequence
from dataclasses import dataclass

from onnxla.frontends.onnx.control_flow_support import (
    Carried,
    Closure,
    LoopBody,
    Stacked,
    count_from_end,
    emit_while,
    import_closed,
    placeholder,
    starts_at,
    tensors,
)
from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.axes import normal_axis
from onnxla.frontends.onnx.values import describe
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import S64, TensorType


@dataclass(frozen=True)
class _Walk:
    """How a Scan walks along its inputs and stacks its outputs: an axis and a direction for each."""

    length: int
    input_axes: Sequence[int]
    input_reversed: Sequence[int]
    output_axes: Sequence[int]
    output_reversed: Sequence[int]


@onnx_op("Scan", since=9)
def scan(node: NodeView, b: Builder) -> Sequence[Instruction]:
    count = node.int("num_scan_inputs")
    values = node.inputs()
    states, walked = values[: len(values) - count], values[len(values) - count :]
    if not 1 <= count <= len(values):
        node.shape_error(f"num_scan_inputs is {count}; the node has {len(values)} inputs")
    stacked_count = node.output_count - len(states)
    axes = _listed(node, "scan_input_axes", count)
    axes = [normal_axis(node, axis, len(v.shape)) for axis, v in zip(axes, walked, strict=True)]
    walk = _Walk(
        _common_length(node, [v.shape[axis] for v, axis in zip(walked, axes, strict=True)]),
        axes,
        _listed(node, "scan_input_directions", count),
        _listed(node, "scan_output_axes", stacked_count),
        _listed(node, "scan_output_directions", stacked_count),
    )
    return _scan(node, b, states, walked, walk)


@onnx_op("Scan", since=8, until=8)
def scan_of_batch(node: NodeView, b: Builder) -> Sequence[Instruction]:
    """Every input has a batch dimension first, and walked ones the sequence second; the body sees neither."""
    count = node.int("num_scan_inputs")
    values = [node.input(i) for i in range(1, node.input_count)]
    if not 1 <= count <= len(values) or any(not v.shape for v in values):
        node.shape_error(f"num_scan_inputs is {count}; the node has {len(values)} inputs that it could walk along")
    states, walked = values[: len(values) - count], values[len(values) - count :]
    if any(len(v.shape) < 2 for v in walked):
        node.shape_error("a scan input needs a batch and a sequence dimension")
    length = _common_length(node, [v.shape[1] for v in walked])
    batch = _common_length(node, [v.shape[0] for v in values])
    lengths = node.optional_constant_ints(0)
    if lengths is not None and any(n != length for n in lengths):
        node.unsupported("Scan with sequence_lens shorter than the sequence", "opset 9 and later have no sequence_lens")
    if batch == 0:
        node.unsupported("Scan of opset 8 with an empty batch")
    zeros = [0] * (node.output_count - len(states))
    walk = _Walk(length, [0] * count, _listed(node, "directions", count), zeros, zeros)
    rows = [
        _scan(node, b, [_row(b, v, n) for v in states], [_row(b, v, n) for v in walked], walk) for n in range(batch)
    ]
    return [b.concatenate([b.reshape(v, (1, *v.shape)) for v in column], 0) for column in zip(*rows, strict=True)]


def _row(b: Builder, value: Instruction, n: int) -> Instruction:
    """`value[n]`."""
    starts, limits = [0] * len(value.shape), list(value.shape)
    starts[0], limits[0] = n, n + 1
    return b.reshape(b.slice(value, starts, limits), value.shape[1:])


def _listed(node: NodeView, name: str, count: int) -> Sequence[int]:
    """An attribute with one number for each of `count` values; all zero where it is left out."""
    values = node.ints(name, (0,) * count)
    if len(values) != count:
        node.shape_error(f"{name} has {len(values)} entries; {count} were expected")
    return values


def _common_length(node: NodeView, lengths: Sequence[int]) -> int:
    if len(set(lengths)) > 1:
        node.shape_error(f"the inputs that Scan walks along have different lengths: {list(lengths)}")
    return lengths[0]


def _scan(
    node: NodeView, b: Builder, states: Sequence[Instruction], walked: Sequence[Instruction], walk: _Walk
) -> Sequence[Instruction]:
    inner = Builder("scan_body", node.source)
    closure = Closure(node, inner)
    counter = placeholder(TensorType(S64), "iteration")
    node.host.note_varying(counter, f"the iteration number of {node.source.name}")
    inside = [placeholder(v.tensor_type, v.name) for v in states]
    for value in inside:
        node.host.note_varying(value, f"{value.name or 'a value'} carried by {node.source.name}")
    elements = []
    for value, axis, is_reversed in zip(walked, walk.input_axes, walk.input_reversed, strict=True):
        element_type = value.tensor_type.with_shape(value.shape[:axis] + value.shape[axis + 1 :])
        if walk.length == 0:
            elements.append(placeholder(element_type))
            continue
        position = count_from_end(inner, walk.length, counter) if is_reversed else counter
        sizes = (*value.shape[:axis], 1, *value.shape[axis + 1 :])
        part = inner.dynamic_slice(closure.bring_tensor(value), starts_at(inner, len(sizes), axis, position), sizes)
        elements.append(inner.reshape(part, element_type.shape))
    imported = import_closed(node, "body", [*inside, *elements], inner, closure)
    results = tensors(node, imported, "the results of the body")
    after, each = results[: len(states)], results[len(states) :]
    for before, result in zip(states, after, strict=True):
        if before.type != result.type:
            node.shape_error(f"a state is {describe(before)} before an iteration and {describe(result)} after it")
    if len(each) != len(walk.output_axes):
        node.shape_error(f"the body gives {len(each)} values to stack; the node has {len(walk.output_axes)}")
    axes = [normal_axis(node, axis, len(v.shape) + 1) for axis, v in zip(walk.output_axes, each, strict=True)]
    stacked = [Stacked(*parts) for parts in zip(each, axes, map(bool, walk.output_reversed), strict=True)]
    if walk.length == 0:
        types = [s.stack_type(0) for s in stacked]
        return [*states, *(b.full(t.shape, 0, t.element) for t in types)]
    carried = [Carried(*parts) for parts in zip(states, inside, after, strict=True)]
    finals, stacks = emit_while(b, LoopBody(inner, closure, counter, carried, stacked), walk.length)
    return [*finals, *stacks]
