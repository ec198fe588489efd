"""What is done to the scores of the next token before one is chosen (com.microsoft's BeamSearch and kin).

Sequences are s32 [rows, length], scores f32 [rows, words]; a row is a batch element, or a beam of one. The
order is onnxruntime's: repetitions, n-grams, masks of words, least length, temperature, presence.
"""

from dataclasses import dataclass

import numpy as np

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.rules.contrib_padding import with_rows
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import F32, PRED, S64

FORBIDDEN = float(np.finfo(np.float32).min)


@dataclass(frozen=True)
class ScoreRules:
    """Inputs and attributes of the operator that change scores; None where left out."""

    end_token: int
    repetition_penalty: Instruction | None = None
    ngram: int = 0
    words: Instruction | None = None
    """s32 [words]: 0 for those that never come."""
    first_words: Instruction | None = None
    """s32 [rows, words]: 0 for those that do not come first."""
    least_length: Instruction | None = None
    temperature: float | Instruction | None = None
    presence: Instruction | None = None
    """s32 [rows, words], of which presence_penalty times is taken off."""
    presence_penalty: float = 0.0


def one_number(node: NodeView, b: Builder, i: int) -> Instruction | None:
    """Input `i`, of one element, as a scalar; None where it is left out."""
    value = node.optional_input(i)
    if value is not None and value.tensor_type.size != 1:
        node.shape_error(f"input {node.input_name(i)} must be one number")
    return None if value is None else b.reshape(value, ())


def ruled(b: Builder, rules: ScoreRules, scores: Instruction, sequences: Instruction, first: bool) -> Instruction:
    """The scores after all rules; `first` for the first token that is generated."""
    rows, length = sequences.shape
    if rules.repetition_penalty is not None:
        penalty = b.broadcast_scalar(b.convert(rules.repetition_penalty, F32), scores.shape)
        below = b.compare(scores, b.full_like(scores, 0), "LT")
        changed = b.select(below, b.multiply(scores, penalty), b.divide(scores, penalty))
        scores = b.select(_occurs(b, sequences, scores), changed, scores)
    if 0 < rules.ngram <= length:
        scores = _without(b, scores, _repeats(b, sequences, scores, rules.ngram))
    masks = [rules.words, *([rules.first_words] if first else [])]
    for mask in masks:
        if mask is not None:
            hidden = b.compare(mask, b.full_like(mask, 0), "EQ")
            hidden = b.broadcast(hidden, scores.shape, [1] if len(mask.shape) == 1 else [0, 1])
            scores = _without(b, scores, hidden)
    if rules.least_length is not None:
        short = b.compare(b.constant(length, S64), b.convert(rules.least_length, S64), "LT")
        word = np.arange(scores.shape[1]) == rules.end_token
        ending = b.broadcast(b.constant(word), scores.shape, [1])
        scores = _without(b, scores, b.and_(ending, b.broadcast_scalar(short, scores.shape)))
    if isinstance(rules.temperature, Instruction):
        # A temperature of 0 or less changes nothing.
        given = b.convert(rules.temperature, F32)
        divisor = b.select(b.compare(given, b.full_like(given, 0), "GT"), given, b.full_like(given, 1))
        scores = b.divide(scores, b.broadcast_scalar(divisor, scores.shape))
    elif rules.temperature is not None and rules.temperature > 0:
        scores = b.divide(scores, b.full_like(scores, rules.temperature))
    if rules.presence is not None:
        taken = b.multiply(b.convert(rules.presence, F32), b.full_like(scores, rules.presence_penalty))
        scores = b.subtract(scores, taken)
    return scores


def _without(b: Builder, scores: Instruction, hidden: Instruction) -> Instruction:
    return b.select(hidden, b.full_like(scores, FORBIDDEN), scores)


def _marked(b: Builder, scores: Instruction, tokens: Instruction, where: Instruction | None) -> Instruction:
    """pred like `scores`: the words among `tokens` s32 [rows, n], those for which `where` holds."""
    rows, words = scores.shape
    row = np.broadcast_to(np.arange(rows)[:, None] * words, tokens.shape)
    word = b.convert(tokens, S64)
    inside = b.and_(b.compare(word, b.full_like(word, 0), "GE"), b.compare(word, b.full_like(word, words), "LT"))
    where = inside if where is None else b.and_(inside, where)
    place = b.select(where, b.add(b.constant(row, S64), word), b.full_like(word, -1))
    count = tokens.tensor_type.size
    marked = with_rows(
        b, b.full((rows * words,), False, PRED), b.reshape(place, (count,)), b.full((count,), True, PRED)
    )
    return b.reshape(marked, scores.shape)


def _occurs(b: Builder, sequences: Instruction, scores: Instruction) -> Instruction:
    return _marked(b, scores, sequences, None)


def _repeats(b: Builder, sequences: Instruction, scores: Instruction, n: int) -> Instruction:
    """pred like `scores`: words that would end an n-gram which the sequence has already."""
    rows, length = sequences.shape
    count = length - n + 1
    followers = b.slice(sequences, [0, n - 1], [rows, length])
    if n == 1:
        return _marked(b, scores, followers, None)
    places = np.arange(count)[:, None] + np.arange(n - 1)
    windows = b.take(sequences, b.constant(places, S64), 1)
    ending = b.slice(sequences, [0, length - n + 1], [rows, length])
    same = b.compare(windows, b.broadcast(ending, windows.shape, [0, 2]), "EQ")
    return _marked(b, scores, followers, b.reduce_by("and", same, [2]))
