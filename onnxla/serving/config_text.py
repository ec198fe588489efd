"""`config.pbtxt`, and the same as JSON, read: whatever is wrong with one is in one report."""

import json
import re
from collections.abc import Sequence

from google.protobuf import json_format, text_format
from tritonclient.grpc import model_config_pb2

from onnxla.errors import harmless_line
from onnxla.serving.config_message import config_of_message
from onnxla.serving.errors import InvalidRequestError
from onnxla.serving.model_config import Message, ModelConfig

_MOST_PROBLEMS = 100
_TOKEN = re.compile(r"""#[^\n]*|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[{}<>\[\]]|[^\s{}<>\[\],;"'#]+""")
"""Comments, texts, brackets and words of protobuf's text."""


def config_of_text(name: str, text: str) -> ModelConfig:
    """What `config.pbtxt` says. Raises InvalidRequestError with every problem."""
    message, problems = _parsed(text)
    return config_of_message(name, message, problems)


def config_of_json(name: str, text: str) -> ModelConfig:
    """What the parameter `config` of a load request says. Raises InvalidRequestError with every problem."""
    try:
        document = json.loads(text)
        if not isinstance(document, dict):
            raise ValueError("it is no object")
        message = json_format.ParseDict(document, model_config_pb2.ModelConfig())
    except (ValueError, json_format.ParseError, RecursionError) as error:
        raise InvalidRequestError(
            f"{name}: config is no ModelConfig in JSON: {harmless_line(str(error))[:300]}"
        ) from None
    return config_of_message(name, message, [])


def _parsed(text: str) -> tuple[Message, list[str]]:
    """The message, and a problem for each field that there is not."""
    problems: list[str] = []
    lines = text.splitlines(keepends=True)
    while True:
        message = model_config_pb2.ModelConfig()
        try:
            text_format.Parse("".join(lines), message)
            return message, problems
        except text_format.ParseError as error:
            problems.append(harmless_line(str(error))[:300])
            unknown = re.search(r'has no field named "(\w+)"', str(error))
            line, column = error.GetLine(), error.GetColumn()
            if unknown is None or line is None or column is None or len(problems) >= _MOST_PROBLEMS:
                return model_config_pb2.ModelConfig(), problems
            lines = _without_field(lines, line - 1, column - 1)


def _without_field(lines: Sequence[str], line: int, column: int) -> list[str]:
    """The text without the field that begins there, lines kept: for what else is wrong."""
    offset = sum(map(len, lines[:line])) + column
    text = "".join(lines)
    # the position is the name's, or that of the token behind it
    start = re.compile(r"\w+\s*:?\s*").match(text, offset)
    if start is None:
        start = re.compile(r"[:{<\[]\s*").match(text, offset)
        offset = len(text[:offset].rstrip()) - len(re.search(r"\w*$", text[:offset].rstrip())[0])  # type: ignore[index]
        start = re.compile(r"\w+\s*:?\s*").match(text, offset)
    if start is None:
        return []
    end = _end_of_value(text, start.end())
    removed = re.sub(r"[^\n]", " ", text[offset:end])
    return (text[:offset] + removed + text[end:]).splitlines(keepends=True)


def _end_of_value(text: str, place: int) -> int:
    """Behind the value that begins at `place`: a scalar, or something in brackets."""
    depth = 0
    for token in _TOKEN.finditer(text, place):
        if token[0][0] == "#":
            continue
        depth += (token[0] in "{<[") - (token[0] in "}>]")
        if depth < 0:
            return token.start()
        if depth == 0:
            return token.end()
    return len(text)
