"""Scaled dot-product attention, as all attention operators share it.

Queries are [batch, heads, queries, size], keys and values [batch, key_heads, keys, size]; `heads` is a
multiple of `key_heads`, and each key head serves a group of neighbouring query heads. Scores and
softmax are in f32 for half precision.
"""

from dataclasses import dataclass

import numpy as np

from onnxla.frontends.onnx.broadcasting import shape_of_broadcast
from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.rules.precision import wide_element
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import PRED, S64, ElementType, Shape, TensorType


def scale_for(node: NodeView, size: int) -> float:
    """1 / sqrt(size of a head)."""
    if size == 0:
        node.shape_error("heads of size 0 have no scale 1 / sqrt(size)", "give the attribute scale")
    return float(size**-0.5)


@dataclass(frozen=True)
class Masking:
    """What is added to the scores, and which keys a query sees; both stretch to [batch, heads, queries, keys]."""

    bias: Instruction | None = None
    allowed: Instruction | None = None
    """pred; where false the score is minus infinity."""
    guard: bool = False
    """Whether a query may see no key at all: its probabilities are then zero."""

    def applied(self, b: Builder, scores: Instruction) -> Instruction:
        if self.bias is not None:
            scores = b.add(scores, b.numpy_broadcast(b.convert(self.bias, scores.tensor_type.element), scores.shape))
        if self.allowed is not None:
            lowest = b.full_like(scores, -np.inf)
            scores = b.select(b.numpy_broadcast(self.allowed, scores.shape), scores, lowest)
        return scores

    def sees_nothing(self, b: Builder, shape: Shape, element: ElementType) -> Instruction:
        """pred [batch, heads, queries]: whether bias and mask together are minus infinity for every key."""
        total = b.full((), 0, element) if self.bias is None else b.convert(self.bias, element)
        own = () if self.allowed is None else self.allowed.shape
        common = shape_of_broadcast(total.shape, own, (1,) * len(shape))
        total = Masking(allowed=self.allowed).applied(b, b.numpy_broadcast(total, common))
        nothing = b.compare(b.reduce_by("maximum", total, [3]), b.full(common[:3], -np.inf, element), "EQ")
        return b.numpy_broadcast(nothing, shape[:3])


@dataclass(frozen=True)
class Attended:
    """The stages of attention: scores [batch, heads, queries, keys], and the output [batch, heads, queries, size]."""

    scores: Instruction
    capped: Instruction
    masked: Instruction
    probabilities: Instruction
    output: Instruction


def attend(
    b: Builder,
    q: Instruction,
    k: Instruction,
    v: Instruction,
    scale: float,
    masking: Masking,
    *,
    softcap: float = 0.0,
    sink: Instruction | None = None,
    softmax_element: ElementType | None = None,
) -> Attended:
    """softmax(mask(cap(q k' scale))) v.

    `softcap` bounds the scores to -softcap..softcap. `sink` [heads] is the score of a key that
    has no value. `softmax_element` rounds scores and probabilities to that type.
    """
    element = q.tensor_type.element
    wide = wide_element(element)
    scores = _scores(b, q, k, wide)
    scores = b.multiply(scores, b.full_like(scores, scale))
    capped = scores
    if softcap:
        cap = b.full_like(scores, softcap)
        capped = b.multiply(cap, b.unary("tanh", b.divide(scores, cap)))
    masked = masking.applied(b, capped)
    rounded = masked
    if softmax_element is not None and softmax_element is not wide:
        rounded = b.convert(b.convert(masked, softmax_element), wide_element(softmax_element))
    probabilities = _softmax(b, rounded, sink)
    if softmax_element is not None:
        probabilities = b.convert(probabilities, softmax_element)
    if masking.guard:
        nothing = masking.sees_nothing(b, scores.shape, wide)
        blank = b.broadcast(nothing, scores.shape, [0, 1, 2])
        probabilities = b.select(blank, b.full_like(probabilities, 0), probabilities)
    probabilities = b.convert(probabilities, element)
    return Attended(scores, capped, masked, probabilities, _weighted(b, probabilities, v, element))


def _scores(b: Builder, q: Instruction, k: Instruction, wide: ElementType) -> Instruction:
    batch, heads, queries, size = q.shape
    key_heads, keys = k.shape[1], k.shape[2]
    if heads == key_heads:
        return b.dot(q, k, [3], [3], [0, 1], [0, 1], wide)
    grouped = b.reshape(q, (batch, key_heads, heads // key_heads * queries, size))
    return b.reshape(b.dot(grouped, k, [3], [3], [0, 1], [0, 1], wide), (batch, heads, queries, keys))


def _weighted(b: Builder, probabilities: Instruction, v: Instruction, element: ElementType) -> Instruction:
    batch, heads, queries, keys = probabilities.shape
    key_heads, size = v.shape[1], v.shape[3]
    grouped = probabilities
    if heads != key_heads:
        grouped = b.reshape(probabilities, (batch, key_heads, heads // key_heads * queries, keys))
    output = b.dot(grouped, v, [3], [2], [0, 1], [0, 1], wide_element(element))
    return b.convert(b.reshape(output, (batch, heads, queries, size)), element)


def _softmax(b: Builder, scores: Instruction, sink: Instruction | None) -> Instruction:
    """Softmax over the keys, a sink's exponential being part of the sum."""
    rows = [0, 1, 2]
    largest = b.reduce_by("maximum", scores, [3])
    spread_sink = None
    if sink is not None:
        spread_sink = b.broadcast(b.convert(sink, scores.tensor_type.element), largest.shape, [1])
        largest = b.maximum(largest, spread_sink)
    exponentials = b.exponential(b.subtract(scores, b.broadcast(largest, scores.shape, rows)))
    total = b.reduce_by("add", exponentials, [3])
    if spread_sink is not None:
        total = b.add(total, b.exponential(b.subtract(spread_sink, largest)))
    share = b.divide(b.full_like(total, 1), total)  # one division for each row; the total is 1 or more
    return b.multiply(exponentials, b.broadcast(share, scores.shape, rows))


def heads_first(b: Builder, x: Instruction, heads: int) -> Instruction:
    """[batch, length, heads * size] as [batch, heads, length, size]."""
    batch, length, width = x.shape
    return b.transpose(b.reshape(x, (batch, length, heads, width // heads)), [0, 2, 1, 3])


def heads_last(b: Builder, x: Instruction) -> Instruction:
    """[batch, heads, length, size] as [batch, length, heads * size]."""
    batch, heads, length, size = x.shape
    return b.reshape(b.transpose(x, [0, 2, 1, 3]), (batch, length, heads * size))


def sees_past(
    b: Builder, queries: int, keys: int, offset: int | Instruction, *, left: int | None, right: int | None
) -> Instruction:
    """pred [batch or 1, 1, queries, keys]: query i, which stands at p = i + offset, sees keys p - left to p + right.

    `offset` is one number, or s64 [batch]; None leaves a side open.
    """
    type = TensorType(S64, (1, 1, queries, keys))
    query, key = b.iota(type, 2), b.iota(type, 3)
    if isinstance(offset, int):
        place = b.add(query, b.full_like(query, offset))
    else:
        shape = (offset.shape[0], 1, queries, keys)
        query, key = (b.numpy_broadcast(v, shape) for v in (query, key))
        place = b.add(query, b.broadcast(offset, shape, [0]))
    seen = None
    if right is not None:
        seen = b.compare(key, b.add(place, b.full_like(place, right)), "LE")
    if left is not None:
        not_before = b.compare(key, b.subtract(place, b.full_like(place, left)), "GE")
        seen = not_before if seen is None else b.and_(seen, not_before)
    return b.full(place.shape, True, PRED) if seen is None else seen


def both(b: Builder, first: Instruction | None, second: Instruction) -> Instruction:
    """The conjunction of two masks at their common shape; None allows everything."""
    if first is None:
        return second
    shape = shape_of_broadcast(first.shape, second.shape)
    return b.and_(b.numpy_broadcast(first, shape), b.numpy_broadcast(second, shape))
