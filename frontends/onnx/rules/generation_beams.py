"""The beams of com.microsoft.BeamSearch: which tokens go on, and the best sequences that have ended.

`beams` sequences of each batch element are kept, and as many ended ones (hypotheses), whose score is the sum of
their log-probabilities over a power of their length. A batch element is done when no beam can be better than the
worst of them.
"""

from dataclasses import dataclass

import numpy as np

from onnxla.frontends.onnx.rules.ordering import sort_order
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import F32, PRED, S32, S64, Array, TensorType

NEVER = -1e9
"""The score of beams that are not there yet: at first all but one, since all would be the same."""


@dataclass(frozen=True)
class Search:
    """What is asked for."""

    batch: int
    beams: int
    longest: int
    end_token: int
    pad_token: int
    length_penalty: Instruction
    """f32 scalar."""
    early_stopping: bool


@dataclass(frozen=True)
class Hypotheses:
    """Ended sequences [batch, beams, longest], the places in use first; -inf is the score of a free place."""

    tokens: Instruction
    scores: Instruction
    """f32 [batch, beams]"""
    count: Instruction
    """s32 [batch]"""
    done: Instruction
    """pred [batch]"""


@dataclass(frozen=True)
class Next:
    """How the beams go on: [batch, beams] each; `origin` is a row of all beams."""

    scores: Instruction
    tokens: Instruction
    origin: Instruction


def none_yet(b: Builder, search: Search) -> Hypotheses:
    shape = (search.batch, search.beams)
    return Hypotheses(
        b.full((*shape, search.longest), search.pad_token, S32),
        b.full(shape, -np.inf, F32),
        b.full((search.batch,), 0, S32),
        b.full((search.batch,), False, PRED),
    )


def best(b: Builder, scores: Instruction, k: int) -> tuple[Instruction, Instruction]:
    """The k largest of f32 [rows, n], largest first, and their places s32."""
    places = b.iota(TensorType(S32, scores.shape), 1)
    ordered = b.sort([scores, places], 1, sort_order(F32, largest=True))
    rows = scores.shape[0]
    values, at = (b.slice(b.get_tuple_element(ordered, i), [0, 0], [rows, k]) for i in range(2))
    return values, at


def _column(b: Builder, x: Instruction, j: int) -> Instruction:
    return b.reshape(b.slice(x, [0, j], [x.shape[0], j + 1]), (x.shape[0],))


def _over_length(b: Builder, search: Search, total: Instruction, length: int) -> Instruction:
    """total / length ** length_penalty"""
    power = b.power(b.constant(length, F32), search.length_penalty)
    return b.divide(total, b.broadcast_scalar(power, total.shape))


def added(
    b: Builder, search: Search, held: Hypotheses, rows: Instruction, total: Instruction, where: Instruction
) -> Hypotheses:
    """With `rows` s32 [batch, length], whose log-probabilities sum to `total`, where they are among the best."""
    batch, length = rows.shape
    beams = search.beams
    score = _over_length(b, search, total, length)
    worst = b.reduce_by("minimum", held.scores, [1])
    full = b.compare(held.count, b.full_like(held.count, beams), "GE")
    fits = b.and_(where, b.or_(b.not_(full), b.compare(score, worst, "GT")))
    # The first free place, or that of the first of the worst.
    place = b.iota(TensorType(S32, held.scores.shape), 1)
    is_worst = b.compare(held.scores, b.broadcast(worst, held.scores.shape, [0]), "EQ")
    nowhere = b.full_like(place, beams)
    first_worst = b.reduce_by("minimum", b.select(is_worst, place, nowhere), [1])
    target = b.select(full, first_worst, held.count)
    target = b.select(fits, target, b.full_like(target, -1))
    chosen = b.compare(place, b.broadcast(target, place.shape, [0]), "EQ")
    padded = b.pad(rows, b.constant(search.pad_token, S32), [0, 0], [0, search.longest - length])
    shape = held.tokens.shape
    tokens = b.select(b.broadcast(chosen, shape, [0, 1]), b.broadcast(padded, shape, [0, 2]), held.tokens)
    scores = b.select(chosen, b.broadcast(score, held.scores.shape, [0]), held.scores)
    grown = b.convert(b.and_(fits, b.not_(full)), S32)
    return Hypotheses(tokens, scores, b.add(held.count, grown), held.done)


def chosen(
    b: Builder, search: Search, held: Hypotheses, sequences: Instruction, scores: Instruction
) -> tuple[Hypotheses, Next]:
    """One step over `scores` f32 [batch * beams, words]: twice as many candidates as beams, best first. Those that
    end become hypotheses where they are among the first half; the first others go on."""
    batch, beams, (_, words) = search.batch, search.beams, scores.shape
    length = sequences.shape[1]
    values, places = best(b, b.reshape(scores, (batch, beams * words)), 2 * beams)
    width = b.full_like(places, words)
    beam, token = b.divide(places, width), b.remainder(places, width)
    first_row = b.constant(np.broadcast_to(np.arange(batch, dtype=np.int64)[:, None] * beams, (batch, 2 * beams)))
    row = b.add(first_row, b.convert(beam, S64))
    ends = b.compare(token, b.full_like(token, search.end_token), "EQ")
    going = b.not_(held.done)
    for j in range(beams):
        ended = b.take(sequences, _column(b, row, j), 0)
        held = added(b, search, held, ended, _column(b, values, j), b.and_(going, _column(b, ends, j)))
    taken = _first_of(b, b.not_(ends), beams)
    blank = b.broadcast(held.done, (batch, beams), [0])

    def picked(x: Instruction, when_done: float) -> Instruction:
        """What the beams that go on have of the candidates' `x`; of an element that is done, something."""
        element = x.tensor_type.element
        zero = b.full((batch, beams, 2 * beams), 0, element)
        spread = b.select(taken, b.broadcast(x, zero.shape, [0, 2]), zero)
        return b.select(blank, b.full((batch, beams), when_done, element), b.reduce_by("add", spread, [2]))

    after = Next(picked(values, 0.0), picked(token, search.pad_token), picked(row, 0))
    return _judged(b, search, held, values, length), after


def _first_of(b: Builder, flags: Instruction, count: int) -> Instruction:
    """pred [batch, count, n]: whether an element is number i of those whose flag [batch, n] is set."""
    batch, n = flags.shape
    before: Array = np.triu(np.ones((n, n), np.int32), 1)
    order = b.dot(b.convert(flags, S32), b.constant(before), [1], [0])
    shape = (batch, count, n)
    number = b.iota(TensorType(S32, shape), 1)
    return b.and_(b.broadcast(flags, shape, [0, 2]), b.compare(b.broadcast(order, shape, [0, 2]), number, "EQ"))


def _judged(b: Builder, search: Search, held: Hypotheses, values: Instruction, length: int) -> Hypotheses:
    """`done` where there are enough hypotheses and no candidate can be better than the worst."""
    enough = b.compare(held.count, b.full_like(held.count, search.beams), "GE")
    if not search.early_stopping:
        worst = b.reduce_by("minimum", held.scores, [1])
        possible = _over_length(b, search, _column(b, values, 0), length)
        enough = b.and_(enough, b.compare(worst, possible, "GE"))
    return Hypotheses(held.tokens, held.scores, held.count, b.or_(held.done, enough))


def finished(
    b: Builder, search: Search, held: Hypotheses, sequences: Instruction, totals: Instruction, wanted: int
) -> tuple[Instruction, Instruction]:
    """The `wanted` best sequences of each batch element, best first, and their scores; beams that are still going
    count as ended."""
    batch, beams = search.batch, search.beams
    by_beam = b.reshape(sequences, (batch, beams, sequences.shape[1]))
    for j in range(beams):
        rows = b.reshape(b.slice(by_beam, [0, j, 0], [batch, j + 1, sequences.shape[1]]), (batch, sequences.shape[1]))
        held = added(b, search, held, rows, _column(b, totals, j), b.not_(held.done))
    scores, places = best(b, held.scores, wanted)
    flat = b.reshape(held.tokens, (batch * beams, search.longest))
    first = b.constant(np.broadcast_to(np.arange(batch, dtype=np.int64)[:, None] * beams, (batch, wanted)))
    return b.take(flat, b.add(first, b.convert(places, S64)), 0), scores
