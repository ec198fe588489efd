"""The decoders of com.microsoft's BeamSearch and kin: subgraphs that score the next token, step by step.

A decoder keeps keys and values of what it has read, which grow by one with every token. So its shapes differ
from step to step, and it is written out once for each.
"""

from collections.abc import Sequence
from typing import Protocol

from onnx import GraphProto

from onnxla.frontends.onnx.control_flow_support import tensors
from onnxla.frontends.onnx.element_types import element_of_code
from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.rules.cumulative import running
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import F32, S32


class Decoder(Protocol):
    """Rows are batch elements, or their beams one behind the other."""

    sequences: Instruction
    """s32 [rows, length]: what generation goes on from."""

    def begin(self) -> Instruction:
        """The scores f32 [rows, words] of the token behind the prompt."""

    def advance(self, tokens: Instruction, origin: Instruction | None) -> Instruction:
        """The scores behind `tokens` s32 [rows], each of which follows the row that `origin` names, or its own."""


def repeated(b: Builder, x: Instruction, beams: int) -> Instruction:
    """Every row of [batch, ...] `beams` times: [batch * beams, ...]."""
    if beams == 1:
        return x
    wide = (x.shape[0], beams, *x.shape[1:])
    kept = [0, *range(2, len(wide))]
    return b.reshape(b.broadcast(x, wide, kept), (x.shape[0] * beams, *x.shape[1:]))


def _last_scores(node: NodeView, b: Builder, logits: Instruction) -> Instruction:
    """Of logits [rows, length, words] those behind the last token, without words beyond vocab_size."""
    if len(logits.shape) != 3 or logits.shape[1] == 0:
        node.shape_error(f"the decoder's logits {logits.tensor_type} are not [rows, length, words]")
    rows, length, width = logits.shape
    given = node.int("vocab_size", -1)
    words = given if 0 < given <= width else width
    last = b.slice(logits, [0, length - 1, 0], [rows, length, words])
    return b.convert(b.reshape(last, (rows, words)), F32)


def _following(b: Builder, past: Instruction, origin: Instruction | None, axis: int) -> Instruction:
    return past if origin is None else b.take(past, origin, axis)


class GptDecoder:
    """Subgraph inputs: input_ids, position_ids, attention_mask, past_0, ...; outputs: logits, present_0, ...

    A past is [2, rows, heads, length, size]. Tokens that are padding have no position, and are not seen
    where no attention_mask says otherwise.
    """

    def __init__(self, node: NodeView, b: Builder, beams: int, mask_input: int | None) -> None:
        self._node, self._b = node, b
        ids = b.convert(node.input(0), S32)
        if len(ids.shape) != 2 or 0 in ids.shape:
            node.shape_error(f"input_ids {ids.tensor_type} is not [batch, length]")
        mask = node.optional_input(mask_input) if mask_input is not None else None
        seen = b.compare(ids, b.full_like(ids, node.int("pad_token_id")), "NE")
        flags = b.convert(seen, S32)
        counted = b.subtract(running(b, "add", flags, 1, False, False), b.full_like(ids, 1))
        positions = b.select(seen, counted, b.full_like(ids, 0))
        lengths = b.reduce_by("add", flags, [1])
        self.sequences, self._positions, self._mask, self._next = (
            repeated(b, x, beams) for x in (ids, positions, flags if mask is None else b.convert(mask, S32), lengths)
        )
        graph = node.graph("decoder")
        self._past = [_empty_past(node, b, graph, i, self.sequences.shape[0]) for i in range(3, len(graph.input))]
        if not self._past:
            node.unsupported("a decoder without past is not known", "its inputs are input_ids, ..., past_0, ...")

    def begin(self) -> Instruction:
        name = "init_decoder" if self._node.has("init_decoder") else "decoder"
        return self._run(name, self.sequences, self._positions)

    def advance(self, tokens: Instruction, origin: Instruction | None) -> Instruction:
        b, (rows,) = self._b, tokens.shape
        self._past = [_following(b, past, origin, 1) for past in self._past]
        self._mask = b.concatenate([self._mask, b.full((rows, 1), 1, S32)], 1)
        positions, self._next = self._next, b.add(self._next, b.full_like(self._next, 1))
        return self._run("decoder", b.reshape(tokens, (rows, 1)), b.reshape(positions, (rows, 1)))

    def _run(self, name: str, ids: Instruction, positions: Instruction) -> Instruction:
        values = self._node.import_body(name, [ids, positions, self._mask, *self._past], self._b)
        logits, *self._past = tensors(self._node, values, "the outputs of a decoder")
        return _last_scores(self._node, self._b, logits)


def _empty_past(node: NodeView, b: Builder, graph: GraphProto, i: int, rows: int) -> Instruction:
    type = graph.input[i].type.tensor_type
    dims = type.shape.dim
    if len(dims) != 5 or dims[2].dim_value < 1 or dims[4].dim_value < 1:
        node.unsupported(
            f"the decoder's input {i} declares no [2, rows, heads, length, size] with known heads and size",
            "past_present_share_buffer and other kinds of decoders are not known",
        )
    return b.full((2, rows, dims[2].dim_value, 0, dims[4].dim_value), 0, element_of_code(type.elem_type))


class EncoderDecoder:
    """An encoder subgraph runs once, and its keys and values are read in every step.

    Decoder inputs: input_ids, then what stays the same (`fixed`, and encoder_hidden_states or not), keys and values
    of each layer for self attention, and those for cross attention; outputs: logits, and new ones for self
    attention. The encoder gives the keys and values for cross attention; or it reads the first tokens as well, and
    gives logits, hidden states, and keys and values for both.
    """

    def __init__(
        self,
        node: NodeView,
        b: Builder,
        beams: int,
        arguments: Sequence[Instruction],
        first: Instruction,
        fixed: Sequence[Instruction],
    ) -> None:
        """`arguments` of the encoder, without the first tokens `first` s32 [batch, length]."""
        self._node, self._b = node, b
        encoder, decoder = node.graph("encoder"), node.graph("decoder")
        reads_tokens = len(encoder.input) == len(arguments) + 1
        fed = [*arguments, *([first] if reads_tokens else [])]
        results = tensors(node, node.import_body("encoder", fed, b), "the outputs of an encoder")
        caches = results[2:] if reads_tokens else results
        names = [i.name for i in decoder.input]
        with_hidden = "encoder_hidden_states" in names[1 + len(fixed) : 2 + len(fixed)]
        layers, rest = divmod(len(names) - 1 - len(fixed) - with_hidden, 4)
        if layers < 1 or rest or len(caches) != layers * (4 if reads_tokens else 2):
            node.unsupported(
                "the encoder's outputs do not fit the decoder's inputs",
                "a decoder has four keys and values a layer, and no past_sequence_length",
            )
        if with_hidden and not reads_tokens:
            node.unsupported("a decoder that reads encoder_hidden_states needs an encoder that gives them")
        self.sequences = repeated(b, first, beams)
        self._scores = repeated(b, _last_scores(node, b, results[0]), beams) if reads_tokens else None
        expanded = [repeated(b, cache, beams) for cache in caches]
        self._self, self._cross = (expanded[: 2 * layers], expanded[2 * layers :]) if reads_tokens else ([], expanded)
        if not reads_tokens:
            self._self = [b.full((*c.shape[:2], 0, c.shape[3]), 0, c.tensor_type.element) for c in expanded]
        self._fixed = [repeated(b, x, beams) for x in (*fixed, *(results[1:2] if with_hidden else []))]
        shape = decoder.input[0].type.tensor_type.shape
        self._whole = len(shape.dim) != 2 or shape.dim[1].dim_value != 1
        """Whether the decoder reads all tokens again."""

    def begin(self) -> Instruction:
        return self._run(self.sequences) if self._scores is None else self._scores

    def advance(self, tokens: Instruction, origin: Instruction | None) -> Instruction:
        b, (rows,) = self._b, tokens.shape
        column = b.reshape(tokens, (rows, 1))
        self.sequences = b.concatenate([_following(b, self.sequences, origin, 0), column], 1)
        self._self = [_following(b, past, origin, 0) for past in self._self]
        return self._run(self.sequences if self._whole else column)

    def _run(self, ids: Instruction) -> Instruction:
        arguments: Sequence[Instruction] = [ids, *self._fixed, *self._self, *self._cross]
        values = self._node.import_body("decoder", arguments, self._b)
        logits, *self._self = tensors(self._node, values, "the outputs of a decoder")
        return _last_scores(self._node, self._b, logits)


def text_to_text(node: NodeView, b: Builder, beams: int, mask_input: int) -> EncoderDecoder:
    """T5 and kin: the encoder reads tokens, and masks say which are padding."""
    ids = b.convert(node.input(0), S32)
    if len(ids.shape) != 2 or 0 in ids.shape:
        node.shape_error(f"input_ids {ids.tensor_type} is not [batch, length]")
    start = node.int("decoder_start_token_id", -1)
    if start < 0 or node.has_input(10):
        node.unsupported("decoder_input_ids is not known", "give the attribute decoder_start_token_id")
    mask = node.optional_input(mask_input)
    mask = _not_leading(b, ids, node.int("pad_token_id")) if mask is None else b.convert(mask, S32)
    return EncoderDecoder(node, b, beams, [ids, mask], b.full((ids.shape[0], 1), start, S32), [mask])


def speech_to_text(node: NodeView, b: Builder, beams: int) -> EncoderDecoder:
    """Whisper: the encoder reads features [batch, size, frames], without padding, and the first tokens."""
    features, first = node.input(0), node.optional_input(10)
    if len(features.shape) != 3 or 0 in features.shape:
        node.shape_error(f"the features {features.tensor_type} are not [batch, size, frames]")
    if first is None:
        start = node.int("decoder_start_token_id", -1)
        if start < 0:
            node.shape_error("neither decoder_input_ids nor decoder_start_token_id is given")
        first = b.full((features.shape[0], 1), start, S32)
    if len(first.shape) != 2 or first.shape[0] != features.shape[0] or first.shape[1] == 0:
        node.shape_error(f"decoder_input_ids {first.tensor_type} does not fit features {features.tensor_type}")
    return EncoderDecoder(node, b, beams, [features], b.convert(first, S32), [])


def _not_leading(b: Builder, ids: Instruction, pad: int) -> Instruction:
    """s32: 0 for padding in front of the first other token, else 1."""
    real = b.convert(b.compare(ids, b.full_like(ids, pad), "NE"), S32)
    return b.minimum(running(b, "add", real, 1, False, False), b.full_like(ids, 1))
