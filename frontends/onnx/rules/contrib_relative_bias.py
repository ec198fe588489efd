"""onnxruntime's position biases (com.microsoft.RelativePositionBias, GatedRelativePositionBias)."""

import numpy as np

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.attention_core import heads_first
from onnxla.frontends.onnx.rules.contrib_padding import restored
from onnxla.frontends.onnx.rules.precision import wide_element
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import S64, Array

MICROSOFT = "com.microsoft"


@onnx_op("RelativePositionBias", domain=MICROSOFT)
def relative_position_bias(node: NodeView, b: Builder) -> Instruction:
    """[1, heads, queries, keys]: the table's entry for the bucket of the distance between key and query.

    The table says that it is [buckets, heads], and is laid out by columns.
    """
    table = node.input(0)
    if len(table.shape) != 2:
        node.shape_error(f"the table {table.tensor_type} is not [buckets, heads]")
    buckets, heads = table.shape
    (queries,), (keys,) = node.constant_ints(1), node.constant_ints(2)
    node.require_table(queries * keys)
    distance = np.arange(keys)[None, :] - np.arange(queries)[:, None]
    places = _bucket(distance, buckets, node.int("max_distance"), bool(node.int("is_bidirectional", 0)))
    picked = b.take(b.reshape(table, (heads, buckets)), b.constant(places, S64), 1)
    return b.reshape(picked, (1, heads, queries, keys))


def _bucket(distance: Array, buckets: int, longest: int, both_ways: bool) -> Array:
    """T5's buckets (Raffel and others 2020): near distances have one each, further ones share them by their logarithm,
    and those beyond `longest` the last. Keys ahead have a half of the buckets to themselves, or count as near."""
    start = np.zeros_like(distance)
    if both_ways:
        buckets //= 2
        start = np.where(distance > 0, buckets, 0)
        distance = np.abs(distance)
    else:
        distance = np.maximum(-distance, 0)
    exact = max(buckets // 2, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.log(distance.astype(np.float32) / np.float32(exact)) / np.float32(np.log(longest / exact))
        far = exact + np.nan_to_num(share * np.float32(buckets - exact), neginf=0).astype(np.int64)
    return start + np.where(distance < exact, distance, np.minimum(far, buckets - 1))


@onnx_op("GatedRelativePositionBias", domain=MICROSOFT)
def gated_relative_position_bias(node: NodeView, b: Builder) -> Instruction:
    """rel_pos times u * (r * eco_a - 1) + 2, where u and r are gates of the query."""
    query, heads = node.input(0), node.int("num_heads")
    if node.has_input(6):
        query = restored(node, b, query, node.input(6))
    element = query.tensor_type.element
    wide = wide_element(element)
    query = b.convert(b.add(query, b.broadcast(node.input(1), query.shape, [2])), wide)
    weight, bias, relative = (b.convert(node.input(i), wide) for i in (3, 4, 2))
    gates = b.dot(heads_first(b, query, heads), weight, [3], [0])
    gates = b.add(gates, b.broadcast(bias, gates.shape, [3]))
    batch, _, length, width = gates.shape
    if width % 2 or relative.shape != (1, heads, length, length):
        node.shape_error(f"{width} gates or positions {relative.tensor_type} do not fit {heads} heads of {length}")
    sums = b.reduce_by("add", b.reshape(gates, (batch, heads, length, 2, width // 2)), [4])
    opened = b.unary("logistic", sums)
    u, r = (b.slice(opened, [0, 0, 0, i], [batch, heads, length, i + 1]) for i in (0, 1))
    eco = b.numpy_broadcast(b.convert(node.input(5), wide), r.shape)
    one = b.full_like(r, 1)
    factor = b.add(b.multiply(u, b.subtract(b.multiply(r, eco), one)), b.full_like(r, 2))
    shape = (batch, heads, length, length)
    return b.convert(b.multiply(b.numpy_broadcast(factor, shape), b.numpy_broadcast(relative, shape)), element)
