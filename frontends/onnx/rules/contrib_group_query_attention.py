"""com.microsoft.GroupQueryAttention: causal attention of a decoder with a key-value cache of its own.

Batch element i has seqlens_k[i] + 1 keys in all, the last of which are the new ones. The caches that
come out have room for all keys, and new keys are written behind those of the past.
"""

from dataclasses import dataclass

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.attention_core import Masking, attend, heads_last, scale_for, sees_past
from onnxla.frontends.onnx.rules.normalization import inverse_deviation, mean_over, spread_over
from onnxla.frontends.onnx.rules.precision import wide_element
from onnxla.frontends.onnx.rules.rotary import angles_at, consecutive, rotate
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import S64

QUERY, KEY, VALUE, PAST_KEY, PAST_VALUE, LAST_KEY, TOTAL, COS, SIN, PLACES, BIAS, SINK = range(12)
K_SCALE, V_SCALE, Q_NORM, K_NORM, QUERY_LENGTHS = range(12, 17)
NORM_EPSILON = 1e-6


@dataclass(frozen=True)
class _Heads:
    """New queries, keys and values, each [batch, length, heads, size]."""

    q: Instruction
    k: Instruction
    v: Instruction


@onnx_op("GroupQueryAttention", domain="com.microsoft")
def group_query_attention(node: NodeView, b: Builder) -> list[Instruction | None]:
    _refuse_the_unknown(node)
    heads = _read_heads(node, b)
    batch, length = heads.q.shape[:2]
    total = node.constant_ints(TOTAL)
    if len(total) != 1:
        node.shape_error("total_sequence_length must be one number")
    seen = b.reshape(b.convert(node.input(LAST_KEY), S64), (batch,))
    # A prompt starts an empty cache, even where its elements are shorter than its padded length.
    past = b.full((batch,), 0, S64)
    if total[0] != length:
        past = b.subtract(seen, b.full_like(seen, length - 1))
    q, k = normalized_heads(node, b, heads.q, Q_NORM, "q"), normalized_heads(node, b, heads.k, K_NORM, "k")
    if node.int("do_rotary", 0):
        q, k = _rotated(node, b, q, k, past)
    q, k, v = (b.transpose(x, [0, 2, 1, 3]) for x in (q, k, heads.v))
    keys = _cache(node, b, PAST_KEY, k, past, total[0])
    values = _cache(node, b, PAST_VALUE, v, past, total[0])
    window = node.int("local_window_size", -1)
    left = window - 1 if window > 0 else None
    allowed = sees_past(b, length, keys.shape[2], past, left=left, right=0)
    bias = node.optional_input(BIAS)
    if bias is not None and bias.shape[3] < keys.shape[2]:
        bias = b.pad(bias, b.constant(0, bias.tensor_type.element), [0] * 4, [0, 0, 0, keys.shape[2] - bias.shape[3]])
    sink = node.optional_input(SINK)
    if sink is None and node.int("smooth_softmax", 0):
        sink = b.full((q.shape[1],), 0, wide_element(q.tensor_type.element))
    stages = attend(
        b,
        q,
        keys,
        values,
        node.float("scale", 0.0) or scale_for(node, q.shape[3]),
        Masking(bias, allowed),
        softcap=node.float("softcap", 0.0),
        sink=sink,
    )
    return [heads_last(b, stages.output), keys, values]


def _refuse_the_unknown(node: NodeView) -> None:
    for i, name in ((K_SCALE, "k_scale"), (V_SCALE, "v_scale"), (QUERY_LENGTHS, "query_seqlens")):
        if node.has_input(i):
            node.unsupported(f"the input {name} is not known", "quantised caches and ragged queries are not supported")
    windowed: int = node.int("sliding_window_cache", 0)
    if windowed or node.int("causal", 1) != 1 or node.has_output(3):
        node.unsupported("sliding_window_cache=1, causal=0 and the output output_qk are not known")


def _read_heads(node: NodeView, b: Builder) -> _Heads:
    """Queries, keys and values apart, or side by side in one tensor."""
    query = node.input(QUERY)
    count, key_count = node.int("num_heads"), node.int("kv_num_heads")
    if count < 1 or key_count < 1 or count % key_count:
        node.shape_error(f"{count} query heads do not divide into {key_count} groups")
    batch, length, width = query.shape
    if node.has_input(KEY):
        parts = [(query, count), (node.input(KEY), key_count), (node.input(VALUE), key_count)]
    else:
        size = width // (count + 2 * key_count)
        bounds = [0, count * size, (count + key_count) * size, (count + 2 * key_count) * size]
        sliced = [b.slice(query, [0, 0, bounds[i]], [batch, length, bounds[i + 1]]) for i in range(3)]
        parts = list(zip(sliced, (count, key_count, key_count), strict=True))
    q, k, v = (b.reshape(x, (*x.shape[:2], n, x.shape[2] // n)) for x, n in parts)
    if k.shape[1] != length or k.shape != v.shape or k.shape[3] != q.shape[3]:
        node.shape_error(f"queries {q.tensor_type}, keys {k.tensor_type} and values {v.tensor_type} do not fit")
    return _Heads(q, k, v)


def normalized_heads(node: NodeView, b: Builder, x: Instruction, i: int, name: str) -> Instruction:
    """Each head of x [..., heads, size] divided by its root mean square, times input `i`, where that is given."""
    weight = node.optional_input(i)
    if weight is None:
        return x
    epsilon = node.float(f"{name}_norm_epsilon", None)
    epsilon = node.float("qk_norm_epsilon", NORM_EPSILON) if epsilon is None else epsilon
    element = wide_element(x.tensor_type.element)
    wide, last = b.convert(x, element), [len(x.shape) - 1]
    deviation = inverse_deviation(b, mean_over(b, b.multiply(wide, wide), last), epsilon)
    scaled = b.multiply(wide, spread_over(b, deviation, wide, last))
    scaled = b.multiply(scaled, b.broadcast(b.convert(weight, element), wide.shape, last))
    return b.convert(scaled, x.tensor_type.element)


def _rotated(
    node: NodeView, b: Builder, q: Instruction, k: Instruction, past: Instruction
) -> tuple[Instruction, Instruction]:
    """Both turned by their positions: position_ids, or those that follow the past."""
    batch, length = q.shape[:2]
    places = node.optional_input(PLACES)
    places = consecutive(b, past, length) if places is None else b.convert(places, S64)
    cos, sin = (angles_at(b, node.input(i), places, batch) for i in (COS, SIN))
    interleaved = bool(node.int("rotary_interleaved", 0))
    return rotate(b, q, cos, sin, interleaved), rotate(b, k, cos, sin, interleaved)


def _cache(node: NodeView, b: Builder, i: int, new: Instruction, past: Instruction, total: int) -> Instruction:
    """The cache of input `i` [batch, heads, room, size] with `new` written behind the past of each batch element."""
    batch, heads, length, size = new.shape
    if not node.has_input(i):
        if total > length:
            return b.pad(new, b.constant(0, new.tensor_type.element), [0] * 4, [0, 0, total - length, 0])
        return new
    cache = node.input(i)
    missing = max(total, length) - cache.shape[2]
    if missing > 0:
        cache = b.pad(cache, b.constant(0, cache.tensor_type.element), [0] * 4, [0, 0, missing, 0])
    zero = b.constant(0, S64)
    for n in range(batch):
        start = b.reshape(b.slice(past, [n], [n + 1]), ())
        part = b.slice(new, [n, 0, 0, 0], [n + 1, heads, length, size])
        cache = b.dynamic_update_slice(cache, part, [b.constant(n, S64), zero, start, zero])
    return cache
