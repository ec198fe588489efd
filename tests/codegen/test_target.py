"""What is known of a CPU, and its text."""

import pytest

from onnxla.codegen.cpu.target import LEVELS, named_target, parse_target
from onnxla.errors import DeviceError


@pytest.mark.parametrize("name", ["host", *LEVELS])
def test_the_text_reads_back(name: str) -> None:
    target = named_target(name)
    assert parse_target(str(target)) == target


@pytest.mark.parametrize(
    ("name", "width", "registers"),
    [("x86-64", 16, 16), ("x86-64-v3", 32, 16), ("x86-64-v4", 64, 32), ("generic-aarch64", 16, 32)],
)
def test_vectors_by_level(name: str, width: int, registers: int) -> None:
    target = named_target(name)
    assert (target.vector_bytes, target.vector_registers) == (width, registers)


def test_unknown_names_and_texts_are_refused() -> None:
    with pytest.raises(DeviceError, match="no CPU target 'z80'; known are host, x86-64"):
        named_target("z80")
    with pytest.raises(DeviceError, match="not the text of a target"):
        parse_target("x86_64-unknown-linux-gnu cpu=any")
