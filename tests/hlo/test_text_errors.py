"""HLO text that is wrong: every error names cause and line, and no text does more harm than that."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onnxla.config import Limits
from onnxla.errors import HloError, OnnxlaError, ResourceLimitError, UnsupportedOpError
from onnxla.hlo.fingerprint import structurally_equal
from onnxla.hlo.parser import parse_module, zero_weights
from onnxla.hlo.printer import print_module
from onnxla.hlo.verifier import verify
from tests.hlo.programs import FOREIGN_PROGRAMS, PROGRAMS
from tests.hlo.texts import entry, error_of


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
