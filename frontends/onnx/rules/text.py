"""TfIdfVectorizer: how often the n-grams of a pool occur in rows of tokens, which are numbers or strings."""

from dataclasses import dataclass

import numpy as np

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.string_movement import as_chosen
from onnxla.frontends.onnx.values import ChosenStrings, StringConstant
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import F32, S64, Array


@dataclass(frozen=True)
class _Pool:
    """The n-grams [count, n] of each length n, in the order of the attribute."""

    grams: dict[int, Array]
    count: int


def _read_pool(node: NodeView, tokens: Array) -> _Pool:
    """`tokens` is the attribute pool_int64s, or pool_strings as numbers; ngram_counts says where each length begins."""
    starts = [*node.ints("ngram_counts"), len(tokens)]
    grams = {}
    for n, (start, limit) in enumerate(zip(starts, starts[1:], strict=False), start=1):
        if not 0 <= start <= limit <= len(tokens) or (limit - start) % n:
            node.shape_error("ngram_counts does not divide the pool into n-grams")
        grams[n] = tokens[start:limit].reshape(-1, n)
    return _Pool(grams, sum(len(g) for g in grams.values()))


@onnx_op("TfIdfVectorizer", since=9)
def tf_idf_vectorizer(node: NodeView, b: Builder) -> Instruction:
    """Counts (TF), whether there is one times a weight (IDF), or counts times weights (TFIDF)."""
    mode, weights = node.string("mode"), node.floats("weights", ())
    if mode not in ("TF", "IDF", "TFIDF"):
        node.unsupported(f"mode={mode!r} is not known", "TF, IDF and TFIDF are")
    x, tokens = _numbered(node, b)
    is_row = len(x.shape) == 1
    if len(x.shape) not in (1, 2):
        node.shape_error("the tokens must be [length] or [batch, length]")
    x = b.reshape(x, (1, *x.shape)) if is_row else x
    pool = _read_pool(node, tokens)
    places = np.array(node.ints("ngram_indexes"), np.int64)
    if len(places) != pool.count or len(np.unique(places)) != pool.count or (places < 0).any():
        node.unsupported(
            "ngram_indexes must name a place of its own for every n-gram", "number the n-grams each by itself"
        )
    counts = _counts(node, b, x, pool)
    if mode == "IDF":
        counts = b.minimum(counts, b.full_like(counts, 1))
    if mode != "TF" and weights:
        factors = b.constant(np.array(weights, np.float32))
        counts = b.multiply(counts, b.broadcast(factors, counts.shape, [1]))
    width = int(places.max()) + 1 if len(places) else 0
    source = np.full(width, pool.count, np.int64)
    source[places] = np.arange(pool.count)
    padded = b.pad(counts, b.constant(0, F32), [0, 0], [0, 1])
    y = b.take(padded, b.constant(source), 1)
    return b.reshape(y, (width,)) if is_row else y


def _numbered(node: NodeView, b: Builder) -> tuple[Instruction, Array]:
    """The tokens of the input (s64) and of the pool as numbers; strings are numbered by the pool, others are -1."""
    value = node.value(0)
    if not isinstance(value, (StringConstant, ChosenStrings)):
        pool = np.array(node.ints("pool_int64s", ()), np.int64)
        return b.convert(node.input(0), S64), pool
    pool_strings = node.strings("pool_strings")
    number = {s: i for i, s in enumerate(dict.fromkeys(pool_strings))}
    chosen = as_chosen(b, value)
    numbers = np.array([number.get(s, -1) for s in chosen.table], np.int64)
    if chosen.input:
        numbers[-1] = -1
    tokens = b.take(b.constant(numbers), b.convert(chosen.places, S64), 0)
    return tokens, np.array([number[s] for s in pool_strings], np.int64)


def _counts(node: NodeView, b: Builder, x: Instruction, pool: _Pool) -> Instruction:
    """[batch, n-grams] in f32: places where a gram stands, its tokens `skip + 1` apart, for every skip allowed."""
    shortest, longest = node.int("min_gram_length"), node.int("max_gram_length")
    batch, length = x.shape
    parts = []
    for n, grams in pool.grams.items():
        total = b.full((batch, len(grams)), 0, F32)
        skips = range(node.int("max_skip_count") + 1) if n > 1 else range(1)
        for skip in skips if shortest <= n <= longest and len(grams) else ():
            places = length - (n - 1) * (skip + 1)
            if places > 0:
                total = b.add(total, _matches(b, x, grams, skip + 1, places))
        parts.append(total)
    return b.concatenate(parts, 1) if parts else b.full((batch, 0), 0, F32)


def _matches(b: Builder, x: Instruction, grams: Array, step: int, places: int) -> Instruction:
    """How many of the first `places` starts match each gram, its tokens `step` apart."""
    batch, shape = x.shape[0], (x.shape[0], places, len(grams))
    found: Instruction | None = None
    for j in range(grams.shape[1]):
        token = b.slice(x, [0, j * step], [batch, j * step + places])
        wanted = b.constant(np.ascontiguousarray(grams[:, j]))
        equal = b.compare(b.broadcast(token, shape, [0, 1]), b.broadcast(wanted, shape, [2]), "EQ")
        found = equal if found is None else b.and_(found, equal)
    assert found is not None
    return b.reduce_by("add", b.convert(found, F32), [1])
