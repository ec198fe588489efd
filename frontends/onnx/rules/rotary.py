"""Rotary position embedding: pairs of features turned by the angle of their position."""

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.precision import wide_element
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import S64, TensorType


def rotate(b: Builder, x: Instruction, cos: Instruction, sin: Instruction, interleaved: bool) -> Instruction:
    """`x` [batch, length, heads, size] with its first 2 * half features turned; cos and sin are [batch, length, half].

    The pairs are features i and i + half, or 2i and 2i + 1 where interleaved.
    """
    element = x.tensor_type.element
    batch, length, heads, size = x.shape
    half = cos.shape[-1]
    wide = wide_element(element)
    turned = b.convert(b.slice(x, [0, 0, 0, 0], [batch, length, heads, 2 * half]), wide)
    pairs = b.reshape(turned, (batch, length, heads, half, 2) if interleaved else (batch, length, heads, 2, half))
    axis = 4 if interleaved else 3
    shape = (batch, length, heads, half)

    def member(k: int) -> Instruction:
        starts, limits = [0] * 5, list(pairs.shape)
        starts[axis], limits[axis] = k, k + 1
        return b.reshape(b.slice(pairs, starts, limits), shape)

    c, s = (b.broadcast(b.convert(v, wide), shape, [0, 1, 3]) for v in (cos, sin))
    first, second = member(0), member(1)
    real = b.subtract(b.multiply(c, first), b.multiply(s, second))
    imaginary = b.add(b.multiply(s, first), b.multiply(c, second))
    stacked = (*shape, 1) if interleaved else (batch, length, heads, 1, half)
    joined = b.concatenate([b.reshape(real, stacked), b.reshape(imaginary, stacked)], axis)
    joined = b.convert(b.reshape(joined, (batch, length, heads, 2 * half)), element)
    if 2 * half == size:
        return joined
    return b.concatenate([joined, b.slice(x, [0, 0, 0, 2 * half], list(x.shape))], 3)


def angles_at(b: Builder, cache: Instruction, places: Instruction, batch: int) -> Instruction:
    """Rows of a cache [positions, half] at `places` [batch or 1, length], as [batch, length, half]."""
    rows = b.take(cache, places, 0)
    return b.numpy_broadcast(rows, (batch, *rows.shape[1:]))


def consecutive(b: Builder, start: Instruction, length: int) -> Instruction:
    """start, start + 1, ... as s64 [batch, length], for `start` s64 [batch]."""
    shape = (start.shape[0], length)
    return b.add(b.broadcast(start, shape, [0]), b.iota(TensorType(S64, shape), 1))


@onnx_op("RotaryEmbedding", since=23)
def rotary_embedding(node: NodeView, b: Builder) -> Instruction:
    """X is [batch, heads, length, size], or [batch, length, heads * size]; caches are rows by position_ids."""
    x, cos, sin = node.input(0), node.input(1), node.input(2)
    length_first = _length_first(node, b, x)
    batch = length_first.shape[0]
    places = node.optional_input(3)
    if places is not None:
        cos, sin = (angles_at(b, cache, places, batch) for cache in (cos, sin))
    if cos.shape[:2] != length_first.shape[:2] or cos.shape != sin.shape:
        node.shape_error("cos_cache and sin_cache must be [batch, length, half] without position_ids")
    wanted = node.int("rotary_embedding_dim", 0) or length_first.shape[3]
    if 2 * cos.shape[-1] != wanted:
        node.shape_error(f"caches of {cos.shape[-1]} angles do not fit {wanted} features")
    return _like(b, rotate(b, length_first, cos, sin, bool(node.int("interleaved", 0))), x)


@onnx_op("RotaryEmbedding", domain="com.microsoft")
def rotary_embedding_of_onnxruntime(node: NodeView, b: Builder) -> Instruction:
    """position_ids [batch, length], or one number that the first position has."""
    if node.int("is_packed_batching", 0):
        node.unsupported("is_packed_batching=1 (ragged batches) is not known", "pad the batch")
    x, places = node.input(0), b.convert(node.input(1), S64)
    cos, sin = node.input(2), node.input(3)
    heads = node.int("num_heads", 0)
    if len(x.shape) == 3 and not heads:
        heads = x.shape[2] // (node.int("rotary_embedding_dim", 0) or 2 * cos.shape[1])
    length_first = _length_first(node, b, x, heads)
    batch, length = length_first.shape[:2]
    if places.tensor_type.size == 1 and places.shape != (batch, length):
        places = consecutive(b, b.reshape(places, (1,)), length)
    if 2 * cos.shape[1] > length_first.shape[3]:
        node.shape_error(f"caches of {cos.shape[1]} angles do not fit {length_first.shape[3]} features")
    turned = rotate(
        b,
        length_first,
        angles_at(b, cos, places, batch),
        angles_at(b, sin, places, batch),
        bool(node.int("interleaved", 0)),
    )
    return _like(b, turned, x)


def _length_first(node: NodeView, b: Builder, x: Instruction, heads: int | None = None) -> Instruction:
    """X as [batch, length, heads, size]."""
    if len(x.shape) == 4:
        return b.transpose(x, [0, 2, 1, 3])
    heads = node.int("num_heads", 0) if heads is None else heads
    if len(x.shape) != 3 or heads < 1 or x.shape[2] % heads:
        node.shape_error(f"{x.tensor_type} does not divide into {heads} heads (attribute num_heads)")
    return b.reshape(x, (*x.shape[:2], heads, x.shape[2] // heads))


def _like(b: Builder, turned: Instruction, x: Instruction) -> Instruction:
    """[batch, length, heads, size] in the form that `x` has."""
    return b.transpose(turned, [0, 2, 1, 3]) if len(x.shape) == 4 else b.reshape(turned, x.shape)
