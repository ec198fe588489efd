"""com.microsoft.Tokenizer: words of strings that are known while compiling.

How many words there are decides the output's shape. Words are found by regular expressions of RE2; those are
understood here that name a text, or one character or a run of one kind of character, and so mean the same to
Python, in linear time. Others are refused.
"""

import re

import numpy as np

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.values import StringConstant
from onnxla.hlo.builder import Builder

START_OF_TEXT, END_OF_TEXT = "\x02", "\x03"

_LITERAL = r"(?:[^\\\[\](){}.*+?^$|]|\\[^A-Za-z0-9])"
_IN_CLASS = r"(?:[^\\\[\]]|\\[dsw]|\\[^A-Za-z0-9])"
_KNOWN = re.compile(rf"{_LITERAL}+|(?:\.|\\[dDsSwW]|\[\^?{_IN_CLASS}+\]|{_LITERAL})\+?", re.DOTALL)
_SET_OPERATIONS = ("--", "&&", "||", "~~")
_SPACE = r"\t\n\f\r "
"""What RE2 takes for white space: no vertical tab, which Python counts."""


@onnx_op("Tokenizer", domain="com.microsoft")
def tokenizer(node: NodeView, b: Builder) -> StringConstant:
    """[..., words]: the strings divided at separators, or every match of an expression; shorter rows are padded."""
    strings = node.strings_constant(0)
    if strings.ndim not in (1, 2):
        node.shape_error(f"strings of shape {list(strings.shape)} are neither [C] nor [N, C]")
    if strings.size == 0:
        return StringConstant(strings)
    expression, separators = node.string("tokenexp", ""), node.strings("separators", ())
    if bool(expression) == bool(separators):
        node.shape_error("one of the attributes tokenexp and separators must be given")
    shortest = node.int("mincharnum")
    if expression == "." or separators == ("",):
        if shortest > 1:
            node.shape_error(f"mincharnum={shortest} does not go with single characters")
        rows = [list(text) for text in strings.reshape(-1)]
    elif expression:
        pattern = _compiled(node, expression)
        rows = [[m.group() for m in pattern.finditer(text)] for text in strings.reshape(-1)]
    else:
        rows = [[text] for text in strings.reshape(-1)]
        for pattern in [_compiled(node, s) for s in separators]:
            rows = [[piece for text in row for piece in pattern.split(text)] for row in rows]
    rows = [[word for word in row if len(word) >= max(shortest, 1)] for row in rows]
    most = max(map(len, rows))
    if node.int("mark") and most:
        rows, most = [[START_OF_TEXT, *row, END_OF_TEXT] for row in rows], most + 2
    padding = node.string("pad_value")
    words = np.empty((len(rows), most), object)
    for i, row in enumerate(rows):
        words[i] = row + [padding] * (most - len(row))
    return StringConstant(words.reshape(*strings.shape, most))


def _compiled(node: NodeView, expression: str) -> re.Pattern[str]:
    """The expression for Python, where it means the same."""
    if _KNOWN.fullmatch(expression) and not any(s in expression for s in _SET_OPERATIONS):
        in_python = re.sub(r"\\S", f"[^{_SPACE}]", expression)
        space = _SPACE if expression.startswith("[") else f"[{_SPACE}]"
        try:
            return re.compile(re.sub(r"(?<!\\)((?:\\\\)*)\\s", lambda m: m.group(1) + space, in_python), re.ASCII)
        except re.error:
            pass
    node.unsupported(
        f"the regular expression {expression!r} is not known",
        "texts, and runs of one kind of character such as [a-z0-9]+, are; or tokenize before the model",
    )
