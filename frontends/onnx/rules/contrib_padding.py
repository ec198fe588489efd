"""onnxruntime's batches without padding (com.microsoft.RemovePadding, RestorePadding, PackedAttention and kin).

Real tokens of all sequences stand one behind the other; `token_offset` [batch, length] lists the places of
the real ones in the padded batch, then those of the padding.
"""

import numpy as np

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.attention_core import Masking, attend, heads_first, heads_last, scale_for
from onnxla.frontends.onnx.rules.data_dependent import data
from onnxla.frontends.onnx.rules.indexing import replacement
from onnxla.frontends.onnx.rules.precision import wide_element
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.indexing import Scatter
from onnxla.hlo.types import S64, TensorType

MICROSOFT = "com.microsoft"


@onnx_op("RemovePadding", domain=MICROSOFT)
def remove_padding(node: NodeView, b: Builder) -> list[Instruction]:
    """How many tokens are real must be known: it is the shape of the output."""
    x = node.input(0)
    batch, length, hidden = x.shape
    counts = data(node, 1, "the number of tokens").astype(np.int64).reshape(-1)
    if len(counts) != batch or (counts < 0).any() or (counts > length).any():
        node.shape_error(f"{counts.tolist()} tokens do not fit {batch} sequences of {length}")
    node.require_table(batch * length)
    real = np.arange(length) < counts[:, None]
    places = np.concatenate([np.flatnonzero(real), np.flatnonzero(~real)]).astype(np.int32)
    output = b.take(b.reshape(x, (batch * length, hidden)), b.constant(places[: counts.sum()], S64), 0)
    ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    longest = np.array([counts.max(initial=0)], np.int32)
    return [output, b.constant(places.reshape(batch, length)), b.constant(ends), b.constant(longest)]


@onnx_op("RestorePadding", domain=MICROSOFT)
def restore_padding(node: NodeView, b: Builder) -> Instruction:
    return restored(node, b, node.input(0), node.input(1))


def restored(node: NodeView, b: Builder, x: Instruction, offsets: Instruction) -> Instruction:
    """[tokens, hidden] at the places `offsets` [batch, length] of [batch, length, hidden], with zeros between."""
    if len(x.shape) != 2 or len(offsets.shape) != 2 or x.shape[0] > offsets.tensor_type.size:
        node.shape_error(f"{x.tensor_type} does not fit the places {offsets.tensor_type}")
    (tokens, hidden), (batch, length) = x.shape, offsets.shape
    places = b.slice(b.reshape(b.convert(offsets, S64), (batch * length,)), [0], [tokens])
    blank = b.full((batch * length, hidden), 0, x.tensor_type.element)
    return b.reshape(with_rows(b, blank, places, x), (batch, length, hidden))


def with_rows(b: Builder, table: Instruction, places: Instruction, rows: Instruction) -> Instruction:
    """`table` [places, ...] with `rows` [n, ...] written to `places` s64 [n]; those out of range are skipped."""
    scatter = Scatter(
        update_window_dims=tuple(range(1, len(table.shape))),
        inserted_window_dims=(0,),
        scatter_dims_to_operand_dims=(0,),
        input_batching_dims=(),
        scatter_indices_batching_dims=(),
        index_vector_dim=1,
        indices_are_sorted=False,
        unique_indices=False,
        to_apply=replacement(table.tensor_type.element),
    )
    return b.scatter(table, places, rows, scatter)


@onnx_op("PackedAttention", domain=MICROSOFT)
def packed_attention(node: NodeView, b: Builder) -> Instruction:
    """Attention whose input is [tokens, features]; one product with the merged weights."""
    x, weights, bias = node.input(0), node.input(1), node.input(2)
    element = x.tensor_type.element
    merged = b.convert(b.dot(x, weights, [1], [0], element=wide_element(element)), element)
    merged = b.add(merged, b.broadcast(bias, merged.shape, [1]))
    sizes = node.ints("qkv_hidden_sizes", ()) or (weights.shape[1] // 3,) * 3
    if len(sizes) != 3 or sum(sizes) != merged.shape[1]:
        node.shape_error(f"{merged.shape[1]} features do not divide into queries, keys and values")
    bounds = [0, sizes[0], sizes[0] + sizes[1], sum(sizes)]
    parts = [b.slice(merged, [0, bounds[i]], [x.shape[0], bounds[i + 1]]) for i in range(3)]
    return _packed(node, b, parts, 3)


@onnx_op("PackedMultiHeadAttention", domain=MICROSOFT)
def packed_multi_head_attention(node: NodeView, b: Builder) -> Instruction:
    """Queries, keys and values [tokens, heads * size], or side by side as [tokens, heads, 3, size]."""
    query, bias = node.input(0), node.optional_input(3)
    if len(query.shape) == 4:
        tokens, heads, _, size = query.shape
        members = (b.slice(query, [0, 0, i, 0], [tokens, heads, i + 1, size]) for i in range(3))
        parts = [b.reshape(member, (tokens, heads * size)) for member in members]
    else:
        parts = [query, node.input(1), node.input(2)]
    if bias is not None:
        start = 0
        for i, part in enumerate(parts):
            share = b.slice(bias, [start], [start + part.shape[1]])
            parts[i], start = b.add(part, b.broadcast(share, part.shape, [1])), start + part.shape[1]
    return _packed(node, b, parts, 4)


def _packed(node: NodeView, b: Builder, parts: list[Instruction], offsets_at: int) -> Instruction:
    """Attention of each sequence by itself. Inputs from `offsets_at` on: token_offset, the sums of the sequences'
    lengths, and what is added to the scores. Padding is put back for the products, and seen by no query."""
    offsets, ends = node.input(offsets_at), node.input(offsets_at + 1)
    batch, length = offsets.shape
    heads = node.int("num_heads")
    if ends.shape != (batch + 1,) or any(p.shape[1] % heads for p in parts):
        node.shape_error(f"{ends.tensor_type} or the number of heads does not fit {batch} sequences")
    q, k, v = (heads_first(b, restored(node, b, part, offsets), heads) for part in parts)
    wide = b.convert(ends, S64)
    counts = b.subtract(b.slice(wide, [1], [batch + 1]), b.slice(wide, [0], [batch]))
    key = b.iota(TensorType(S64, (batch, 1, 1, length)), 3)
    allowed = b.compare(key, b.broadcast(counts, key.shape, [0]), "LT")
    scale = node.float("scale", 0.0) or scale_for(node, q.shape[3])
    stages = attend(b, q, k, v, scale, Masking(node.optional_input(offsets_at + 2), allowed))
    output = b.reshape(heads_last(b, stages.output), (batch * length, v.shape[1] * v.shape[3]))
    tokens = parts[0].shape[0]
    places = b.slice(b.reshape(b.convert(offsets, S64), (batch * length,)), [0], [tokens])
    return b.take(output, places, 0)
