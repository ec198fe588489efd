"""HLO text: a module, which prints as text that means the same, or an error with line and column."""

from functools import cache
from pathlib import Path

from onnxla.hlo.fingerprint import structurally_equal
from onnxla.hlo.parser import parse_module, zero_weights
from onnxla.hlo.printer import long_constants, print_module
from onnxla.hlo.verifier import verify
from tests.hostile.fuzzers.atheris_main import main
from tests.hostile.fuzzers.mutation import mutate_text
from tests.hostile.fuzzers.target import LIMITS, Target

_PROGRAMS = Path(__file__).parents[2] / "passes"
_PRINTED = 5000
"""Larger constants are not written out."""


def run(data: bytes) -> None:
    module = parse_module(data.decode(errors="replace"), weights=zero_weights, limits=LIMITS)
    verify(module)
    if sum(literal.array.size for literal in long_constants(module).values()) <= _PRINTED:
        again = parse_module(print_module(module, weights="full"), limits=LIMITS)
        assert structurally_equal(module, again), "the text of the module means something else"


@cache
def seeds() -> list[bytes]:
    """The programs of the text tests of passes."""
    programs = [text for file in sorted(_PROGRAMS.glob("*.hlo")) for text in file.read_text().split("// -----\n")]
    plain = ["\n".join(line for line in text.splitlines() if "//" not in line) for text in programs]
    return [text.encode() for text in plain if len(text) < 2000]


TARGET = Target("hlo_text", seeds, run, mutate_text)

if __name__ == "__main__":
    main(TARGET)
