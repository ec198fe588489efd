"""StableHLO's text: what is accepted, and what every kind of wrong text is told, with the line and column of it."""

import random
import re
from pathlib import Path

import numpy as np
import pytest

import onnxla
from onnxla.config import Limits
from onnxla.errors import (
    CompileError,
    DynamicShapeError,
    HloError,
    ModelFormatError,
    OnnxlaError,
    ResourceLimitError,
    ShapeError,
    UnboundDimensionsError,
    UnsupportedOpError,
)
from onnxla.frontends.hlo.importer import import_program
from onnxla.frontends.hlo.model_file import is_hlo, read_hlo
from onnxla.frontends.hlo.operations import read_program
from onnxla.hlo.types import Array, Value

PROGRAMS = Path(__file__).parent / "programs"


def function(*lines: str, arguments: str = "%x: tensor<2x3xf32>", result: str = "tensor<2x3xf32>") -> str:
    body = "\n".join(f"    {line}" for line in lines)
    return f"module @m {{\n  func.func public @main({arguments}) -> {result} {{\n{body}\n  }}\n}}\n"


def evaluate(text: str, *inputs: Array) -> Value:
    return import_program(read_program(text)).module.entry.evaluate(*inputs)


def error_of(text: str, kind: type[OnnxlaError] = HloError) -> str:
    with pytest.raises(kind) as caught:
        import_program(read_program(text))
    return str(caught.value)


# What is accepted


def test_a_function_without_a_module() -> None:
    text = "func.func @f(%a: tensor<f32>) -> tensor<f32> {\n  return %a : tensor<f32>\n}\n"
    assert import_program(read_program(text)).inputs[0].name == "a"


def constant_of(type: str, value: str) -> Array:
    text = function(
        f"%0 = stablehlo.constant dense<{value}> : tensor<{type}>",
        f"return %0 : tensor<{type}>",
        arguments="",
        result=f"tensor<{type}>",
    )
    result: Array = evaluate(text)[0]
    return result


@pytest.mark.parametrize(
    ("type", "value", "expected"),
    [
        ("f32", "0x7F800000", np.array(np.inf, np.float32)),
        ("2xf32", "[1.5, -0.0]", np.array([1.5, -0.0], np.float32)),
        ("2x2xi32", "[[1, -2], [3, 4]]", np.array([[1, -2], [3, 4]], np.int32)),
        ("3xi1", "[true, false, true]", np.array([True, False, True])),
        ("9xi1", '"0xA301"', np.array([1, 1, 0, 0, 0, 1, 0, 1, 1], bool)),
        ("3xi1", "true", np.array([True] * 3)),
        ("2xf32", '"0x0000803F000000C0"', np.array([1, -2], np.float32)),
        ("3xf32", '"0x0000803F"', np.array([1, 1, 1], np.float32)),
        ("2xui8", "[255, 0]", np.array([255, 0], np.uint8)),
        ("2xi8", "[-128, 127]", np.array([-128, 127], np.int8)),
        ("2xcomplex<f32>", "[(1.0, 2.0), (0.0, -1.0)]", np.array([1 + 2j, complex(0, -1)], np.complex64)),
        ("0x3xf32", "", np.zeros((0, 3), np.float32)),
        ("2xi64", "7", np.array([7, 7])),
        ("f64", "1.000000e-03", np.array(1e-3)),
    ],
)
def test_constants(type: str, value: str, expected: Array) -> None:
    found = constant_of(type, value)
    assert found.dtype == expected.dtype and found.shape == expected.shape
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    ("type", "value", "cause"),
    [
        ("2xf32", "[1.0]", "the values have the shape [1], not that of f32[2]"),
        ("2x2xf32", "[[1.0, 2.0], [3.0]]", "the lists of a constant differ in length"),
        ("2xf32", "[1.0, [2.0]]", "the lists of a constant differ in depth"),
        ("i8", "300", "300 is outside s8"),
        ("i32", "1.5", "1.5 is not an integer of type s32"),
        ("f32", "0x7F80000000", "0x7F80000000 are not the bits of a number of type f32"),
        ("2xf32", '"0x00"', "f32[2] needs 8 bytes, found 1"),
        ("2xf32", '"0xZZ"', "a constant's bytes are not hexadecimal digits"),
        ("2xf32", "[1.0, 2.0", "a list of values is not closed"),
        ("2xf32", "", "f32[2] needs 2 values, found none"),
        ("?xf32", "1.0", "a constant of type f32[?]"),
        ("2xf32", "[one, 2.0]", "'one, 2.0]' is not a value"),
    ],
)
def test_constants_that_do_not_fit(type: str, value: str, cause: str) -> None:
    text = function(f"%0 = stablehlo.constant dense<{value}> : tensor<{type}>", "return %x : tensor<2x3xf32>")
    message = error_of(text)
    assert cause in message and "line 3, column" in message


def test_resources_at_the_end() -> None:
    text = function(
        "%0 = stablehlo.constant dense_resource<w> : tensor<2xf32>", "return %0 : tensor<2xf32>", result="tensor<2xf32>"
    )
    text += '{-#\n  dialect_resources: {\n    builtin: {\n      w: "0x040000000000803F000000C0"\n    }\n  }\n#-}\n'
    assert evaluate(text, np.zeros((2, 3), np.float32))[0].tolist() == [1, -2]


def test_what_a_region_reads_from_around_it_is_passed_to_it() -> None:
    text = function(
        "%one = stablehlo.constant dense<1> : tensor<i32>",
        "%three = stablehlo.constant dense<3> : tensor<i32>",
        "%zero = stablehlo.constant dense<0> : tensor<i32>",
        "%y = stablehlo.add %x, %x : tensor<2x3xf32>",
        "%r:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<2x3xf32>",
        "cond {",
        "  %c = stablehlo.compare LT, %i, %three, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>",
        "  stablehlo.return %c : tensor<i1>",
        "} do {",
        "  %n = stablehlo.add %i, %one : tensor<i32>",
        "  %w = stablehlo.add %v, %y : tensor<2x3xf32>",
        "  stablehlo.return %n, %w : tensor<i32>, tensor<2x3xf32>",
        "}",
        "return %r#1 : tensor<2x3xf32>",
    )
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert np.array_equal(evaluate(text, x)[0], 7 * x)
    assert np.array_equal(onnxla.compile(text, options={"opt_level": 0})(x), 7 * x)


@pytest.mark.parametrize(("exponent", "mantissa"), [(8, 7), (5, 10), (5, 2), (4, 3), (8, 23), (2, 1), (8, 0)])
def test_reduced_precision(exponent: int, mantissa: int) -> None:
    jax = pytest.importorskip("jax")
    edges = [0.0, -0.0, 1.0, 1.5, 0.1, 65504, 65520, 1e-5, 6e-8, 3.3e38, -1e38, np.inf, -np.inf, np.nan, 2e-38]
    x = np.concatenate([edges, np.random.default_rng(0).standard_normal(50) * 10.0 ** np.arange(-25, 25)])
    x = x.astype(np.float32)
    text = function(
        f"%0 = stablehlo.reduce_precision %x, format = e{exponent}m{mantissa} : tensor<{x.size}xf32>",
        f"return %0 : tensor<{x.size}xf32>",
        arguments=f"%x: tensor<{x.size}xf32>",
        result=f"tensor<{x.size}xf32>",
    )
    theirs = np.asarray(jax.jit(lambda v: jax.lax.reduce_precision(v, exponent, mantissa))(x))
    ours = evaluate(text, x)[0]
    assert np.array_equal(ours, theirs, equal_nan=True) and np.array_equal(np.signbit(ours), np.signbit(theirs))


BATCH_NORM = """
HloModule norm
ENTRY main {
  x = f32[3,5,4] parameter(0)
  scale = f32[5] parameter(1)
  offset = f32[5] parameter(2)
  g = f32[3,5,4] parameter(3)
  t = (f32[3,5,4], f32[5], f32[5]) batch-norm-training(x, scale, offset), epsilon=0.001, feature_index=1
  y = f32[3,5,4] get-tuple-element(t), index=0
  m = f32[5] get-tuple-element(t), index=1
  v = f32[5] get-tuple-element(t), index=2
  d = (f32[3,5,4], f32[5], f32[5]) batch-norm-grad(x, scale, m, v, g), epsilon=0.001, feature_index=1
  dx = f32[3,5,4] get-tuple-element(d), index=0
  ds = f32[5] get-tuple-element(d), index=1
  do = f32[5] get-tuple-element(d), index=2
  n = f32[3,5,4] batch-norm-inference(x, scale, offset, m, scale), epsilon=0.1, feature_index=1
  ROOT r = (f32[3,5,4], f32[5], f32[5], f32[3,5,4], f32[5], f32[5], f32[3,5,4]) tuple(y, m, v, dx, ds, do, n)
}
"""
GENERIC_BATCH_NORM = """
func.func @main(%x: tensor<3x5x4xf32>, %s: tensor<5xf32>, %o: tensor<5xf32>, %g: tensor<3x5x4xf32>)
    -> (tensor<3x5x4xf32>, tensor<5xf32>, tensor<5xf32>, tensor<3x5x4xf32>, tensor<5xf32>, tensor<5xf32>,
        tensor<3x5x4xf32>) {
  %t:3 = "stablehlo.batch_norm_training"(%x, %s, %o) <{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}>
    : (tensor<3x5x4xf32>, tensor<5xf32>, tensor<5xf32>) -> (tensor<3x5x4xf32>, tensor<5xf32>, tensor<5xf32>)
  %d:3 = "stablehlo.batch_norm_grad"(%x, %s, %t#1, %t#2, %g) <{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}>
    : (tensor<3x5x4xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<3x5x4xf32>)
    -> (tensor<3x5x4xf32>, tensor<5xf32>, tensor<5xf32>)
  %n = "stablehlo.batch_norm_inference"(%x, %s, %o, %t#1, %s) <{epsilon = 1.0e-1 : f32, feature_index = 1 : i64}>
    : (tensor<3x5x4xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>) -> tensor<3x5x4xf32>
  return %t#0, %t#1, %t#2, %d#0, %d#1, %d#2, %n : tensor<3x5x4xf32>, tensor<5xf32>, tensor<5xf32>, tensor<3x5x4xf32>,
    tensor<5xf32>, tensor<5xf32>, tensor<3x5x4xf32>
}
"""


@pytest.mark.parametrize("text", [BATCH_NORM, GENERIC_BATCH_NORM])
def test_batch_normalisation(text: str) -> None:
    """Against XLA, which reads the same text."""
    pytest.importorskip("jax")
    from tests.hlo import xla_witness

    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(s).astype(np.float32) for s in ((3, 5, 4), 5, 5, (3, 5, 4))]
    arrays[1] = np.abs(arrays[1])
    compiled = onnxla.compile(text, options={"opt_level": 0})
    ours = compiled.run(None, dict(zip((i.name for i in compiled.get_inputs()), arrays, strict=True)))
    for mine, theirs in zip(ours, xla_witness.run(BATCH_NORM, arrays), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)


# What is wrong with a program


def test_every_problem_is_reported_at_once() -> None:
    text = function(
        '%0 = "stablehlo.all_reduce"(%x) ({ ^bb0(%a: tensor<f32>): stablehlo.return %a : tensor<f32> }) '
        ": (tensor<2x3xf32>) -> tensor<2x3xf32>",
        "%1 = stablehlo.add %0, %x : tensor<2x3xf32>",
        "%2 = chlo.lgamma %x : tensor<2x3xf32> -> tensor<2x3xf32>",
        "%3 = stablehlo.custom_call @mine(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>",
        "%4 = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<2x3xf32>",
        "return %1 : tensor<2x3xf32>",
    )
    with pytest.raises(CompileError) as caught:
        import_program(read_program(text))
    problems = [(p.kind, p.cause, dict(p.details)["at"]) for p in caught.value.problems]
    assert problems == [
        (UnsupportedOpError, "the operation stablehlo.all_reduce is not supported", "line 3, column 5"),
        (UnsupportedOpError, "the operation chlo.lgamma is not supported", "line 5, column 5"),
        (UnsupportedOpError, "the custom call of mine is not supported", "line 6, column 5"),
        (ShapeError, "result 0 is declared as f32[2,3], and is f32[3,2]{1,0}", "line 7, column 5"),
    ]


def test_operations_behind_rejected_ones_in_regions_and_functions_are_in_the_report() -> None:
    """Those of other dialects too, whose text is not known: their lines are stepped over."""
    text = """
func.func @f(%x: tensor<f32>) -> tensor<f32> {
  %0 = "mine.thing"(%x) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.tan_h %x : tensor<f32>
  %1 = arith.addf %0, %x : tensor<f32> loc("a}b")
  %2 = scf.for %i = %a to %b {
    %7 = foo.bar
  }
  %3 = call @f(%1) : (tensor<f32>) -> tensor<f32>
  %4 = stablehlo.add %3, %0 : tensor<f32>
  %5 = stablehlo.while(%it = %4) : tensor<f32> cond {
      %7 = "stablehlo.recv"() : () -> tensor<i1>
      stablehlo.return %7 : tensor<i1>
  } do {
      %7 = chlo.lgamma %it : tensor<f32> -> tensor<f32>
      stablehlo.return %7 : tensor<f32>
  }
  return %5 : tensor<f32>
}
"""
    with pytest.raises(CompileError) as caught:
        import_program(read_program(text))
    known = "write it in operations of StableHLO: onnxla ops --stablehlo lists those that there are rules for"
    assert str(caught.value) == (
        "6 problems\n"
        "the operation stablehlo.tan_h is not supported\n"
        "  node   %0 (stablehlo.tan_h)\n"
        "  at     line 7, column 3\n"
        f"  hint   is stablehlo.tanh meant? {known}\n"
        "the operation arith.addf is not supported\n"
        "  node   %1 (arith.addf)\n"
        "  at     line 8, column 3\n"
        f"  hint   {known}\n"
        "the operation scf.for is not supported\n"
        "  node   %2 (scf.for)\n"
        "  at     line 9, column 3\n"
        f"  hint   {known}\n"
        "the operation mine.thing is not supported\n"
        "  node   %0 (mine.thing)\n"
        "  at     line 3, column 3\n"
        f"  hint   {known}\n"
        "the operation stablehlo.recv is not supported\n"
        "  node   %7 (stablehlo.recv)\n"
        "  at     line 15, column 7\n"
        "  hint   write the program for one device, without tokens\n"
        "the operation chlo.lgamma is not supported\n"
        "  node   %7 (chlo.lgamma)\n"
        "  at     line 18, column 7\n"
        "  hint   jax.export writes it out in operations of StableHLO"
    )


@pytest.mark.parametrize(
    ("line", "kind", "cause"),
    [
        ("%0 = stablehlo.add %x, %y : tensor<2x3xf32>", ShapeError, "no value above is called %y"),
        ("%0 = stablehlo.add %x : tensor<2x3xf32>", ShapeError, "2 operands were expected, there are 1"),
        ("%x = stablehlo.negate %x : tensor<2x3xf32>", ShapeError, "a second value is called %x"),
        ("%0 = call @f(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>", ShapeError, "no function is called @f"),
        ("%0 = call @main(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>", UnsupportedOpError, "@main calls itself"),
        (
            "%0 = stablehlo.slice %x [0:3, 0:1] : (tensor<2x3xf32>) -> tensor<3x1xf32>",
            ShapeError,
            "slice",
        ),
        (
            "%0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] "
            ": (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>",
            ShapeError,
            "contracting dimensions",
        ),
        ("%0 = stablehlo.reshape %x : (tensor<2x3xf32>) -> tensor<7xf32>", ShapeError, "reshape"),
        ("%0 = stablehlo.iota dim = 2 : tensor<2x3xi32>", ShapeError, "iota_dimension 2 is out of range"),
        (
            "%0 = stablehlo.broadcast_in_dim %x, dims = [0, 5] : (tensor<2x3xf32>) -> tensor<2x3xf32>",
            ShapeError,
            "dims",
        ),
        ("%0 = stablehlo.transpose %x, dims = [0, 0] : (tensor<2x3xf32>) -> tensor<2x2xf32>", ShapeError, ""),
        (
            "%0 = stablehlo.reshape %x : (tensor<2x2xf32>) -> tensor<4xf32>",
            ShapeError,
            "operand 0 is declared as f32[2,2]",
        ),
        ("%0 = stablehlo.concatenate %x, dim = 9 : (tensor<2x3xf32>) -> tensor<2x3xf32>", ShapeError, "dim = 9"),
    ],
)
def test_a_program_that_makes_no_sense(line: str, kind: type[OnnxlaError], cause: str) -> None:
    message = error_of(function(line, "return %x : tensor<2x3xf32>"), kind)
    assert cause in message and "line 3, column 5" in message


def test_shapes_that_data_decide() -> None:
    text = function(
        "%0 = stablehlo.dynamic_iota %x, dim = 0 : (tensor<1xi32>) -> tensor<?xi32>",
        "return %0 : tensor<?xi32>",
        arguments="%x: tensor<1xi32>",
        result="tensor<?xi32>",
    )
    assert "decides the shape of the result" in error_of(text, DynamicShapeError)


def test_sizes_that_nothing_gives() -> None:
    text = function("return %x : tensor<?x3xf32>", arguments="%x: tensor<?x3xf32>", result="tensor<?x3xf32>")
    assert "give dims={'x.0': 1}" in error_of(text, UnboundDimensionsError)
    imported = import_program(read_program(text), dims={"x.0": 5})
    assert imported.outputs[0].type.shape == (5, 3)


# What is wrong with a text


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("%0 = stablehlo.add %x, : tensor<2x3xf32>", "2 operands were expected"),
        ("%0 = stablehlo.add %x, %x", "expected an operand or attribute of stablehlo.add, or ':' and its types"),
        ("%0 = stablehlo.add %x, %x : tensor<2x3xf33>", "the element type f33 is not supported"),
        ("%0 = stablehlo.add %x, %x : tensor<*xf32>", "a tensor without a rank"),
        ("%0 = stablehlo.add %x, %x : vector<2xf32>", "the type vector is not supported"),
        ("%0, %1 = stablehlo.add %x, %x : tensor<2x3xf32>", "has 1 results, and 2 names for them"),
        ("%0 = arith.addf %x, %x : tensor<2x3xf32>", "the operation arith.addf is not supported"),
        ('%0 = "stablehlo.add"(%x, %x) : (tensor<2x3xf32>) -> tensor<2x3xf32>', "2 operands and 1 types"),
        ('"cf.br"(%x)[^bb1] : (tensor<2x3xf32>) -> ()', "successors"),
        ("%0 = stablehlo.while(%a = %x) : tensor<2x3xf32> cond {", "expected"),
        ("%0 = stablehlo.constant dense<1.0 : tensor<f32>", ""),
        ("%0 = stablehlo.custom_call @f(%x) {a = [} : () -> ()", "expected a value"),
        ("%0 = stablehlo.custom_call @f(%x) {a = 1, a = 2} : () -> ()", "a second attribute a"),
        ("%0 = stablehlo.add %x, %x : tensor<2x3xf32> loc(#l", "expected an operation"),
    ],
)
def test_text_that_does_not_read(line: str, cause: str) -> None:
    with pytest.raises(OnnxlaError) as caught:
        import_program(read_program(function(line, "return %x : tensor<2x3xf32>")))
    assert cause in str(caught.value) and re.search(r"line \d+, column \d+", str(caught.value))


def test_limits() -> None:
    deep = "[" * 5000 + "]" * 5000
    attribute = function(f"%0 = stablehlo.custom_call @f(%x) {{a = {deep}}} : (tensor<2x3xf32>) -> tensor<2x3xf32>")
    region = '"stablehlo.case"(%x) ({' * 5000
    tuples = function(f"%0 = stablehlo.tuple %x : {'tuple<' * 5000}")
    huge = function("%0 = stablehlo.iota dim = 0 : tensor<9999999999x9999999999xf32>")
    many = function(*["%0 = stablehlo.negate %x : tensor<2x3xf32>"] * 50)
    calls = "".join(
        f"func.func private @f{k}(%x: tensor<f32>) -> tensor<f32> {{\n"
        f"  %0 = call @f{k + 1}(%x) : (tensor<f32>) -> tensor<f32>\n  return %0 : tensor<f32>\n}}\n"
        for k in range(300)
    )
    calls += "func.func @main(%x: tensor<f32>) -> tensor<f32> {\n  %0 = call @f0(%x) : (tensor<f32>) -> tensor<f32>\n"
    calls += "  return %0 : tensor<f32>\n}\n"
    for text in (attribute, function(region), tuples, huge, calls):
        with pytest.raises(ResourceLimitError):
            import_program(read_program(text))
    with pytest.raises(ResourceLimitError, match="more than 20 operations"):
        read_program(many, Limits(nodes=20))
    with pytest.raises(ResourceLimitError, match="text_bytes"):
        read_program(many, Limits(text_bytes=100))


def test_one_value_repeated_billions_of_times_takes_no_memory() -> None:
    text = function(
        "%0 = stablehlo.constant dense<1.0> : tensor<100000x100000xf32>",
        "%1 = stablehlo.slice %0 [0:2, 0:3] : (tensor<100000x100000xf32>) -> tensor<2x3xf32>",
        "return %1 : tensor<2x3xf32>",
    )
    assert onnxla.compile(text, options={"opt_level": 0})(np.zeros((2, 3), np.float32)).sum() == 6


def test_any_damage_of_a_text_is_an_error_or_a_program() -> None:
    """Characters lost, doubled or exchanged, anywhere."""
    rng = random.Random(0)
    texts = [p.read_text() for p in sorted(PROGRAMS.glob("*.mlir")) if p.stat().st_size < 6000]
    refused = 0
    for _ in range(400):
        text = rng.choice(texts)
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(text))
            kept = rng.choice(["", text[at] * 2, rng.choice('<>{}[]()%#"0x9-:,@?=e'), text[rng.randrange(len(text))]])
            text = text[:at] + kept + text[at + rng.choice([0, 1, 1, 5]) :]
        try:
            import_program(read_program(text, Limits(elements=1 << 20)))
        except OnnxlaError:
            refused += 1
    assert refused > 200


# What is taken for HLO


def test_what_is_taken_for_hlo(tmp_path: Path) -> None:
    mlir, xla = function("return %x : tensor<2x3xf32>"), "HloModule m\nENTRY e { ROOT x = f32[] parameter(0) }\n"
    for text in (mlir, xla, f"// a comment\n{mlir}", f"// a comment\n{xla}", f"#loc = loc(unknown)\n{mlir}"):
        assert is_hlo(text) and is_hlo(text.encode())
        (tmp_path / "model").write_text(text)
        assert is_hlo(tmp_path / "model") and is_hlo(str(tmp_path / "model"))
    assert not is_hlo("some\nwords") and not is_hlo(b"\x08\x07\x12\x04test") and not is_hlo(tmp_path / "absent.onnx")
    with pytest.raises(ModelFormatError, match="neither XLA's HLO nor StableHLO"):
        onnxla.compile("some\nwords")
    with pytest.raises(ModelFormatError, match="cannot be read as HLO text"):
        read_hlo(tmp_path / "absent.mlir")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("stablehlo.exponentiall", "is stablehlo.exponential meant? "),
        ("stablehlo.foo_bar", ""),
        ("mhlo.tan_h", "is mhlo.tanh meant? "),
        ("chlo.erff", "is chlo.erf meant? "),
    ],
)
def test_only_a_similar_name_of_the_dialect_may_have_been_meant(name: str, meant: str) -> None:
    text = (
        "module { func.func public @main(%arg0: tensor<f32>) -> tensor<f32> {\n"
        f'  %0 = "{name}"(%arg0) : (tensor<f32>) -> tensor<f32>\n'
        "  return %0 : tensor<f32> } }"
    )
    with pytest.raises(CompileError) as caught:
        import_program(read_program(text))
    (problem,) = caught.value.problems
    assert problem.hint.split("write it in")[0].split("jax.export")[0] == meant
