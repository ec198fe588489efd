"""Constants in HLO text: every value comes back bit for bit, and long ones by name."""

import math

import numpy as np
import pytest

from onnxla.errors import HloError
from onnxla.hlo.builder import Builder
from onnxla.hlo.fingerprint import structurally_equal
from onnxla.hlo.literal_text import format_literal, parse_literal
from onnxla.hlo.module import Module
from onnxla.hlo.parser import parse_module, weights_from
from onnxla.hlo.printer import long_constants, print_module
from onnxla.hlo.types import ELEMENT_TYPES, F32, S32, Array, ElementType, Kind, TensorType, type_of
from tests.hlo.texts import entry, error_of


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
