"""HLO text: what we print is XLA's, and what we or XLA print reads back to the same program."""

import math
import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onnxla.config import Limits
from onnxla.errors import HloError, OnnxlaError, ResourceLimitError, SourceNode, UnsupportedOpError
from onnxla.hlo.builder import Builder
from onnxla.hlo.fingerprint import fingerprint, structurally_equal
from onnxla.hlo.literal_text import format_literal, parse_literal
from onnxla.hlo.module import Module
from onnxla.hlo.op import OPS
from onnxla.hlo.parser import parse_module, weights_from, zero_weights
from onnxla.hlo.printer import long_constants, print_computation, print_instruction, print_module
from onnxla.hlo.types import BF16, ELEMENT_TYPES, F32, S32, Array, ElementType, Kind, TensorType, TupleType, type_of
from onnxla.hlo.verifier import verify
from tests.hlo.programs import FOREIGN_PROGRAMS, PROGRAMS


def error_of(text: str, kind: type[OnnxlaError] = HloError) -> str:
    with pytest.raises(kind) as caught:
        parse_module(text)
    return str(caught.value)


def entry(*lines: str) -> str:
    return "ENTRY main {\n" + "\n".join(f"  {line}" for line in lines) + "\n}\n"


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


# Constants


def edge_values(element: ElementType) -> Array:
    """Every value of the narrow types; of the wide ones limits, subnormals, infinities, NaNs and some odd bits."""
    dtype = element.dtype
    if element.kind is Kind.PRED:
        return np.array([True, False])
    if element.is_complex:
        edges = edge_values(F32 if element.bits == 64 else ELEMENT_TYPES["f64"])
        return np.stack([edges, edges[::-1]], axis=-1).reshape(-1).view(dtype)
    if element.bits < 8:
        every = np.arange(1 << element.bits).astype(np.uint8)
        if element.is_float:
            return every.view(dtype)
        return (every.astype(np.int64) - (8 >> (4 - element.bits) if element.is_signed else 0)).astype(dtype)
    bits = np.dtype(f"u{element.bytes}")
    if element.bits <= 16:
        return np.arange(1 << element.bits).astype(bits).view(dtype)
    random = np.random.default_rng(0).integers(0, 1 << 63, 500, np.uint64).astype(bits).view(dtype)
    edge = [0, 1, (1 << element.bits) - 1, 1 << (element.bits - 1), (1 << (element.bits - 1)) - 1]
    values = [*np.array(edge, object)]
    found = np.array(values, dtype=object).astype(bits).view(dtype)
    if not element.is_float:
        return np.concatenate([found, random])
    named = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 0.1, 1e20, 1.5e-40, math.pi]).astype(dtype)
    return np.concatenate([found, random, named])


@pytest.mark.parametrize("element", ELEMENT_TYPES.values(), ids=str)
def test_every_value_comes_back_bit_for_bit(element: ElementType) -> None:
    array = edge_values(element)
    back = parse_literal(format_literal(array, element), type_of(array))
    assert back.dtype == array.dtype
    assert back.tobytes() == array.tobytes()
    scalar = parse_literal(format_literal(array[1], element), TensorType(element))
    assert scalar.tobytes() == array[1].tobytes()


@pytest.mark.parametrize("element", ELEMENT_TYPES.values(), ids=str)
def test_xla_reads_every_kind_of_constant(element: ElementType) -> None:
    hlo = pytest.importorskip("jaxlib._hlo")
    array = edge_values(element)[:200]
    b = Builder()
    text = print_module(Module("m", b.build(b.constant(array))), weights="full")
    assert hlo.hlo_module_from_text(text).to_string()


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3,), (2, 0), (0, 2), (2, 3), (1, 2, 2), (2, 1, 0, 3)])
def test_constants_of_any_shape_come_back(shape: tuple[int, ...]) -> None:
    array = np.arange(math.prod(shape), dtype=np.int32).reshape(shape)
    text = format_literal(array, S32)
    back = parse_literal(text, type_of(array))
    assert back.shape == shape and np.array_equal(back, array)
    assert "{{" not in text


@pytest.mark.parametrize(
    ("type", "text", "cause"),
    [
        ("s8", "128", "128 is outside s8, which holds -128 to 127"),
        ("u4", "-1", "-1 is outside u4, which holds 0 to 15"),
        ("s32", "1.5", "'1.5' is not an integer of type s32"),
        ("f32", "1e99", "1e99 is outside f32"),
        ("f64", "1e999", "1e999 is outside f64"),
        ("f8e4m3fn", "inf", "inf is outside f8e4m3fn"),
        ("f32", "nan(0x0)", "nan(0x0) has no such payload in f32"),
        ("f4e2m1fn", "nan", "f4e2m1fn has no NaN"),
        ("pred", "2", "'2' is neither true nor false"),
        ("f32", "one", "'one' is not a number of type f32"),
        ("f32[2]", "1", "f32[2]{0} needs 2 values"),
        ("f32[2]", "{1, 2, 3}", "the braces do not have the shape of f32[2]{0}"),
        ("f32[2,1]", "{ {1, 2} }", "the braces do not have the shape of f32[2,1]{1,0}"),
        ("f32[1000000000]", "{1}", "f32[1000000000]{0} needs 1000000000 values"),
    ],
)
def test_a_value_that_does_not_fit_its_type_is_an_error(type: str, text: str, cause: str) -> None:
    written = type if "[" in type else f"{type}[]"
    assert cause in error_of(entry(f"ROOT c = {written} constant({text})"))


def module_with_weights() -> Module:
    b = Builder()
    x = b.parameter(TensorType(F32, (64,)), "x")
    w = b.constant(np.arange(64, dtype=np.float32), name="layer.0/weight")
    small = b.constant(np.float32(2))
    return Module("m", b.build(b.add(b.multiply(x, b.broadcast_scalar(small, [64])), w)))


def test_long_constants_are_elided_and_come_back_by_name() -> None:
    module = module_with_weights()
    text = print_module(module)
    assert "%layer.0_weight = f32[64]{0} constant({...})" in text
    assert "constant(2)" in text
    literals = long_constants(module)
    assert list(literals) == ["main/layer.0_weight"]
    assert "main/layer.0_weight is elided" in error_of(text)
    again = parse_module(text, weights=weights_from({name: value.array for name, value in literals.items()}))
    assert structurally_equal(again, module)


def test_full_text_needs_no_weights() -> None:
    module = module_with_weights()
    assert structurally_equal(parse_module(print_module(module, weights="full")), module)


def test_weights_as_parameters_give_a_program_that_computes_the_same() -> None:
    module = module_with_weights()
    text = print_module(module, weights="parameters")
    assert "entry_computation_layout={(f32[64]{0}, f32[64]{0})->f32[64]{0}}" in text
    again = parse_module(text)
    x = np.linspace(-1, 1, 64, dtype=np.float32)
    weights = [literal.array for literal in long_constants(module).values()]
    assert np.array_equal(again.entry.evaluate(x, *weights), module.entry.evaluate(x))


def test_a_weight_of_another_type_is_an_error() -> None:
    text = print_module(module_with_weights())
    with pytest.raises(HloError, match=r"has type f32\[3\]"):
        parse_module(text, weights=lambda name, type: np.zeros(3, np.float32))


# What XLA and JAX print


def test_text_without_percent_signs_types_or_header() -> None:
    module = parse_module(
        """
        region_0.1 { // the combiner
          a.2 = f32[] parameter(0)
          b.3 = f32[] parameter(1)
          ROOT add.4 = f32[] add(f32[] a.2, f32[] b.3)
        }
        ENTRY main.5 {
          zero = f32[] constant(0)
          x = f32[2,3] parameter(0), sharding={replicated}, metadata={op_name="x" source_file="f.py" source_line=3}
          /*index=5*/ ROOT sum = f32[2] reduce(f32[2,3]{1,0} x, zero), dimensions={1}, to_apply=region_0.1
        }
        """
    )
    verify(module)
    assert module.name == "module" and module.entry.parameters[0].source == SourceNode("x", "")
    assert np.array_equal(module.entry.evaluate(np.ones((2, 3), np.float32)), [3, 3])


def test_attributes_that_say_how_to_run_are_skipped() -> None:
    module = parse_module(
        """HloModule jit_f, is_scheduled=true,
        entry_computation_layout={(f32[8,128]{1,0:T(8,128)})->f32[8,128]{1,0}}, replica_count=1

        FileNames
        1 "/home/x/f.py"

        StackFrames
        1 {file_location_id=1 parent_frame_id=1}

        %main (x.1: f32[8,128]) -> f32[8,128] {
          %x.1 = f32[8,128]{1,0:T(8,128)S(1)} parameter(0), frontend_attributes={a="}",b={"c":[1]}}
          ROOT %n = f32[8,128]{0,1} negate(%x.1), backend_config={"k":["{", 1]}, control-predecessors={%x.1}
        }, execution_thread="main"
        """
    )
    assert module.entry.root.op.opcode == "negate"


def test_an_attribute_that_could_change_the_result_is_an_error() -> None:
    text = entry("x = f32[2] parameter(0)", "ROOT n = f32[2] negate(x), saturate=true")
    assert error_of(text) == (
        "negate has no attribute saturate\n  line 3, column 8\n    ROOT n = f32[2] negate(x), saturate=true\n         ^"
    )


def test_total_order_comparison_orders_zeros_and_nans() -> None:
    module = parse_module(
        entry(
            "x = f32[6] parameter(0)",
            "y = f32[6] parameter(1)",
            "ROOT c = pred[6] compare(x, y), direction=LT, type=TOTALORDER",
        )
    )
    order = np.array([-np.nan, -np.inf, -1, -0.0, 0.0, np.nan], np.float32)
    assert module.entry.evaluate(order, np.roll(order, -1)).tolist() == [True] * 5 + [False]


def test_bitcast_of_another_layout_is_a_transpose() -> None:
    module = parse_module(
        entry(
            "x = f32[2,3]{1,0} parameter(0)",
            "t = f32[2,3]{0,1} copy(x)",
            "b = f32[3,2]{1,0} bitcast(t)",
            "ROOT r = f32[6]{0} bitcast(b)",
        )
    )
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert np.array_equal(module.entry.evaluate(x), x.T.reshape(-1))


def test_a_layout_does_not_change_a_value() -> None:
    text = "HloModule m, entry_computation_layout={(f32[2,3]{0,1})->f32[2,3]{0,1}}\n"
    module = parse_module(text + entry("x = f32[2,3]{0,1} parameter(0)", "ROOT n = f32[2,3]{0,1} negate(x)"))
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert np.array_equal(module.entry.evaluate(x), -x)


def test_top_k_is_a_sort() -> None:
    module = parse_module(
        entry(
            "x = f32[5] parameter(0)",
            "ROOT t = (f32[3], s32[3]) topk(x), k=3, largest=true",
        )
    )
    verify(module)
    values, places = module.entry.evaluate(np.array([1, 3, -2, 3, np.inf], np.float32))
    assert values.tolist() == [np.inf, 3, 3] and places.tolist() == [4, 1, 3]


def test_jax_programs_are_inputs() -> None:
    jax = pytest.importorskip("jax")

    def program(x: Any, w: Any) -> Any:
        y = jax.nn.softmax(x @ w)
        z = jax.lax.fori_loop(0, 3, lambda i, c: jax.numpy.sin(c) + y[0, 0], y)
        last = jax.lax.cond(y[0, 0] > 0, lambda a: a + 1, lambda a: a * 2, z)
        return jax.numpy.sort(z), last, jax.numpy.pad(y, 1)[::2], jax.numpy.cumsum(y, axis=0)

    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(4, 8)).astype(np.float32), rng.normal(size=(8, 5)).astype(np.float32)
    lowered = jax.jit(program).lower(x, w)
    expected = [np.asarray(y) for y in program(x, w)]
    for text in (lowered.compiler_ir("hlo").as_hlo_text(), lowered.compile().as_text()):
        module = parse_module(text)
        verify(module)
        for ours, theirs in zip(module.entry.evaluate(x, w), expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
        assert structurally_equal(parse_module(print_module(module)), module)


@pytest.mark.parametrize("name", FOREIGN_PROGRAMS)
def test_what_only_xla_prints_becomes_our_own_operations(name: str) -> None:
    module = parse_module(FOREIGN_PROGRAMS[name])
    verify(module)
    assert structurally_equal(parse_module(print_module(module)), module)


# Errors


@pytest.mark.parametrize(
    ("text", "cause", "line"),
    [
        ("", "0 computations, and none is marked ENTRY", 1),
        ("HloModule", "expected the name of the module", 1),
        ("HloModule m, x=1", "unknown attribute x of the module", 1),
        ("ENTRY e {", "expected an instruction or '}'", 1),
        ("ENTRY e { }", "computation e is empty", 1),
        ("a { ROOT x = f32[] parameter(0) }\nb { ROOT x = f32[] parameter(0) }", "2 computations, and none", 2),
        (entry("x = f32[] parameter(0)", "x = f32[] negate(x)"), "a second instruction is called x", 3),
        (entry("ROOT x = f32[] parameter(0)", "ROOT y = f32[] negate(x)"), "a second ROOT", 3),
        (entry("ROOT x = f32[] parameter(1)"), "parameters of main are numbered [1], not from 0 on", 1),
        (entry("x = f32[] parameter(0)", "y = f32[] parameter(0)"), "a second parameter(0)", 3),
        (entry("ROOT y = f32[] negate(x)"), "no instruction above is called x", 2),
        (entry("ROOT y = f32[<=5] parameter(0)"), "expected static dimensions", 2),
        (entry("ROOT y = f32[2]{1} parameter(0)"), "layout {1} does not fit rank 1", 2),
        (entry("x = f32[2] parameter(0)", "ROOT y = f32[3] negate(x)"), "y is declared as f32[3]{0}, but negate", 3),
        (entry("x = f32[2] parameter(0)", "ROOT y = f32[2] transpose(x)"), "needs the attribute dimensions", 3),
        (entry("x = f32[2] parameter(0)", "ROOT y = f32[] reduce(x, x), to_apply=a, dimensions={}"), "no computat", 3),
        (entry('x = f32[2] parameter(0), metadata={op_name="'), "string does not end", 2),
        ("ENTRY a { ROOT x = f32[] parameter(0) }\nENTRY b { ROOT x = f32[] parameter(0) }", "a second ENTRY", 2),
        ("a { ROOT x = f32[] parameter(0) }\na { ROOT x = f32[] parameter(0) }", "a second computation is called a", 2),
    ],
)
def test_errors_name_the_cause_and_the_line(text: str, cause: str, line: int) -> None:
    message = error_of(text)
    assert cause in message
    assert f"  line {line}, column " in message


KNOWN = "write it in operations that are known: onnxla ops --hlo lists them"


def test_all_instructions_that_are_none_are_in_one_report() -> None:
    """What stands behind them is read as if they gave what they declare."""
    text = entry(
        "x = f32[2]{0} parameter(0)",
        "t = token[] after-all()",
        "o = token[] outfeed(f32[2]{0} x, token[] t), outfeed_shape=f32[2]{0}",
        'n = f32[2]{0} negat(x), metadata={op_name="}"}',
        "w = f32[3]{0} add(x, n)",
        "c = f32[2]{0} transpose(n)",
        "s = (f32[2]{0}, u32[]) copy-start(c)",
        "ROOT d = f99[2]{0} add(x, c)",
    )
    assert error_of(text) == (
        "7 problems\n"
        "unknown operation after-all\n"
        "  line 3, column 15\n"
        "    t = token[] after-all()\n"
        "                ^\n"
        "  hint   write the program for one device, without tokens\n"
        "unknown operation outfeed\n"
        "  line 4, column 15\n"
        "    o = token[] outfeed(f32[2]{0} x, token[] t), outfeed_shape=f32[2]{0}\n"
        "                ^\n"
        "  hint   write the program for one device, without tokens\n"
        "unknown operation negat\n"
        "  line 5, column 17\n"
        '    n = f32[2]{0} negat(x), metadata={op_name="}"}\n'
        "                  ^\n"
        f"  hint   is negate meant? {KNOWN}\n"
        "w is declared as f32[3]{0}, but add gives f32[2]{0}\n"
        "  line 6, column 3\n"
        "    w = f32[3]{0} add(x, n)\n"
        "    ^\n"
        "transpose needs the attribute dimensions\n"
        "  line 7, column 3\n"
        "    c = f32[2]{0} transpose(n)\n"
        "    ^\n"
        "unknown operation copy-start\n"
        "  line 8, column 26\n"
        "    s = (f32[2]{0}, u32[]) copy-start(c)\n"
        "                           ^\n"
        '  hint   take the text before XLA\'s passes, in JAX lower(...).as_text("hlo")\n'
        "element type f99 is not supported\n"
        "  line 9, column 12\n"
        "    ROOT d = f99[2]{0} add(x, c)\n"
        "             ^"
    )


def test_what_is_only_not_supported_is_no_fault_of_the_text() -> None:
    text = entry(
        "x = f32[2]{0} parameter(0)",
        "n = f32[2]{0} negat(x)",
        "ROOT y = f32[2]{0} wave(n)",
    )
    with pytest.raises(UnsupportedOpError) as caught:
        parse_module(text)
    assert str(caught.value) == (
        "2 problems\n"
        "unknown operation negat\n"
        "  line 3, column 17\n"
        "    n = f32[2]{0} negat(x)\n"
        "                  ^\n"
        f"  hint   is negate meant? {KNOWN}\n"
        "unknown operation wave\n"
        "  line 4, column 22\n"
        "    ROOT y = f32[2]{0} wave(n)\n"
        "                       ^\n"
        f"  hint   {KNOWN}"
    )
    assert [p.hint for p in caught.value.problems] == [f"is negate meant? {KNOWN}", KNOWN]
    element = error_of(entry("ROOT y = f99[] parameter(0)"), UnsupportedOpError)
    assert element.startswith("element type f99 is not supported\n  line 2, column 12\n")
    error_of(text.replace("wave(n)", "add(n)"))
    error_of(text.replace("wave(n)", "wave(n"), HloError)


def test_what_ends_reading_is_said_behind_what_was_found_before() -> None:
    message = error_of(entry("x = f32[2]{0} parameter(0)", "y = f32[2]{0} wave(x)", "ROOT z = f32[2]{0} add(x, q)"))
    assert message == (
        "2 problems\n"
        "unknown operation wave\n"
        "  line 3, column 17\n"
        "    y = f32[2]{0} wave(x)\n"
        "                  ^\n"
        f"  hint   {KNOWN}\n"
        "no instruction above is called q\n"
        "  line 4, column 29\n"
        "    ROOT z = f32[2]{0} add(x, q)\n"
        "                              ^"
    )


def test_an_error_shows_the_line_and_the_column() -> None:
    assert error_of(entry("x = f32[2] parameter(0)", "ROOT y = f32[2] add(x, z)")) == (
        "no instruction above is called z\n"
        "  line 3, column 26\n"
        "    ROOT y = f32[2] add(x, z)\n"
        "                           ^"
    )


def test_an_error_in_a_long_line_shows_its_neighbourhood() -> None:
    message = error_of(entry("x = f32[2] parameter(0)", f"ROOT y = f32[2] add({'x, ' * 10_000}z)"))
    assert max(map(len, message.splitlines())) < 120


# Limits


@pytest.mark.parametrize(
    ("limits", "text", "cause"),
    [
        (Limits(text_bytes=10), entry("ROOT x = f32[] parameter(0)"), "text_bytes"),
        (Limits(nodes=1), entry("x = f32[] parameter(0)", "ROOT y = f32[] negate(x)"), "nodes"),
        (Limits(nesting=3), entry(f"ROOT x = {'(' * 5}f32[]{')' * 5} parameter(0)"), "nesting"),
        (Limits(elements=100), entry("ROOT x = f32[101] parameter(0)"), "elements"),
        (Limits(elements=100), entry("ROOT x = f32[0,101] parameter(0)"), "elements"),
    ],
)
def test_limits_hold(limits: Limits, text: str, cause: str) -> None:
    with pytest.raises(ResourceLimitError, match=cause):
        parse_module(text, limits=limits)


def test_calls_nest_within_the_limit() -> None:
    chain = "c0 { ROOT x = f32[] parameter(0) }\n" + "".join(
        f"c{i} {{\n x = f32[] parameter(0)\n ROOT y = f32[] call(x), to_apply=c{i - 1}\n}}\n" for i in range(1, 500)
    )
    with pytest.raises(ResourceLimitError, match="calls nest deeper than 100"):
        parse_module(chain + entry("ROOT x = f32[] parameter(0)"))


@pytest.mark.parametrize(
    "text",
    [
        "(" * 100_000,
        entry("ROOT x = " + "(" * 100_000),
        entry("x = f32[] parameter(0), metadata=" + "{" * 100_000),
        "/*" * 100_000,
        '"' * 100_001,
        entry('x = f32[] parameter(0), a="' + '\\"' * 100_000),
        entry(f"x = f32[{'9' * 100_000}] parameter(0)"),
        entry(f"x = f32[{'9,' * 100_000}9] parameter(0)"),
        entry(f"x = s32[] constant({'9' * 100_000})"),
        entry(f"x = f32[] constant({'{' * 100_000}"),
        entry(f"x = f32[] constant(1e{'9' * 100_000})"),
        "HloModule " + "m, " * 100_000,
        "FileNames\n1 \n" * 50_000,
        "\x00\ud800",
        entry("ROOT x = f32[\x1e5] parameter(0)"),
        entry("ROOT x = f32[\u0663] parameter(0)"),
        entry("x = f32[2] parameter(0)", "ROOT y = f32[2] reverse(x), dimensions={\x1e0, \u0660}"),
    ],
    ids=range(17),
)
def test_hostile_text_is_refused(text: str) -> None:
    with pytest.raises(OnnxlaError) as caught:
        parse_module(text)
    assert len(str(caught.value)) < 1000


def test_a_long_chain_needs_no_deep_recursion() -> None:
    lines = ["x0 = f32[] parameter(0)", *(f"x{i} = f32[] negate(x{i - 1})" for i in range(1, 20_000))]
    module = parse_module(entry(*lines))
    verify(module)
    assert structurally_equal(parse_module(print_module(module)), module)


_PROGRAMS = PROGRAMS | FOREIGN_PROGRAMS
_WORDS = sorted({word for text in _PROGRAMS.values() for word in re.findall(r"%?[\w.\-]+|\S|\s", text)})


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(sorted(_PROGRAMS)), st.data())
def test_mutated_programs_parse_or_raise_a_typed_error(opcode: str, data: st.DataObject) -> None:
    words = re.findall(r"%?[\w.\-]+|\S|\s+", _PROGRAMS[opcode])
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(words) - 1))
        action = data.draw(st.sampled_from(["replace", "delete", "repeat", "swap"]))
        other = data.draw(st.integers(0, len(words) - 1))
        if action == "replace":
            words[place] = data.draw(st.sampled_from(_WORDS) | st.text(max_size=4))
        elif action == "delete":
            words[place] = ""
        elif action == "repeat":
            words[place] *= 2
        else:
            words[place], words[other] = words[other], words[place]
    try:
        module = parse_module("".join(words), limits=Limits(elements=1 << 20), weights=zero_weights)
    except OnnxlaError:
        return
    verify(module)
    assert structurally_equal(parse_module(print_module(module, weights="full")), module)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda b: b.decode("latin-1")))
def test_any_text_parses_or_raises_a_typed_error(text: str) -> None:
    with pytest.raises(OnnxlaError):
        parse_module(text)


def test_type_text_is_the_types_own() -> None:
    nested = TupleType((TensorType(BF16, (2, 3)), TupleType((TensorType(F32),)), TupleType(())))
    b = Builder()
    module = Module("m", b.build(b.parameter(nested)))
    assert "(bf16[2,3]{1,0}, (f32[]), ()) parameter(0)" in print_module(module)
    assert parse_module(print_module(module)).entry.result_type == nested
    assert ml_dtypes.bfloat16 == BF16.dtype
