"""The parameters of a model's configuration that are settings of our own, as text."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from onnxla.config import CompileOptions
from onnxla.errors import OnnxlaError, harmless_line
from onnxla.given import whole_number
from onnxla.serving.model_config import Message

_OF_OTHER_ENGINES = re.compile(
    r"(intra_op|inter_op|execution_mode|enable_mem|memory\.|cudnn_|gpu_mem|arena_|TRITON|level$)"
)
"""Parameters of Triton's other backends, which only say how to be fast."""


class Parameters:
    """Settings of our own, by name."""

    def __init__(self, given: Mapping[str, Message], problems: list[str]) -> None:
        self._given = {name: value.string_value for name, value in given.items()}
        self._problems = problems
        self._known: list[str] = []

    def take(self, name: str, read: Callable[[str], Any], default: Any) -> Any:
        self._known.append(name)
        if name not in self._given:
            return default
        try:
            return read(self._given[name])
        except (ValueError, OnnxlaError) as error:
            self._problems.append(f"parameter {name}={harmless_line(self._given[name])[:80]!r}: {error}")
            return default

    def require_known(self) -> None:
        for name in self._given:
            if name not in self._known and not _OF_OTHER_ENGINES.match(name):
                self._problems.append(f"no parameter {harmless_line(name)!r}; there are {', '.join(self._known)}")


def read_sizes(text: str) -> tuple[int, ...]:
    return tuple(sorted({whole_number(int(part), "a size", 1) for part in text.split(",")}))


def read_dims(text: str) -> dict[str, tuple[int, ...]]:
    """`length=16,32 width=224`"""
    found = {}
    for part in re.split(r"[;\s]+", text.strip()):
        name, equals, sizes = part.rpartition("=")
        if not equals:
            raise ValueError("sizes are written as length=16,32 width=224")
        found[name] = read_sizes(sizes)
    return found


def read_truth(text: str) -> bool:
    if text.lower() not in ("true", "false", "1", "0"):
        raise ValueError("choose true or false")
    return text.lower() in ("true", "1")


def read_count(text: str) -> int:
    return whole_number(int(text), "a count", 1)


def read_count_or_none(text: str) -> int:
    return whole_number(int(text), "a count", 0)


def read_one_of(*choices: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in choices:
            raise ValueError(f"choose {' or '.join(choices)}")
        return text

    return read


_OF_SERVERS = ("dump_to", "dump_weights", "cache_dir", "cache_bytes", "compile_timeout", "pad_to_bucket")


def read_options(text: str) -> dict[str, Any]:
    """`{"fast_math": true}`"""
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError("knobs by name in JSON are needed")
    wrong = sorted(set(found) & set(_OF_SERVERS))
    if wrong:
        raise ValueError(f"{', '.join(wrong)} is for the server to choose")
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in found.items()}
    known = {knob.name for knob in CompileOptions.describe()}
    if set(values) - known:
        raise ValueError(f"no option {', '.join(sorted(set(values) - known))}")
    CompileOptions.from_environment(**values)
    return values
