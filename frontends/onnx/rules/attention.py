"""Attention and TensorScatter of ai.onnx 23 and later."""

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.attention_core import (
    Attended,
    Masking,
    attend,
    both,
    heads_first,
    heads_last,
    scale_for,
    sees_past,
)
from onnxla.frontends.onnx.rules.axes import normal_axis
from onnxla.frontends.onnx.rules.precision import wide_element
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import PRED, S64, TensorType

Q, K, V, MASK, PAST_KEY, PAST_VALUE, VALID_LENGTHS = range(7)


@onnx_op("Attention", since=23)
def attention(node: NodeView, b: Builder) -> list[Instruction]:
    """Y, present_key, present_value and the scores at the stage that qk_matmul_output_mode names."""
    softmax_element, mode = node.optional_element("softmax_precision"), _scores_mode(node)
    q = _by_heads(node, b, Q, "q_num_heads")
    k, v = (_by_heads(node, b, i, "kv_num_heads") for i in (K, V))
    if q.shape[0] != k.shape[0] or q.shape[3] != k.shape[3] or q.shape[1] % max(k.shape[1], 1):
        node.shape_error(f"queries {q.tensor_type} do not fit keys {k.tensor_type}, by heads")
    past = 0
    if node.has_input(PAST_KEY) != node.has_input(PAST_VALUE):
        node.shape_error("past_key and past_value come together")
    if node.has_input(PAST_KEY):
        past = node.input(PAST_KEY).shape[2]
        k = b.concatenate([node.input(PAST_KEY), k], 2)
        v = b.concatenate([node.input(PAST_VALUE), v], 2)
    scale = node.float("scale", None)
    stages = attend(
        b,
        q,
        k,
        v,
        scale_for(node, q.shape[3]) if scale is None else scale,
        _masking(node, b, q, k, past),
        softcap=node.float("softcap", 0.0),
        softmax_element=softmax_element,
    )
    y = stages.output if len(node.input(Q).shape) == 4 else heads_last(b, stages.output)
    return [y, k, v, b.convert(_stages(stages)[mode], q.tensor_type.element)]


def _by_heads(node: NodeView, b: Builder, i: int, heads_attribute: str) -> Instruction:
    """Input `i` as [batch, heads, length, size]."""
    x = node.input(i)
    if len(x.shape) == 4:
        return x
    heads = node.int(heads_attribute)
    if len(x.shape) != 3 or heads < 1 or x.shape[2] % heads:
        node.shape_error(f"{x.tensor_type} does not divide into {heads} heads")
    return heads_first(b, x, heads)


def _masking(node: NodeView, b: Builder, q: Instruction, k: Instruction, past: int) -> Masking:
    """The causal mask, the sliding window, the padding of keys and attn_mask together."""
    queries, keys = q.shape[2], k.shape[2]
    bias = allowed = None
    mask = node.optional_input(MASK)
    if mask is not None:
        mask = _stretched_mask(b, mask, keys)
        if mask.tensor_type.element is PRED:
            allowed = mask
        else:
            bias = mask
    offset: int | Instruction = past
    guard = mask is not None
    if node.has_input(VALID_LENGTHS):
        lengths = b.convert(node.input(VALID_LENGTHS), S64)
        key = b.iota(TensorType(S64, (q.shape[0], 1, 1, keys)), 3)
        allowed = both(b, allowed, b.compare(key, b.broadcast(lengths, key.shape, [0]), "LT"))
        if not past:
            offset = b.subtract(lengths, b.full_like(lengths, queries))
        guard = True
    left, right = (node.int(name, -1) for name in ("left_window_size", "right_window_size"))
    if node.int("is_causal", 0):
        right = 0 if right < 0 else min(right, 0)
    if left >= 0 or right >= 0:
        window = sees_past(
            b, queries, keys, offset, left=left if left >= 0 else None, right=right if right >= 0 else None
        )
        allowed = both(b, allowed, window)
        guard = guard or left >= 0
    if bias is not None:
        bias = b.convert(bias, wide_element(q.tensor_type.element))
    return Masking(bias, allowed, guard)


def _stretched_mask(b: Builder, mask: Instruction, keys: int) -> Instruction:
    """attn_mask with rank 4; keys beyond its end are masked."""
    mask = b.reshape(mask, ((1,) * (4 - len(mask.shape)) + mask.shape))
    missing = keys - mask.shape[3]
    if missing <= 0 or mask.shape[3] == 1:
        return mask
    hidden = False if mask.tensor_type.element is PRED else float("-inf")
    return b.pad(mask, b.constant(hidden, mask.tensor_type.element), [0] * 4, [0, 0, 0, missing])


def _scores_mode(node: NodeView) -> int:
    """Which of `_stages` is wanted."""
    mode = node.int("qk_matmul_output_mode", 0)
    if not 0 <= mode <= 3:
        node.unsupported(f"qk_matmul_output_mode={mode} is not known", "0 to 3 are")
    return mode


def _stages(scores: Attended) -> tuple[Instruction, ...]:
    return scores.scores, scores.capped, scores.masked, scores.probabilities


@onnx_op("TensorScatter", since=24)
def tensor_scatter(node: NodeView, b: Builder) -> Instruction:
    """A cache with `update` written at write_indices[batch] along an axis, wrapping round where circular."""
    mode = node.word("mode", ("linear", "circular"), "linear")
    cache, update = node.input(0), node.input(1)
    axis = normal_axis(node, node.int("axis", -2), len(cache.shape))
    if axis == 0 or update.shape[:axis] + update.shape[axis + 1 :] != cache.shape[:axis] + cache.shape[axis + 1 :]:
        node.shape_error(f"an update {update.tensor_type} does not fit the cache {cache.tensor_type} along axis {axis}")
    if 0 in update.shape:
        return cache
    batch, room, length = cache.shape[0], cache.shape[axis], update.shape[axis]
    if length > room:
        node.shape_error(f"an update of {length} does not fit a cache of {room}")
    starts = node.optional_input(2)
    start = b.full((batch,), 0, S64) if starts is None else b.convert(starts, S64)
    # Which element of the update stands at each place of the cache, counted from where writing starts.
    place = b.iota(TensorType(S64, (batch, room)), 1)
    source = b.subtract(place, b.broadcast(start, place.shape, [0]))
    if mode == "circular":
        size = b.full_like(source, room)
        source = b.remainder(b.add(b.remainder(source, size), size), size)
    written = b.and_(
        b.compare(source, b.full_like(source, 0), "GE"), b.compare(source, b.full_like(source, length), "LT")
    )
    clamped = b.clamp(b.constant(0, S64), source, b.constant(length - 1, S64))
    return b.select(b.broadcast(written, cache.shape, [0, axis]), take_per_batch(b, update, clamped, axis), cache)


def take_per_batch(b: Builder, x: Instruction, indices: Instruction, axis: int) -> Instruction:
    """For each batch element i, x[i] taken at indices[i] along `axis` of x. `indices` is [batch, count]."""
    order = [0, axis, *(d for d in range(1, len(x.shape)) if d != axis)]
    moved = b.transpose(x, order)
    batch, length, *rest = moved.shape
    rows = b.reshape(moved, (batch * length, *rest))
    base = b.multiply(b.iota(indices.tensor_type, 0), b.full_like(indices, length))
    taken = b.take(rows, b.add(base, indices), 0)
    return b.transpose(taken, [order.index(d) for d in range(len(order))])
