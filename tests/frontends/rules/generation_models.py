"""Small decoders with random weights, as subgraphs of com.microsoft's BeamSearch and kin."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from onnxla.frontends.onnx.importer import import_model
from onnxla.hlo.types import Array
from tests.frontends.witness import run_imported, run_onnxruntime

MICROSOFT = "com.microsoft"
HEADS, SIZE, WORDS = 2, 4, 11
WIDTH = HEADS * SIZE
END, PAD, START = 5, 1, 2
FLOAT, INT32 = TensorProto.FLOAT, TensorProto.INT32

_info = helper.make_tensor_value_info


class Weights:
    """Random weights by name, as initializers."""

    def __init__(self, seed: int, scale: float) -> None:
        self._random, self._scale = np.random.default_rng(seed), scale
        self.arrays: dict[str, Array] = {}

    def add(self, **shapes: tuple[int, ...]) -> None:
        for name, shape in shapes.items():
            self.arrays[name] = (self._random.normal(size=shape) * self._scale).astype(np.float32)

    def named(self, nodes: Sequence[NodeProto]) -> list[TensorProto]:
        """Those that `nodes` read."""
        read = {name for node in nodes for name in node.input}
        return [numpy_helper.from_array(a, n) for n, a in self.arrays.items() if n in read]


def gpt(seed: int, scale: float = 1.0, layers: int = 1) -> dict[str, GraphProto]:
    """Embeddings of words and positions, layers of attention with a past, and logits."""
    weights = Weights(seed, scale)
    weights.add(W=(WORDS, WIDTH), P=(64, WIDTH), E=(WIDTH, WORDS))
    nodes = [
        helper.make_node("Gather", ["W", "input_ids"], ["word"]),
        helper.make_node("Gather", ["P", "position_ids"], ["place"]),
        helper.make_node("Add", ["word", "place"], ["x0"]),
    ]
    for i in range(layers):
        weights.add(**{f"w{i}": (WIDTH, 3 * WIDTH), f"b{i}": (3 * WIDTH,)})
        inputs = [f"x{i}", f"w{i}", f"b{i}", "attention_mask", f"past_{i}"]
        outputs = [f"a{i}", f"present_{i}"]
        nodes.append(
            helper.make_node("Attention", inputs, outputs, domain=MICROSOFT, num_heads=HEADS, unidirectional=1)
        )
        nodes.append(helper.make_node("Add", [f"x{i}", f"a{i}"], [f"x{i + 1}"]))
    nodes.append(helper.make_node("MatMul", [f"x{layers}", "E"], ["logits"]))
    tokens = [_info(n, INT32, ["B", "S"]) for n in ("input_ids", "position_ids")]
    tokens.append(_info("attention_mask", INT32, ["B", "L"]))
    pasts = [_info(f"past_{i}", FLOAT, [2, "B", HEADS, "P", SIZE]) for i in range(layers)]
    presents = [_info(f"present_{i}", FLOAT, [2, "B", HEADS, "L", SIZE]) for i in range(layers)]
    results = [_info("logits", FLOAT, ["B", "S", WORDS]), *presents]
    return {"decoder": helper.make_graph(nodes, "decoder", [*tokens, *pasts], results, weights.named(nodes))}


def encoder_decoder(
    seed: int, reads_token: bool, scale: float = 0.7, features: int | None = None
) -> dict[str, GraphProto]:
    """One layer of self and cross attention. With `reads_token`, the encoder scores the first token as well; with
    `features`, it reads those and no words, there are no masks, and first tokens may be several."""
    weights = Weights(seed, scale)
    weights.add(W=(WORDS, WIDTH), WE=(WORDS, WIDTH), E=(WIDTH, WORDS))
    weights.add(**{n: (WIDTH, WIDTH) for n in ("wq", "wk", "wv", "cq", "ck", "cv")})
    weights.arrays["by_heads"] = np.array([0, 0, HEADS, SIZE], np.int64)
    weights.arrays["nothing"] = np.array([HEADS, 0, SIZE], np.int64)
    encoder = [helper.make_node("Gather", ["WE", "encoder_input_ids"], ["encoder_hidden_states"])]
    if features is not None:
        weights.add(WF=(features, WIDTH))
        encoder = [
            helper.make_node("Transpose", ["encoder_input_ids"], ["frames"], perm=[0, 2, 1]),
            helper.make_node("MatMul", ["frames", "WF"], ["encoder_hidden_states"]),
        ]
    for weight, name in (("ck", "present_key_cross_0"), ("cv", "present_value_cross_0")):
        encoder += [
            helper.make_node("MatMul", ["encoder_hidden_states", weight], [f"{name}_flat"]),
            helper.make_node("Reshape", [f"{name}_flat", "by_heads"], [f"{name}_wide"]),
            helper.make_node("Transpose", [f"{name}_wide"], [name], perm=[0, 2, 1, 3]),
        ]
    mask = [] if features is not None else [_info("encoder_attention_mask", INT32, ["B", "S"])]
    words = _info("encoder_input_ids", INT32, ["B", "S"])
    inputs = (
        [*mask, _info("encoder_input_ids", FLOAT, ["B", features, "S"])] if features is not None else [words, *mask]
    )
    outputs = [_cache(f"present_{kind}_cross_0", "S") for kind in ("key", "value")]
    if reads_token:
        inputs.append(_info("decoder_input_ids", INT32, ["B", "T" if features is not None else 1]))
        encoder += [
            helper.make_node("Shape", ["encoder_input_ids"], ["batch"], start=0, end=1),
            helper.make_node("Concat", ["batch", "nothing"], ["no_keys"], axis=0),
            helper.make_node("ConstantOfShape", ["no_keys"], ["none"]),
            *_decoding("decoder_input_ids", ["none", "none"], "present", masked=features is None),
        ]
        own = [_cache(f"present_{kind}_self_0", "T") for kind in ("key", "value")]
        hidden = _info("encoder_hidden_states", FLOAT, ["B", "S", WIDTH])
        outputs = [_info("logits", FLOAT, ["B", "T", WORDS]), hidden, *own, *outputs]
    decoder = _decoding("input_ids", ["past_key_self_0", "past_value_self_0"], "past", masked=features is None)
    caches = [
        _cache(f"past_{k}_{of}_0", length) for of, length in (("self", "P"), ("cross", "S")) for k in ("key", "value")
    ]
    fed = [_info("input_ids", INT32, ["B", 1]), *mask, *caches]
    given = [_info("logits", FLOAT, ["B", 1, WORDS]), *(_cache(f"present_{k}_self_0", "L") for k in ("key", "value"))]
    return {
        "encoder": helper.make_graph(encoder, "encoder", inputs, outputs, weights.named(encoder)),
        "decoder": helper.make_graph(decoder, "decoder", fed, given, weights.named(decoder)),
    }


def _cache(name: str, length: int | str) -> ValueInfoProto:
    return _info(name, FLOAT, ["B", HEADS, length, SIZE])


def _decoding(ids: str, past: list[str], cross: str, masked: bool) -> list[NodeProto]:
    """The layer of a decoder over `ids`; its keys and values for cross attention are named by `cross`."""
    presents = ["present_key_self_0", "present_value_self_0"]
    keys = [f"{cross}_key_cross_0", f"{cross}_value_cross_0"]
    return [
        helper.make_node("Gather", ["W", ids], ["x"]),
        *(helper.make_node("MatMul", ["x", w], [y]) for w, y in (("wq", "q"), ("wk", "k"), ("wv", "v"))),
        helper.make_node(
            "MultiHeadAttention",
            ["q", "k", "v", "", "", "", *past],
            ["a", *presents],
            domain=MICROSOFT,
            num_heads=HEADS,
        ),
        helper.make_node("Add", ["x", "a"], ["y"]),
        helper.make_node("MatMul", ["y", "cq"], ["crossing"]),
        helper.make_node(
            "MultiHeadAttention",
            ["crossing", *keys, *(["", "encoder_attention_mask"] if masked else [])],
            ["c"],
            domain=MICROSOFT,
            num_heads=HEADS,
        ),
        helper.make_node("Add", ["y", "c"], ["z"]),
        helper.make_node("MatMul", ["z", "E"], ["logits"]),
    ]


def searching(
    op: str, graphs: Mapping[str, GraphProto], inputs: Mapping[str, Array | None], outputs: str, **attributes: Any
) -> ModelProto:
    """A model of one node; inputs that are None are left out. Outputs are named in one text."""
    attributes = {"eos_token_id": END, "pad_token_id": PAD} | attributes | dict(graphs)
    names = [n if v is not None else "" for n, v in inputs.items()]
    node = helper.make_node(op, names, outputs.split(), domain=MICROSOFT, **attributes)
    infos = [_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for n, v in inputs.items() if v is not None]
    kinds = [_info(n, INT32 if i == 0 else FLOAT, None) for i, n in enumerate(outputs.split())]
    graph = helper.make_graph([node], "search", infos, kinds)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(MICROSOFT, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


KNOWN = ("max_length", "num_beams", "num_return_sequences", "seed")
"""Inputs that must be known while compiling."""


def both(model: ModelProto, inputs: Mapping[str, Array | None]) -> tuple[list[Array], list[Array]]:
    """Our outputs, by the interpreter, and onnxruntime's."""
    feeds = {n: v for n, v in inputs.items() if v is not None}
    imported = import_model(model, constants={n: v for n, v in feeds.items() if n in KNOWN})
    return run_imported(imported, feeds), run_onnxruntime(model, feeds)
