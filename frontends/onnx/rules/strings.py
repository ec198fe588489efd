"""String operators, computed while importing where the strings are known; strings at run time are an error.

A graph input of strings is known when the model is specialised on its value.
"""

import re

import numpy as np

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.values import StringConstant, Value
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import S64, Array


def _strings(values: list[str], shape: tuple[int, ...]) -> Array:
    """An array of `str` objects, as a constant of strings holds them."""
    array = np.empty(len(values), object)
    array[:] = values
    return array.reshape(shape)


@onnx_op("StringConcat", since=20)
def string_concat(node: NodeView, b: Builder) -> Value:
    """Element by element, broadcast."""
    left, right = np.broadcast_arrays(node.strings_constant(0), node.strings_constant(1))
    joined = [x + y for x, y in zip(left.reshape(-1).tolist(), right.reshape(-1).tolist(), strict=True)]
    return StringConstant(_strings(joined, left.shape))


@onnx_op("StringSplit", since=20)
def string_split(node: NodeView, b: Builder) -> list[Value]:
    """The parts of each string, padded with empty ones to the most parts there are, and how many each has."""
    strings = node.strings_constant(0)
    delimiter, most = node.string("delimiter", "") or None, node.int("maxsplit", -1)
    parts = [s.split(delimiter, most) for s in strings.reshape(-1).tolist()]
    width = max((len(p) for p in parts), default=0)
    padded = [part for p in parts for part in p + [""] * (width - len(p))]
    counts = np.array([len(p) for p in parts], np.int64).reshape(strings.shape)
    return [StringConstant(_strings(padded, (*strings.shape, width))), b.constant(counts, S64)]


@onnx_op("RegexFullMatch", since=20)
def regex_full_match(node: NodeView, b: Builder) -> Instruction:
    """Whether all of each string matches the pattern. The standard names RE2's syntax; Python's is close to it."""
    strings = node.strings_constant(0)
    try:
        pattern = re.compile(node.string("pattern"))
    except re.error as error:
        node.unsupported(f"the pattern is not a regular expression: {error}", "correct the pattern")
    matched = [pattern.fullmatch(s) is not None for s in strings.reshape(-1).tolist()]
    return b.constant(np.array(matched, bool).reshape(strings.shape))


@onnx_op("StringNormalizer", since=10)
def string_normalizer(node: NodeView, b: Builder) -> Value:
    """Without the stop words, in upper or lower case. Nothing left is one empty string."""
    change, sensitive = node.string("case_change_action", "NONE"), bool(node.int("is_case_sensitive", 0))
    if change not in ("NONE", "LOWER", "UPPER"):
        node.unsupported(f"case_change_action={change!r} is not known", "NONE, LOWER and UPPER are")
    stop_words = node.strings("stopwords", ())
    strings = node.strings_constant(0)
    if strings.ndim > 2 or (strings.ndim == 2 and strings.shape[0] != 1):
        node.shape_error("the strings must be [count] or [1, count]")
    stopped = {w if sensitive else w.lower() for w in stop_words}
    kept = [s for s in strings.reshape(-1).tolist() if (s if sensitive else s.lower()) not in stopped]
    if change != "NONE":
        kept = [s.lower() if change == "LOWER" else s.upper() for s in kept]
    kept = kept or [""]
    return StringConstant(_strings(kept, (1, len(kept)) if strings.ndim == 2 else (len(kept),)))
