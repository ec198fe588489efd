"""HLO text: what we print is XLA's, and what we or XLA print reads back to the same program."""

import re

import ml_dtypes
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onnxla.errors import SourceNode
from onnxla.hlo.builder import Builder
from onnxla.hlo.fingerprint import fingerprint, structurally_equal
from onnxla.hlo.module import Module
from onnxla.hlo.op import OPS
from onnxla.hlo.parser import parse_module, zero_weights
from onnxla.hlo.printer import print_computation, print_instruction, print_module
from onnxla.hlo.types import BF16, F32, TensorType, TupleType
from onnxla.hlo.verifier import verify
from tests.hlo.programs import PROGRAMS
from tests.hlo.texts import entry

# Every operation


def test_every_operation_has_a_program() -> None:
    assert set(PROGRAMS) == set(OPS)


@pytest.mark.parametrize("opcode", PROGRAMS)
def test_text_of_an_operation_is_a_fixed_point(opcode: str) -> None:
    module = parse_module(PROGRAMS[opcode])
    verify(module)
    text = print_module(module)
    again = parse_module(text)
    verify(again)
    assert print_module(again) == text
    assert structurally_equal(module, again)
    assert opcode in text


@pytest.mark.parametrize("opcode", PROGRAMS)
def test_xla_reads_what_we_print(opcode: str) -> None:
    hlo = pytest.importorskip("jaxlib._hlo")
    text = print_module(parse_module(PROGRAMS[opcode]))
    theirs = hlo.hlo_module_from_text(text).to_string()
    assert structurally_equal(parse_module(theirs, weights=zero_weights), parse_module(text))


def test_different_programs_have_different_fingerprints() -> None:
    assert len({fingerprint(parse_module(text)) for text in PROGRAMS.values()}) == len(PROGRAMS)


def test_fingerprint_sees_attributes_constants_and_types_but_no_names() -> None:
    text = entry("x = f32[2]{0} parameter(0)", "c = f32[2]{0} constant({1, 2})", "ROOT r = f32[2]{0} add(x, c)")
    same = text.replace("x", "other").replace("main", "program")
    assert structurally_equal(parse_module(text), parse_module(same))
    for old, new in (("{1, 2}", "{1, 3}"), ("f32", "f64"), ("add(x, c)", "add(c, x)"), ("add", "subtract")):
        assert not structurally_equal(parse_module(text), parse_module(text.replace(old, new)))


# Shape of the text


def test_module_text_is_xlas_modern_style() -> None:
    b = Builder("main", SourceNode("/encoder/Mul_3", "Mul", 3, 13))
    x = b.parameter(TensorType(F32, (2, 3)), "x")
    total = b.reduce_by("add", b.multiply(x, x), [1])
    assert print_module(Module("model", b.build(b.tuple(total)))) == (
        "HloModule model, entry_computation_layout={(f32[2,3]{1,0})->(f32[2]{0})}\n"
        "\n"
        "%add_f32 {\n"
        "  %parameter = f32[] parameter(0)\n"
        "  %parameter.1 = f32[] parameter(1)\n"
        "  ROOT %add = f32[] add(%parameter, %parameter.1)\n"
        "}\n"
        "\n"
        "ENTRY %main {\n"
        '  %x = f32[2,3]{1,0} parameter(0), metadata={op_type="Mul" op_name="/encoder/Mul_3"}\n'
        '  %multiply = f32[2,3]{1,0} multiply(%x, %x), metadata={op_type="Mul" op_name="/encoder/Mul_3"}\n'
        '  %constant = f32[] constant(0), metadata={op_type="Mul" op_name="/encoder/Mul_3"}\n'
        "  %reduce = f32[2]{0} reduce(%multiply, %constant), dimensions={1}, to_apply=%add_f32, "
        'metadata={op_type="Mul" op_name="/encoder/Mul_3"}\n'
        '  ROOT %tuple = (f32[2]{0}) tuple(%reduce), metadata={op_type="Mul" op_name="/encoder/Mul_3"}\n'
        "}\n"
    )


def test_names_of_the_user_are_made_safe_and_unique() -> None:
    b = Builder('x" }\nENTRY evil {')
    type = TensorType(F32, ())
    wishes = ["a b", "a/b", "a\nb", "%", "", "é", "1", "x" * 500, "ROOT", "metadata={", "a_b"]
    values = [b.parameter(type, wish) for wish in wishes]
    text = print_module(Module("мир", b.build(b.tuple(*values))))
    names = re.findall(r"(%\S+) = ", text)
    assert all(re.fullmatch(r"%[A-Za-z_][A-Za-z0-9_.-]{0,120}", name) for name in names)
    assert len(set(names)) == len(names) == len(wishes) + 1
    assert print_module(parse_module(text)) == text


@given(st.text(), st.text())
def test_any_source_name_comes_back(name: str, op_type: str) -> None:
    b = Builder("main", SourceNode(name, op_type))
    root = b.parameter(TensorType(F32, ()))
    text = print_module(Module("m", b.build(root)))
    assert text.isascii() and text.count("\n") == 5
    assert parse_module(text).entry.root.source == SourceNode(name, op_type)


def test_xla_reads_a_hostile_source_name() -> None:
    hlo = pytest.importorskip("jaxlib._hlo")
    b = Builder("main", SourceNode('"} \\ \n\t{é\x00\x7f', "a'b"))
    text = print_module(Module("m", b.build(b.parameter(TensorType(F32, ())))))
    theirs = hlo.hlo_module_from_text(text).to_string()
    assert parse_module(theirs).entry.root.source == parse_module(text).entry.root.source


def test_one_instruction_and_one_computation_print_alone() -> None:
    b = Builder("body")
    x = b.parameter(TensorType(F32, (2,)), "x")
    y = b.reduce_by("add", x, [0])
    assert print_instruction(y) == "%reduce = f32[] reduce(%x, %constant), dimensions={0}, to_apply=%add_f32"
    assert print_computation(b.build(y)).startswith("%body {\n  %x = f32[2]{0} parameter(0)\n")


def test_type_text_is_the_types_own() -> None:
    nested = TupleType((TensorType(BF16, (2, 3)), TupleType((TensorType(F32),)), TupleType(())))
    b = Builder()
    module = Module("m", b.build(b.parameter(nested)))
    assert "(bf16[2,3]{1,0}, (f32[]), ()) parameter(0)" in print_module(module)
    assert parse_module(print_module(module)).entry.result_type == nested
    assert ml_dtypes.bfloat16 == BF16.dtype
