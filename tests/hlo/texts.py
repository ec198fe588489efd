"""Short HLO texts, and the errors that wrong ones raise."""

import pytest

from onnxla.errors import HloError, OnnxlaError
from onnxla.hlo.parser import parse_module


def error_of(text: str, kind: type[OnnxlaError] = HloError) -> str:
    with pytest.raises(kind) as caught:
        parse_module(text)
    return str(caught.value)


def entry(*lines: str) -> str:
    return "ENTRY main {\n" + "\n".join(f"  {line}" for line in lines) + "\n}\n"
