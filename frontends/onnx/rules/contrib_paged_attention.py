"""com.microsoft.PagedAttention: attention of many sequences whose keys and values lie in pages of one cache.

The tokens of all sequences stand one behind the other, `cumulative_sequence_length` says where each sequence
begins. Page `block_table[s, i]` holds the keys i * block_size and on of sequence s; -1 is no page. New keys are
written behind those of the past, or where `slot_mapping` says. Every token sees the keys of its own sequence.
"""

from dataclasses import dataclass

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.attention_core import Masking, attend, scale_for
from onnxla.frontends.onnx.rules.contrib_group_query_attention import normalized_heads
from onnxla.frontends.onnx.rules.contrib_padding import with_rows
from onnxla.frontends.onnx.rules.rotary import rotate
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import S64, TensorType

QUERY, KEY, VALUE, KEY_CACHE, VALUE_CACHE, STARTS, PAST, PAGES, COS, SIN, SLOTS, SINK = range(12)
Q_NORM, K_NORM, K_SCALE, V_SCALE = range(12, 16)


@dataclass(frozen=True)
class _Tokens:
    """Of each token s64 [tokens]: its sequence, and its place in that. Tokens behind the last sequence have one
    that there is not."""

    sequence: Instruction
    place: Instruction


@onnx_op("PagedAttention", domain="com.microsoft")
def paged_attention(node: NodeView, b: Builder) -> list[Instruction | None]:
    latent = node.string("kv_cache_layout", "SEPARATE") == "LATENT"
    _refuse_the_unknown(node)
    key_cache = node.input(KEY_CACHE)
    blocks, block, key_heads, size = key_cache.shape
    q, k, v = _read_heads(node, b, key_heads, size, latent)
    tokens = _locate(node, b, q.shape[0])
    q, k = normalized_heads(node, b, q, Q_NORM, ""), normalized_heads(node, b, k, K_NORM, "")
    if node.int("do_rotary", 0):
        q, k = (_rotated(node, b, x, tokens.place) for x in (q, k))
    slots = _slots(node, b, tokens, block)

    def updated(cache: Instruction, new: Instruction) -> Instruction:
        flat = b.reshape(cache, (blocks * block, key_heads, size))
        return with_rows(b, flat, slots, new)

    keys = updated(key_cache, k)
    values = keys if latent else updated(node.input(VALUE_CACHE), v)
    seen_keys, seen_values = (_in_order(node, b, cache, block) for cache in (keys, values))
    width = node.int("v_head_size", 0) or size
    if latent:
        seen_values = b.slice(seen_values, [0] * 4, [*seen_values.shape[:3], width])
    # One query position for each token, and the keys of all sequences: those of others are hidden.
    stages = attend(
        b,
        b.transpose(b.reshape(q, (1, *q.shape)), [0, 2, 1, 3]),
        seen_keys,
        seen_values,
        node.float("scale", 0.0) or scale_for(node, size),
        Masking(allowed=_allowed(node, b, tokens, block), guard=True),
        softcap=node.float("softcap", 0.0),
        sink=node.optional_input(SINK),
    )
    heads_last = b.transpose(stages.output, [0, 2, 1, 3])
    output = b.reshape(heads_last, (q.shape[0], heads_last.shape[2] * heads_last.shape[3]))
    shape = key_cache.shape
    return [output, b.reshape(keys, shape), None if latent else b.reshape(values, shape)]


def _refuse_the_unknown(node: NodeView) -> None:
    for i, name in ((K_SCALE, "k_scale"), (V_SCALE, "v_scale")):
        if node.has_input(i):
            node.unsupported(f"the input {name} is not known", "keep the cache in the type of the queries")
    layout = node.string("kv_cache_layout", "SEPARATE")
    if layout not in ("SEPARATE", "LATENT"):
        node.unsupported(f"kv_cache_layout={layout!r} is not known", "SEPARATE and LATENT are")
    caches = [node.input(KEY_CACHE), *([node.input(VALUE_CACHE)] if layout == "SEPARATE" else [])]
    element = node.input(QUERY).tensor_type.element
    if any(len(c.shape) != 4 for c in caches) or any(c.shape != caches[0].shape for c in caches):
        node.shape_error("a cache is not [pages, page size, heads, size], or the two differ")
    if any(c.tensor_type.element is not element for c in caches):
        node.unsupported(f"a quantised cache is not known: queries are {element}", "keep the cache in that type")
    if layout == "LATENT" and (not node.float("scale", 0.0) or node.has_input(VALUE)):
        node.shape_error('kv_cache_layout="LATENT" wants the attribute scale, and no value')


def _read_heads(
    node: NodeView, b: Builder, key_heads: int, size: int, latent: bool
) -> tuple[Instruction, Instruction, Instruction]:
    """New queries, keys and values [tokens, heads, size]; of a latent cache, the keys are the values."""
    query, heads = node.input(QUERY), node.int("num_heads")
    if key_heads != node.int("kv_num_heads") or heads % key_heads or (latent and key_heads != 1):
        node.shape_error(f"{heads} query heads do not fit a cache of {key_heads}")
    if node.has_input(KEY):
        parts = [query, node.input(KEY), node.input(KEY) if latent else node.input(VALUE)]
    else:
        bounds = [0, heads * size, (heads + key_heads) * size, (heads + 2 * key_heads) * size]
        parts = [b.slice(query, [0, bounds[i]], [query.shape[0], bounds[i + 1]]) for i in range(3)]
    counts = (heads, key_heads, key_heads)
    if any(p.shape != (query.shape[0], n * size) for p, n in zip(parts, counts, strict=True)):
        node.shape_error(f"queries, keys and values do not fit heads of size {size}")
    q, k, v = (b.reshape(p, (p.shape[0], n, size)) for p, n in zip(parts, counts, strict=True))
    return q, k, v


def _locate(node: NodeView, b: Builder, count: int) -> _Tokens:
    starts, past = b.convert(node.input(STARTS), S64), b.convert(node.input(PAST), S64)
    sequences = past.shape[0]
    if starts.shape != (sequences + 1,) or len(node.input(PAGES).shape) != 2 or node.input(PAGES).shape[0] != sequences:
        node.shape_error(f"the starts or pages do not fit {sequences} sequences")
    token = b.iota(TensorType(S64, (count,)), 0)
    shape = (count, sequences)
    ends = b.broadcast(b.slice(starts, [1], [sequences + 1]), shape, [1])
    passed = b.compare(ends, b.broadcast(token, shape, [0]), "LE")
    sequence = b.reduce_by("add", b.convert(passed, S64), [1])
    begin = b.take(starts, sequence, 0)
    return _Tokens(sequence, b.add(b.subtract(token, begin), b.take(past, sequence, 0)))


def _rotated(node: NodeView, b: Builder, x: Instruction, place: Instruction) -> Instruction:
    """Queries or keys turned by their places, from the feature `rotary_offset` on."""
    offset = node.int("rotary_offset", 0)
    cos, sin = (b.take(node.input(i), place, 0) for i in (COS, SIN))
    cos, sin = (b.reshape(c, (1, *c.shape)) for c in (cos, sin))
    tail = b.slice(x, [0, 0, offset], list(x.shape))
    turned = rotate(b, b.reshape(tail, (1, *tail.shape)), cos, sin, bool(node.int("rotary_interleaved", 0)))
    turned = b.reshape(turned, tail.shape)
    return turned if offset == 0 else b.concatenate([b.slice(x, [0] * 3, [*x.shape[:2], offset]), turned], 2)


def _slots(node: NodeView, b: Builder, tokens: _Tokens, block: int) -> Instruction:
    """Where in the cache [pages * page size] each token's key goes; out of range where it goes nowhere."""
    if node.has_input(SLOTS):
        return b.convert(node.input(SLOTS), S64)
    pages = b.convert(node.input(PAGES), S64)
    sequences, each = pages.shape
    size = b.full_like(tokens.place, block)
    page = b.divide(tokens.place, size)
    entry = b.add(b.multiply(tokens.sequence, b.full_like(page, each)), page)
    at = b.take(b.reshape(pages, (sequences * each,)), entry, 0)
    slot = b.add(b.multiply(at, size), b.remainder(tokens.place, size))
    inside = b.and_(
        b.and_(b.compare(page, b.full_like(page, each), "LT"), b.compare(at, b.full_like(at, 0), "GE")),
        b.compare(tokens.sequence, b.full_like(page, sequences), "LT"),
    )
    return b.select(inside, slot, b.full_like(slot, -1))


def _in_order(node: NodeView, b: Builder, cache: Instruction, block: int) -> Instruction:
    """The keys or values of all sequences one behind the other: [1, heads, sequences * pages * page size, size]."""
    pages = b.convert(node.input(PAGES), S64)
    sequences, each = pages.shape
    _, heads, size = cache.shape
    paged = b.reshape(cache, (cache.shape[0] // block, block, heads, size))
    taken = b.reshape(b.take(paged, pages, 0), (1, sequences * each * block, heads, size))
    return b.transpose(taken, [0, 2, 1, 3])


def _allowed(node: NodeView, b: Builder, tokens: _Tokens, block: int) -> Instruction:
    """pred [1, 1, tokens, keys]: keys of a token's own sequence, on a page that there is, up to its own place."""
    pages = b.convert(node.input(PAGES), S64)
    sequences, each = pages.shape
    (count,), keys = tokens.place.shape, sequences * each * block
    shape = (count, sequences, each * block)
    there = b.compare(pages, b.full_like(pages, 0), "GE")
    there = b.broadcast(there, (count, sequences, each, block), [1, 2])
    key = b.iota(TensorType(S64, shape), 2)
    own = b.compare(b.iota(TensorType(S64, shape), 1), b.broadcast(tokens.sequence, shape, [0]), "EQ")
    if node.int("is_causal", 1):
        last = b.broadcast(tokens.place, shape, [0])
    else:
        starts, past = b.convert(node.input(STARTS), S64), b.convert(node.input(PAST), S64)
        new = b.subtract(b.slice(starts, [1], [sequences + 1]), b.slice(starts, [0], [sequences]))
        total = b.add(past, new)
        last = b.broadcast(b.subtract(total, b.full_like(total, 1)), shape, [1])
    seen = b.and_(own, b.compare(key, last, "LE"))
    window = node.int("local_window_size", -1)
    if window > 0:
        first = b.subtract(tokens.place, b.full_like(tokens.place, window - 1))
        seen = b.and_(seen, b.compare(key, b.broadcast(first, shape, [0]), "GE"))
    return b.and_(b.reshape(seen, (1, 1, count, keys)), b.reshape(there, (1, 1, count, keys)))
