"""The options of a compile in the query of an address: all as JSON, or one by one as the command line spells them.

POST /v2/compile?dim=batch=1,8&option=fast_math=true
POST /v2/compile?options={"dims": {"batch": [1, 8]}, "options": {"fast_math": true}}
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from onnxla.config import CompileOptions
from onnxla.errors import InputError
from onnxla.serving.errors import InvalidRequestError
from onnxla.serving.jobs.request import CompileRequest, request_of_json

_TEXTS = ("target", "signature", "fallback")
_LISTS = {"input": "inputs", "output": "outputs"}
_NAMED = {"shape": "shapes", "dim": "dims", "option": "options"}
"""Repeated, each `NAME=VALUE`."""
PARAMETERS = ("id", "name", "options", *_TEXTS, *_LISTS, *_NAMED, "num_threads")


def request_of_query(query: Sequence[tuple[str, str]]) -> CompileRequest:
    """What the parameters of a query ask for. Raises InvalidRequestError."""
    try:
        return request_of_json(_document(query))
    except InputError as error:
        raise InvalidRequestError(str(error)) from error


def _document(query: Sequence[tuple[str, str]]) -> dict[str, Any]:
    odd = [name for name, _ in query if name not in PARAMETERS]
    if odd:
        raise InputError(f"no parameter {odd[0]!r}; the parameters are {', '.join(PARAMETERS)}")
    document: dict[str, Any] = {}
    for name, text in query:
        if name == "options":
            document |= _json(text)
    for name, text in query:
        if name in _TEXTS:
            document[name] = text
        elif name == "num_threads":
            document[name] = _whole(text, name)
        elif name in _LISTS:
            document.setdefault(_LISTS[name], []).append(text)
        elif name in _NAMED:
            key, equals, value = text.partition("=")
            if not equals or not key:
                raise InputError(f"{name}={text}: write it as {name}=NAME=VALUE")
            document.setdefault(_NAMED[name], {})[key] = _value(name, key, value)
    return document


def _json(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"options= is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise InputError("options= is a JSON object")
    return found


def _value(kind: str, key: str, text: str) -> Any:
    if kind == "shape":
        return [_whole(part, f"shape={key}") for part in text.split("x")] if text else []
    if kind == "dim":
        return [_whole(part, f"dim={key}") for part in text.split(",")]
    readers: Mapping[str, Any] = {knob.name: knob.metadata["read"] for knob in fields(CompileOptions)}
    if key not in readers:
        return text  # the request says what there is
    try:
        return readers[key](text)
    except ValueError as error:
        raise InputError(f"option={key}={text}: {error}") from error


def _whole(text: str, what: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InputError(f"{what}={text}: a whole number is needed") from None
