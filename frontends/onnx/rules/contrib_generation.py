"""onnxruntime's generation of text (com.microsoft.GreedySearch, Sampling, BeamSearch and WhisperBeamSearch).

max_length, and the numbers of beams and of sequences, must be known while compiling. The decoder is written out
once for each token, as its past grows; what comes after all sequences have ended is computed, and not used.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from onnxla.errors import ResourceLimitError
from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.contrib_padding import with_rows
from onnxla.frontends.onnx.rules.cumulative import running
from onnxla.frontends.onnx.rules.generation_beams import NEVER, Search, chosen, finished, none_yet
from onnxla.frontends.onnx.rules.generation_decoder import Decoder, GptDecoder, repeated, speech_to_text, text_to_text
from onnxla.frontends.onnx.rules.generation_scores import ScoreRules, one_number, ruled
from onnxla.frontends.onnx.rules.ordering import extreme_position, sort_order
from onnxla.frontends.onnx.rules.random import threefry
from onnxla.frontends.onnx.rules.softmax import log_softmax_over, softmax_over
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import F32, PRED, S32, S64, TensorType

MICROSOFT = "com.microsoft"
GPT, ENCODER_DECODER = 0, 1

Choose = Callable[[Instruction, int], Instruction]
"""The next tokens s32 [rows] from scores [rows, words], in a step by number."""


def _known_number(node: NodeView, i: int, default: int | None = None) -> int:
    if default is not None and not node.has_input(i):
        return default
    values = node.constant_ints(i)
    if len(values) != 1 or values[0] < 1:
        node.shape_error(f"input {node.input_name(i)} is {list(values)}, not one positive number")
    return values[0]


def _steps(node: NodeView, longest: int, length: int) -> int:
    """How many tokens are generated."""
    steps, limit = longest - length, node.host.unrolled_iterations
    if steps < 1:
        node.shape_error(f"max_length {longest} leaves no room behind {length} tokens")
    if steps > limit:
        cause = f"{steps} tokens are to be generated, and the decoder is written out for each; the limit is {limit}"
        hint = f"set ONNXLA_MAX_UNROLLED={steps}, give a smaller max_length, or run the decoder token by token"
        raise ResourceLimitError(f"{cause}\n  node   {node.source}\n  hint   {hint}")
    return steps


@dataclass(frozen=True)
class _Kind:
    """Which inputs the operator has where; None where it has none."""

    least_length: int
    repetition_penalty: int
    words: int
    first_words: int


def _score_rules(node: NodeView, b: Builder, kind: _Kind, beams: int, words: int) -> ScoreRules:
    mask, first = node.optional_input(kind.words), node.optional_input(kind.first_words)
    if mask is not None and mask.shape != (words,) or first is not None and first.shape[1:] != (words,):
        node.shape_error(f"a mask of words does not fit {words} words")
    return ScoreRules(
        node.int("eos_token_id"),
        one_number(node, b, kind.repetition_penalty),
        node.int("no_repeat_ngram_size", 0),
        mask,
        None if first is None else repeated(b, first, beams),
        one_number(node, b, kind.least_length),
    )


def _row_by_row(
    node: NodeView,
    b: Builder,
    decoder: GptDecoder,
    rules: ScoreRules,
    scores: Instruction,
    choose: Choose,
    longest: int,
) -> Instruction:
    """Sequences [batch, longest], one token at a time; behind the end token there is padding."""
    sequences = decoder.sequences
    rows, length = sequences.shape
    steps = _steps(node, longest, length)
    ended = b.full((rows,), False, PRED)
    pad = b.full((rows,), node.int("pad_token_id"), S32)
    for step in range(steps):
        ranked = ruled(b, rules, scores, sequences, step == 0)
        tokens = choose(ranked, step)
        ended = b.or_(ended, b.compare(tokens, b.full_like(tokens, rules.end_token), "EQ"))
        tokens = b.select(ended, pad, tokens)
        sequences = b.concatenate([sequences, b.reshape(tokens, (rows, 1))], 1)
        if step + 1 < steps:
            scores = decoder.advance(tokens, None)
    return sequences


def _only_gpt(node: NodeView) -> None:
    if node.int("model_type", GPT) != GPT:
        node.unsupported(f"model_type={node.int('model_type')} is not known", "0, a decoder alone, is")


@onnx_op("GreedySearch", domain=MICROSOFT)
def greedy_search(node: NodeView, b: Builder) -> Instruction:
    """Always the token of the highest score."""
    _only_gpt(node)
    longest = _known_number(node, 1)
    decoder = GptDecoder(node, b, 1, 6)
    _steps(node, longest, decoder.sequences.shape[1])
    scores = decoder.begin()
    rules = _score_rules(node, b, _Kind(2, 3, 4, 5), 1, scores.shape[1])

    def choose(ranked: Instruction, _step: int) -> Instruction:
        return extreme_position(node, b, ranked, 1, largest=True)

    return _row_by_row(node, b, decoder, rules, scores, choose, longest)


@onnx_op("Sampling", domain=MICROSOFT)
def sampling(node: NodeView, b: Builder) -> Instruction:
    """Tokens drawn by their probabilities, those outside of the likeliest `top_p` left out.

    Drawn with Threefry by `seed`, which must be known, or by the node's name: the same tokens in every run.
    """
    _only_gpt(node)
    if node.has_output(1):
        node.unsupported("the output filtered_logits is not known", "onnxruntime's kernel for CPUs gives none either")
    longest = _known_number(node, 1)
    decoder = GptDecoder(node, b, 1, 6)
    _steps(node, longest, decoder.sequences.shape[1])
    scores = decoder.begin()
    plain = _score_rules(node, b, _Kind(2, 3, 4, 5), 1, scores.shape[1])
    presence = node.optional_input(7)
    if presence is not None and presence.shape != scores.shape:
        node.shape_error(f"presence_mask {presence.tensor_type} does not fit scores {scores.tensor_type}")
    rules = replace(
        plain,
        temperature=node.float("temperature", 1.0),
        presence=presence,
        presence_penalty=node.float("presence_penalty", 0.0),
    )
    seed = node.optional_constant(8)
    key = zlib.crc32(node.source.name.encode() if seed is None else np.int64(seed.reshape(-1)[0]).tobytes())

    def choose(ranked: Instruction, step: int) -> Instruction:
        return _drawn(b, _likeliest(node, b, ranked), (key, step))

    return _row_by_row(node, b, decoder, rules, scores, choose, longest)


def _likeliest(node: NodeView, b: Builder, scores: Instruction) -> Instruction:
    """The scores, those of tokens that are too unlikely being `filter_value`.

    Those go whose probabilities, together with all smaller ones, are 1 - top_p or less; with custom=1, those behind
    the first ones whose sum is more than top_p.
    """
    top_p, custom = node.float("top_p", 0.0), bool(node.int("custom", 0))
    keep, (rows, words) = node.int("min_tokens_to_keep", 0), scores.shape
    places = b.iota(TensorType(S32, scores.shape), 1)
    ordered = b.sort([scores, places], 1, sort_order(F32, largest=custom))
    values, at = (b.get_tuple_element(ordered, i) for i in range(2))
    total = running(b, "add", softmax_over(b, values, [1]), 1, False, False)
    place = b.iota(TensorType(S32, scores.shape), 1)
    if custom:
        # The token behind one where the sum is too large; the sum of the last is not looked at.
        over = b.compare(total, b.full_like(total, top_p), "GT")
        first = b.slice(over, [0, 0], [rows, words - 1])
        gone = b.concatenate([b.full((rows, 1), False, PRED), first], 1)
    else:
        under = b.compare(total, b.full_like(total, 1 - top_p), "LE")
        gone = b.and_(under, b.compare(place, b.full_like(place, max(words - keep, 1)), "LT"))
    row = b.constant(np.broadcast_to(np.arange(rows, dtype=np.int64)[:, None] * words, scores.shape))
    target = b.reshape(b.add(row, b.convert(at, S64)), (rows * words,))
    back = with_rows(b, b.full((rows * words,), False, PRED), target, b.reshape(gone, (rows * words,)))
    return b.select(b.reshape(back, scores.shape), b.full_like(scores, node.float("filter_value", -1e20)), scores)


def _drawn(b: Builder, scores: Instruction, keys: tuple[int, int]) -> Instruction:
    """One token for each row, by the exponentials of the scores, as Multinomial draws."""
    rows, _ = scores.shape
    total = running(b, "add", softmax_over(b, scores, [1]), 1, False, False)
    bits, _ = threefry(b, keys, rows)
    shifted = b.binary("shift-right-logical", bits, b.full_like(bits, 8))
    number = b.multiply(b.convert(shifted, F32), b.full((rows,), 2.0**-24, F32))
    end = b.reshape(b.slice(total, [0, scores.shape[1] - 1], list(scores.shape)), (rows,))
    drawn = b.broadcast(b.multiply(number, end), scores.shape, [0])
    passed = b.reduce_by("add", b.convert(b.compare(total, drawn, "LE"), S32), [1])
    return b.minimum(passed, b.full_like(passed, scores.shape[1] - 1))


@onnx_op("BeamSearch", domain=MICROSOFT)
def beam_search(node: NodeView, b: Builder) -> list[Instruction]:
    """The sequences of the highest probability among `num_beams` that are followed."""
    kind = node.int("model_type", GPT)
    if kind not in (GPT, ENCODER_DECODER) or node.has_input(11):
        node.unsupported(
            "model_type=2 and logits_processor are not known",
            "0, a decoder alone, and 1, an encoder and a decoder, are",
        )
    return _beams(
        node, b, lambda beams: GptDecoder(node, b, beams, 9) if kind == GPT else text_to_text(node, b, beams, 9)
    )


@onnx_op("WhisperBeamSearch", domain=MICROSOFT)
def whisper_beam_search(node: NodeView, b: Builder) -> list[Instruction]:
    """BeamSearch for speech, whose features an encoder reads."""
    given = [
        name
        for i, name in ((11, "logits_processor"), (12, "cross_qk_layer_head"), (13, "extra_decoding_ids"))
        if node.has_input(i)
    ]
    given += [name for i, name in ((3, "cross_qk"), (4, "non_speech_probs")) if node.has_output(i)]
    if given:
        node.unsupported(f"{' and '.join(given)} of WhisperBeamSearch are not known", "leave them out")
    return _beams(node, b, lambda beams: speech_to_text(node, b, beams), temperature=14)


def _beams(
    node: NodeView, b: Builder, decoder_of: Callable[[int], Decoder], temperature: int | None = None
) -> list[Instruction]:
    """Sequences, their scores, and those of all tokens; `temperature` is an input."""
    longest, beams, wanted = _known_number(node, 1), _known_number(node, 3), _known_number(node, 4)
    if wanted > beams:
        node.shape_error(f"{wanted} sequences are wanted of {beams} beams")
    decoder = decoder_of(beams)
    sequences = decoder.sequences
    (rows, length), batch = sequences.shape, sequences.shape[0] // beams
    steps = _steps(node, longest, length)
    logits = decoder.begin()
    words = logits.shape[1]
    if 2 * beams > beams * words:
        node.shape_error(f"{beams} beams cannot go on with {words} words")
    rules = _score_rules(node, b, _Kind(2, 6, 7, 8), beams, words)
    if temperature is not None:
        rules = replace(rules, temperature=one_number(node, b, temperature))
    penalty = one_number(node, b, 5)
    search = Search(
        batch,
        beams,
        longest,
        rules.end_token,
        node.int("pad_token_id"),
        b.constant(1, F32) if penalty is None else b.convert(penalty, F32),
        bool(node.int("early_stopping", 0)),
    )
    held = none_yet(b, search)
    start = np.full((batch, beams), NEVER, np.float32)
    start[:, 0] = 0
    totals = b.constant(start)
    kept = []
    for step in range(steps):
        scores = ruled(b, rules, log_softmax_over(b, logits, [1]), sequences, step == 0)
        scores = b.add(scores, b.broadcast(b.reshape(totals, (rows,)), scores.shape, [0]))
        over = b.reduce_by("and", held.done, [0])
        blank = b.broadcast_scalar(over, scores.shape)
        kept.append(b.select(blank, b.full_like(scores, 0), scores))
        held, following = chosen(b, search, held, sequences, scores)
        totals = following.scores
        origin, tokens = (b.reshape(x, (rows,)) for x in (following.origin, following.tokens))
        sequences = b.concatenate([b.take(sequences, origin, 0), b.reshape(tokens, (rows, 1))], 1)
        if step + 1 < steps:
            logits = decoder.advance(tokens, origin)
    best_sequences, best_scores = finished(b, search, held, sequences, totals, wanted)
    element = F32 if not node.has_input(5) else node.input(5).tensor_type.element
    stacked = b.concatenate([b.reshape(s, (1, batch, beams, words)) for s in kept], 0)
    return [best_sequences, b.convert(best_scores, element), b.convert(stacked, element)]
