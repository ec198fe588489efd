"""onnxruntime's attention of a decoder that reads one token at a time (com.microsoft.DecoderMasked...).

A cache has room for keys to come: `past_sequence_length` of them are there, the new one is written
behind them, and what lies further back is not seen. With several beams, `cache_indirection` says
which beam's cache holds each past token.
"""

from dataclasses import dataclass

import numpy as np

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.attention_core import Attended, Masking, attend, heads_first, heads_last, scale_for
from onnxla.frontends.onnx.rules.precision import wide_element
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import S64, TensorType

MICROSOFT = "com.microsoft"
REORDERED_BYTES = 16
"""How many bytes of a head stand together in the key cache of DecoderMaskedSelfAttention."""


@dataclass(frozen=True)
class _Step:
    """A new token's query, key and value, each [rows, heads, 1, size]."""

    q: Instruction
    k: Instruction
    v: Instruction


@dataclass(frozen=True)
class _Inputs:
    """Which inputs of the operator hold what."""

    mask: int
    bias: int
    past_length: int
    beam_width: int
    indirection: int


@onnx_op("DecoderMaskedMultiHeadAttention", domain=MICROSOFT)
def decoder_masked_multi_head_attention(node: NodeView, b: Builder) -> list[Instruction | None]:
    """The key [batch, heads, keys, size] is all there is (cross attention), or that of the new token."""
    inputs = _Inputs(mask=3, bias=4, past_length=7, beam_width=8, indirection=9)
    query, key = node.input(0), node.optional_input(1)
    heads, hidden = node.int("num_heads"), query.shape[-1] if key is not None else query.shape[-1] // 3
    if len(query.shape) != 3 or query.shape[1] != 1:
        node.shape_error(f"the query {query.tensor_type} is not one token, [batch, 1, features]")
    if key is not None and len(key.shape) == 4:
        q = heads_first(b, _with_bias(node, b, query, 0, hidden), heads)
        if node.has_input(inputs.bias) or node.has_output(1):
            node.unsupported("cross attention with attention_bias or a present key is not known")
        mask = node.optional_input(inputs.mask)
        masking = Masking(None if mask is None else _hidden_keys(node, b, mask, q))
        stages = attend(b, q, key, node.input(2), _scale(node, q), masking)
        return [heads_last(b, stages.output), None, None, _scores(node, b, stages, key.shape[2])]
    if key is None:
        widths = [(0, hidden), (hidden, 2 * hidden), (2 * hidden, query.shape[2])]
        parts = [b.slice(query, [0, 0, low], [query.shape[0], 1, high]) for low, high in widths]
    else:
        parts = [query, key, node.input(2)]
    q, k, v = (heads_first(b, _with_bias(node, b, part, i, hidden), heads) for i, part in enumerate(parts))
    if not (node.has_input(5) and node.has_input(6)):
        node.shape_error("past_key and past_value are missing")
    return _decode(node, b, inputs, _Step(q, k, v), node.input(5), node.input(6))


def _with_bias(node: NodeView, b: Builder, part: Instruction, i: int, hidden: int) -> Instruction:
    """Query, key or value (0, 1, 2), with its share of the bias."""
    bias = node.optional_input(10)
    if bias is None:
        return part
    share = b.slice(bias, [i * hidden], [min((i + 1) * hidden, bias.shape[0]) if i < 2 else bias.shape[0]])
    return b.add(part, b.broadcast(share, part.shape, [2]))


def _scale(node: NodeView, q: Instruction) -> float:
    return node.float("scale", 0.0) or scale_for(node, q.shape[3])


def _scores(node: NodeView, b: Builder, stages: Attended, total: int) -> Instruction | None:
    """The output qk [batch, heads, 1, total]: scores, scaled and masked."""
    if not node.has_output(3):
        return None
    scores = b.convert(stages.masked, stages.output.tensor_type.element)
    return b.slice(scores, [0] * 4, [*scores.shape[:3], total])


def _hidden_keys(node: NodeView, b: Builder, mask: Instruction, q: Instruction) -> Instruction:
    """What flags [batch, keys] add to the scores: mask_filter_value where they are 0; [batch, 1, 1, keys]."""
    if len(mask.shape) != 2 or mask.shape[0] != q.shape[0]:
        node.shape_error(f"the mask {mask.tensor_type} is not [batch, keys]")
    seen = b.compare(mask, b.full_like(mask, 0), "NE")
    wide = wide_element(q.tensor_type.element)
    nothing, filtered = (b.full(mask.shape, v, wide) for v in (0.0, node.float("mask_filter_value", -10000.0)))
    return b.reshape(b.select(seen, nothing, filtered), (mask.shape[0], 1, 1, mask.shape[1]))


def _decode(
    node: NodeView, b: Builder, inputs: _Inputs, step: _Step, past_key: Instruction, past_value: Instruction
) -> list[Instruction | None]:
    """Output, caches with the new key and value, and scores. Caches are [rows, heads, room, size]."""
    if not node.int("past_present_share_buffer", 0):
        past = b.constant(past_key.shape[2], S64)
        keys, values = (b.concatenate([p, n], 2) for p, n in ((past_key, step.k), (past_value, step.v)))
    else:
        if not node.has_input(inputs.past_length):
            node.shape_error("past_sequence_length is missing, which past_present_share_buffer=1 asks for")
        past = b.reshape(b.convert(node.input(inputs.past_length), S64), ())
        zero = b.constant(0, S64)
        keys, values = (
            b.dynamic_update_slice(cache, new, [zero, zero, past, zero])
            for cache, new in ((past_key, step.k), (past_value, step.v))
        )
    mask, bias = node.optional_input(inputs.mask), node.optional_input(inputs.bias)
    # Masks are as long as the keys that are there, which says how much of the room is in use.
    total = next((x.shape[-1] for x in (mask, bias) if x is not None), keys.shape[2])
    if total > keys.shape[2]:
        node.shape_error(f"a mask or bias of {total} keys does not fit caches with room for {keys.shape[2]}")
    if node.has_output(3) and mask is None and bias is None and node.int("past_present_share_buffer", 0):
        total = node.constant_ints(inputs.past_length)[0] + 1
    seen_keys, seen_values = (b.slice(c, [0] * 4, [*c.shape[:2], total, c.shape[3]]) for c in (keys, values))
    indirection = node.optional_input(inputs.indirection)
    if indirection is not None:
        seen_keys, seen_values = (_of_beams(node, b, c, indirection, past) for c in (seen_keys, seen_values))
    key = b.iota(TensorType(S64, (1, 1, 1, total)), 3)
    allowed = b.compare(key, b.broadcast_scalar(past, key.shape), "LE")
    terms = None if mask is None else _hidden_keys(node, b, mask, step.q)
    if bias is not None:
        shape = (*step.q.shape[:3], total)
        wide = b.numpy_broadcast(b.convert(bias, wide_element(step.q.tensor_type.element)), shape)
        terms = wide if terms is None else b.add(b.numpy_broadcast(terms, shape), wide)
    stages = attend(b, step.q, seen_keys, seen_values, _scale(node, step.q), Masking(terms, allowed))
    return [heads_last(b, stages.output), keys, values, _scores(node, b, stages, total)]


def _of_beams(
    node: NodeView, b: Builder, cache: Instruction, indirection: Instruction, past: Instruction
) -> Instruction:
    """For each row, which is a beam of a batch element, the past tokens from the caches of the beams named by
    `indirection` [batch, beams, length]; the new token is in its own cache."""
    rows, heads, room, size = cache.shape
    batch, beams, length = indirection.shape
    if batch * beams != rows or length < room:
        node.shape_error(f"cache_indirection {indirection.tensor_type} does not fit {rows} rows of {room} keys")
    beam = b.slice(b.reshape(b.convert(indirection, S64), (rows, length)), [0, 0], [rows, room])
    own = np.broadcast_to((np.arange(rows) % beams)[:, None], (rows, room))
    first = np.broadcast_to((np.arange(rows) // beams * beams * room)[:, None] + np.arange(room), (rows, room))
    is_past = b.compare(b.iota(TensorType(S64, (rows, room)), 1), b.broadcast_scalar(past, (rows, room)), "LT")
    beam = b.select(is_past, beam, b.constant(own, S64))
    place = b.add(b.constant(first, S64), b.multiply(beam, b.full_like(beam, room)))
    table = b.reshape(b.transpose(cache, [0, 2, 1, 3]), (rows * room, heads, size))
    return b.transpose(b.take(table, place, 0), [0, 2, 1, 3])


@onnx_op("DecoderMaskedSelfAttention", domain=MICROSOFT)
def decoder_masked_self_attention(node: NodeView, b: Builder) -> list[Instruction | None]:
    """One product with the merged weights gives the new query, key and value; past is [2, rows, heads, room, size]."""
    if node.int("do_rotary", 0):
        node.unsupported("do_rotary=1 is not known", "export the model without that fusion")
    inputs = _Inputs(mask=3, bias=5, past_length=6, beam_width=7, indirection=8)
    x, weights, bias, past = node.input(0), node.input(1), node.input(2), node.input(4)
    if len(x.shape) != 3 or x.shape[1] != 1 or len(past.shape) != 5 or past.shape[0] != 2:
        node.shape_error(f"{x.tensor_type} is not one token, or past {past.tensor_type} is not keys and values")
    element, heads = x.tensor_type.element, node.int("num_heads")
    merged = b.convert(b.dot(x, weights, [2], [0], element=wide_element(element)), element)
    merged = b.add(merged, b.broadcast(bias, merged.shape, [2]))
    size = past.shape[4] * heads
    if merged.shape[2] != 3 * size:
        node.shape_error(f"{merged.shape[2]} features are not queries, keys and values of {size}")
    q, k, v = (
        heads_first(b, b.slice(merged, [0, 0, i * size], [merged.shape[0], 1, (i + 1) * size]), heads) for i in range(3)
    )
    past_key, past_value = (
        b.reshape(b.slice(past, [i, 0, 0, 0, 0], [i + 1, *past.shape[1:]]), past.shape[1:]) for i in (0, 1)
    )
    reordered = bool(node.int("past_present_share_buffer", 0))
    if reordered:
        past_key = _plain(node, b, past_key)
    output, keys, values, _ = _decode(node, b, inputs, _Step(q, k, v), past_key, past_value)
    assert keys is not None and values is not None
    keys = _reordered(node, b, keys) if reordered else keys
    present = b.concatenate([b.reshape(c, (1, *c.shape)) for c in (keys, values)], 0)
    return [output, present]


def _group(node: NodeView, cache: Instruction) -> int:
    """How many features of a head stand together in a reordered key cache."""
    group = REORDERED_BYTES * 8 // cache.tensor_type.element.bits
    if cache.shape[3] % group:
        node.shape_error(f"heads of size {cache.shape[3]} do not divide into groups of {group}")
    return group


def _plain(node: NodeView, b: Builder, cache: Instruction) -> Instruction:
    """Memory in the order [rows, heads, size / group, room, group], as [rows, heads, room, size]."""
    rows, heads, room, size = cache.shape
    group = _group(node, cache)
    grouped = b.reshape(cache, (rows, heads, size // group, room, group))
    return b.reshape(b.transpose(grouped, [0, 1, 3, 2, 4]), cache.shape)


def _reordered(node: NodeView, b: Builder, cache: Instruction) -> Instruction:
    """The inverse of `_plain`."""
    rows, heads, room, size = cache.shape
    group = _group(node, cache)
    grouped = b.reshape(cache, (rows, heads, room, size // group, group))
    return b.reshape(b.transpose(grouped, [0, 1, 3, 2, 4]), cache.shape)
