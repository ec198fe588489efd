"""onnxruntime's Attention, QAttention and MultiHeadAttention (com.microsoft).

Masks are added to the scores: `mask_filter_value` (-10000) for padding, the lowest number for what a
unidirectional query must not see, as onnxruntime's CPU kernels do.
"""

from collections.abc import Sequence

import numpy as np

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.attention_core import Masking, attend, heads_first, heads_last, scale_for, sees_past
from onnxla.frontends.onnx.rules.precision import wide_element
from onnxla.frontends.onnx.rules.quantized_linear import integer_matmul, rhs_parameter, scale_product
from onnxla.frontends.onnx.rules.quantized_values import is_known_zero, optional_scalar, scalar
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import F32, S64, ElementType, TensorType

MICROSOFT = "com.microsoft"


@onnx_op("Attention", domain=MICROSOFT)
def attention(node: NodeView, b: Builder) -> list[Instruction | None]:
    """One product with the merged weights gives queries, keys and values."""
    x, weights, bias = node.input(0), node.input(1), node.optional_input(2)
    element = x.tensor_type.element
    merged = b.convert(b.dot(x, weights, [len(x.shape) - 1], [0], element=wide_element(element)), element)
    if bias is not None:
        merged = b.add(merged, b.broadcast(bias, merged.shape, [2]))
    sizes = node.ints("qkv_hidden_sizes", ()) or (weights.shape[1] // 3,) * 3
    return _attention_of_merged(node, b, merged, sizes, mask=3, past=4, bias=5)


@onnx_op("QAttention", domain=MICROSOFT)
def quantized_attention(node: NodeView, b: Builder) -> list[Instruction | None]:
    """The product with the merged weights is one of integers; the rest computes in floating point."""
    x, weights = node.input(0), node.input(1)
    weight_zero = None if is_known_zero(node, 7) else rhs_parameter(node, b, 7, weights)
    sums = integer_matmul(b, x, weights, optional_scalar(node, b, 6), weight_zero)
    scales = [scalar(node, b, 3), rhs_parameter(node, b, 4, weights)]
    merged = b.multiply(b.convert(sums, F32), scale_product(b, scales, sums.shape))
    merged = b.add(merged, b.broadcast(b.convert(node.input(2), F32), merged.shape, [2]))
    merged = b.convert(merged, node.input(2).tensor_type.element)
    return _attention_of_merged(node, b, merged, (weights.shape[1] // 3,) * 3, mask=5, past=8, bias=None)


def _attention_of_merged(
    node: NodeView, b: Builder, merged: Instruction, sizes: Sequence[int], mask: int, past: int, bias: int | None
) -> list[Instruction | None]:
    """Attention over queries, keys and values side by side in the last dimension; inputs by number."""
    for name in ("do_rotary", "past_present_share_buffer"):
        if node.int(name, 0):
            node.unsupported(f"{name}=1 is not known", "export the model without that fusion")
    heads = node.int("num_heads")
    batch, length, width = merged.shape
    if len(sizes) != 3 or sum(sizes) != width or any(n % heads for n in sizes):
        node.shape_error(f"{width} features do not divide into queries, keys and values of {heads} heads")
    parts, start = [], 0
    for size in sizes:
        parts.append(heads_first(b, b.slice(merged, [0, 0, start], [batch, length, start + size]), heads))
        start += size
    q, k, v = parts
    before = node.optional_input(past)
    if before is not None:
        k, v = (
            b.concatenate(
                [b.reshape(b.slice(before, [i, 0, 0, 0, 0], [i + 1, *before.shape[1:]]), before.shape[1:]), new], 2
            )
            for i, new in ((0, k), (1, v))
        )
    addend = None if bias is None else node.optional_input(bias)
    masking = _masking(node, b, q, k, node.optional_input(mask), addend)
    stages = attend(b, q, k, v, _scale(node, q), masking)
    present = None
    if node.has_output(1):
        present = b.concatenate([b.reshape(new, (1, *new.shape)) for new in (k, v)], 0)
    return [heads_last(b, stages.output), present]


def _scale(node: NodeView, q: Instruction) -> float:
    return node.float("scale", 0.0) or scale_for(node, q.shape[3])


def _masking(
    node: NodeView, b: Builder, q: Instruction, k: Instruction, mask: Instruction | None, bias: Instruction | None
) -> Masking:
    """The sum of the padding mask, the causal mask and `bias`."""
    wide = wide_element(q.tensor_type.element)
    queries, keys = q.shape[2], k.shape[2]
    terms = []
    if mask is not None:
        padding = b.full((), node.float("mask_filter_value", -10000.0), wide)
        terms.append(_penalty(b, visible_keys(node, b, mask, q.shape[0], queries, keys), padding))
    if node.int("unidirectional", 0):
        lowest = b.full((), float(np.finfo(wide.dtype).min), wide)
        terms.append(_penalty(b, sees_past(b, queries, keys, keys - queries, left=None, right=0), lowest))
    if bias is not None:
        terms.append(b.convert(bias, wide))
    return Masking(_sum(b, terms, wide, (q.shape[0], q.shape[1], queries, keys)))


def _penalty(b: Builder, visible: Instruction, penalty: Instruction) -> Instruction:
    zero = b.full_like(penalty, 0)
    return b.select(visible, *(b.broadcast_scalar(v, visible.shape) for v in (zero, penalty)))


def _sum(b: Builder, terms: Sequence[Instruction], element: ElementType, shape: tuple[int, ...]) -> Instruction | None:
    total: Instruction | None = None
    for term in terms:
        if total is None:
            total = term
        else:
            total = b.add(b.numpy_broadcast(total, shape), b.numpy_broadcast(term, shape))
    return total


def visible_keys(node: NodeView, b: Builder, mask: Instruction, batch: int, queries: int, keys: int) -> Instruction:
    """pred [batch, 1, queries or 1, keys] by the mask's form: lengths, or flags for keys or for pairs."""
    shape = mask.shape
    key = b.iota(TensorType(S64, (batch, 1, 1, keys)), 3)
    if shape in ((batch,), (2 * batch,)):
        ends = b.convert(mask, S64)
        end = b.broadcast(b.slice(ends, [0], [batch]), key.shape, [0])
        visible = b.compare(key, end, "LT")
        if shape == (batch,):
            return visible
        start = b.broadcast(b.slice(ends, [batch], [2 * batch]), key.shape, [0])
        return b.and_(visible, b.compare(key, start, "GE"))
    flags = b.compare(mask, b.full_like(mask, 0), "GT")
    if len(shape) == 2 and shape[1] == keys:
        return b.reshape(flags, (shape[0], 1, 1, keys))
    if len(shape) == 3 and shape[1:] == (queries, keys):
        return b.reshape(flags, (shape[0], 1, queries, keys))
    if len(shape) == 4 and shape[2] == shape[3] and shape[3] >= keys:
        return b.slice(flags, [0, 0, keys - queries, 0], [*shape[:2], keys, keys])
    node.unsupported(
        f"a mask of shape {list(shape)} is not known",
        "known are lengths [batch], flags [batch, keys], [batch, queries, keys] and [batch, 1, max, max]",
    )


@onnx_op("MultiHeadAttention", domain=MICROSOFT)
def multi_head_attention(node: NodeView, b: Builder) -> list[Instruction | None]:
    """Queries, keys and values come projected: apart, or packed in the last but one dimension."""
    if node.has_input(8) or node.has_input(9):
        node.unsupported("past_sequence_length and cache_indirection (shared buffers) are not known")
    heads = node.int("num_heads")
    q, k, v = _unpacked(node, b, heads)
    if node.has_input(6):
        k, v = (b.concatenate([node.input(i), new], 2) for i, new in ((6, k), (7, v)))
    masking = _masking(node, b, q, k, node.optional_input(4), node.optional_input(5))
    stages = attend(b, q, k, v, _scale(node, q), masking)
    qk = b.convert(stages.masked, q.tensor_type.element) if node.has_output(3) else None
    return [heads_last(b, stages.output), k, v, qk]


def _unpacked(node: NodeView, b: Builder, heads: int) -> tuple[Instruction, Instruction, Instruction]:
    """Queries, keys and values by heads, with the bias of each added."""
    query, key, value = node.input(0), node.optional_input(1), node.optional_input(2)
    biases = _bias_parts(node, b, query if len(query.shape) == 3 else None, heads)
    if len(query.shape) == 5:
        parts = [_member(b, query, i) for i in range(3)]
    elif key is not None and len(key.shape) == 5:
        parts = [query, *(_member(b, key, i) for i in range(2))]
    elif key is not None and value is not None:
        parts = [query, key, value]
    else:
        node.shape_error("key and value are missing, and the query is not packed")
    if any(len(p.shape) not in (3, 4) for p in parts):
        node.shape_error("queries, keys and values must be [batch, length, heads * size] or by heads")
    by_heads = []
    for part, bias in zip(parts, biases, strict=True):
        if len(part.shape) == 3 and bias is not None:
            part = b.add(part, b.broadcast(bias, part.shape, [2]))
        by_heads.append(heads_first(b, part, heads) if len(part.shape) == 3 else part)
    return by_heads[0], by_heads[1], by_heads[2]


def _member(b: Builder, packed: Instruction, i: int) -> Instruction:
    """Number `i` of [batch, length, heads, members, size], as [batch, length, heads * size]."""
    batch, length, heads, _, size = packed.shape
    part = b.slice(packed, [0, 0, 0, i, 0], [batch, length, heads, i + 1, size])
    return b.reshape(part, (batch, length, heads * size))


def _bias_parts(node: NodeView, b: Builder, query: Instruction | None, heads: int) -> list[Instruction | None]:
    """The bias of queries, of keys and of values; the first two have one size."""
    bias = node.optional_input(3)
    if bias is None:
        return [None] * 3
    total = bias.shape[0]
    hidden = query.shape[2] if query is not None else total // 3
    bounds = [0, hidden, 2 * hidden, total]
    return [b.slice(bias, [bounds[i]], [bounds[i + 1]]) for i in range(3)]
