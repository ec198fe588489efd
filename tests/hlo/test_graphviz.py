"""Modules as graphs: every value and its operands, bodies in boxes, names escaped."""

import re

from onnxla.errors import SourceNode
from onnxla.hlo.builder import Builder
from onnxla.hlo.graphviz import module_to_dot
from onnxla.hlo.module import Module
from onnxla.hlo.parser import parse_module
from onnxla.hlo.types import F32, TensorType

FUSED = """
HloModule m
%body {
  %p = f32[4]{0} parameter(0)
  ROOT %e = f32[4]{0} exponential(%p)
}
%sum {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %c = f32[] add(%a, %b)
}
ENTRY %main {
  %x = f32[4]{0} parameter(0)
  %f = f32[4]{0} fusion(%x), kind=kLoop, calls=%body
  %zero = f32[] constant(0)
  ROOT %r = f32[] reduce(%f, %zero), dimensions={0}, to_apply=%sum
}
"""


def test_every_value_and_its_operands() -> None:
    text = module_to_dot(parse_module(FUSED))
    assert text.count("[label=") == 6  # two in the body, four in the entry
    assert text.count(" -> ") == 5  # one in the body, three in the entry, one from the body to its fusion
    assert text.count("subgraph") == 2
    assert '"reduce sum\\nf32[]"' in text
    assert '"constant 0.0\\nf32[]"' in text


def test_the_same_module_gives_the_same_text() -> None:
    assert module_to_dot(parse_module(FUSED)) == module_to_dot(parse_module(FUSED))


def test_names_cannot_break_out_of_their_quotes() -> None:
    b = Builder("main")
    x = b.parameter(TensorType(F32, ()), "x")
    y = b.negate(x)
    y.source = SourceNode('evil"]; n [label="\\', "Neg\n")
    text = module_to_dot(Module("m", b.build(y)))
    without_strings = re.sub(r'"(\\.|[^"\\])*"', "S", text)
    assert '"' not in without_strings and "evil" not in without_strings
