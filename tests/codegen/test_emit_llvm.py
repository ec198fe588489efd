"""Kernels as LLVM IR: valid text, vector code, and the conversions that LLVM itself does badly."""

import ctypes
from collections.abc import Sequence

import numpy as np
import pytest

from onnxla.codegen.cpu.compile_llvm import assembly, compile_module
from onnxla.codegen.cpu.emit_llvm import emitter
from onnxla.codegen.cpu.target import host_target, named_target
from onnxla.codegen.kernels import math
from onnxla.codegen.kernels.builder import KernelBuilder
from onnxla.hlo.types import F16, F32, F64, PRED, S8, S32, S64, U8, U32, U64, Array, ElementType, element_of
from onnxla.runtime.loader import NativeLibrary

LANES = 8


def one_vector(opcode: str, source: ElementType, target: ElementType, looks_up: bool = False) -> KernelBuilder:
    """A kernel that applies a unary operation, or a conversion, to one vector."""
    b = KernelBuilder("one_vector", looks_up=looks_up)
    given, result = b.parameter("in0", source, LANES, "input"), b.parameter("out0", target, LANES, "output")
    x = b.load(given, b.const(0), LANES)
    y = b.convert(x, target) if opcode == "convert" else math.UNARY[opcode](b, x)
    b.store(result, b.const(0), y)
    return b


def run(b: KernelBuilder, x: Array, result: ElementType) -> Array:
    code = compile_module(emitter(host_target())(b.finish(), "kernel"), host_target())
    return call(code, [x], np.zeros(LANES, result.dtype))


def call(code: bytes, arguments: Sequence[Array], out: Array) -> Array:
    library = NativeLibrary([code], {})
    addresses = [array.ctypes.data for array in (*arguments, out)]
    pointers = (ctypes.c_void_p * len(addresses))(*addresses)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(library["kernel"])(ctypes.addressof(pointers), 0)
    return out


@pytest.mark.parametrize("target", [S8, U8, S32, U32, S64, U64])
@pytest.mark.parametrize("source", [F32, F64])
def test_floats_saturate_as_integers(source: ElementType, target: ElementType) -> None:
    limits = np.iinfo(target.dtype)
    x = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 1.99, -0.99, 100.0], source.dtype)
    expected = np.array([0, limits.max, limits.min, limits.max, limits.min, 1, 0, 100], target.dtype)
    np.testing.assert_array_equal(run(one_vector("convert", source, target), x, target), expected)


def test_pred_is_a_byte_in_memory() -> None:
    x = np.array([0.0, -0.0, 1.0, np.nan, 2.0, 0.0, -1.0, np.inf], np.float32)
    result = run(one_vector("convert", F32, PRED), x, PRED)
    np.testing.assert_array_equal(result.view(np.uint8), [0, 0, 1, 1, 1, 0, 1, 1])


def test_half_precision_rounds_once_from_f64_to_f32_to_f16() -> None:
    b = KernelBuilder("twice")
    given, result = b.parameter("in0", F64, LANES, "input"), b.parameter("out0", F16, LANES, "output")
    b.store(result, b.const(0), b.convert(b.convert(b.load(given, b.const(0), LANES), F32), F16))
    x = np.linspace(-3, 70000, LANES)
    with np.errstate(over="ignore"):
        expected = x.astype(np.float32).astype(np.float16)
    np.testing.assert_array_equal(run(b, x, element_of(np.float16)), expected)


@pytest.mark.parametrize("opcode", math.UNARY)
def test_mathematical_functions_are_vector_code_that_calls_nothing(opcode: str) -> None:
    for target in (host_target(), named_target("x86-64-v3")):
        for element in (F32, F64):
            kernel = one_vector(opcode, element, element, target.looks_up).finish()
            text = assembly(emitter(target)(kernel, "kernel"), target)
            assert "call" not in text, f"{opcode} of {element} calls a function for {target.name}"


@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16, 32, 64])
@pytest.mark.parametrize("name", ["host", "x86-64-v3"])
def test_a_lookup_takes_the_last_three_bits_of_each_lane(name: str, lanes: int) -> None:
    target = named_target(name)
    if not (target.looks_up and host_target().looks_up):
        pytest.skip("the CPU has no such instruction")
    b = KernelBuilder("lookup", looks_up=True)
    given, result = b.parameter("in0", S32, lanes, "input"), b.parameter("out0", S32, lanes, "output")
    table = (-5, 7, 2**31 - 1, -(2**31), 0, 1, 100, -1)
    b.store(result, b.const(0), b.lookup(table, b.load(given, b.const(0), lanes)))
    x = np.random.default_rng(lanes).integers(-(2**31), 2**31, lanes).astype(np.int32)
    out = call(compile_module(emitter(target)(b.finish(), "kernel"), target), [x], np.zeros(lanes, np.int32))
    np.testing.assert_array_equal(out, np.array(table, np.int32)[x % 8])


@pytest.mark.parametrize("active", [1, 2, 7])
@pytest.mark.parametrize("source, target", [(S32, S8), (S32, U8), (S64, S32), (S64, S8), (F32, S8), (F32, F16)])
def test_a_masked_store_of_narrowed_elements_writes_no_byte_behind_them(
    source: ElementType, target: ElementType, active: int
) -> None:
    """LLVM stores the whole wide element where one lane is left, with AVX-512."""
    b = KernelBuilder("tail")
    given, result = b.parameter("in0", source, LANES, "input"), b.parameter("out0", target, LANES, "output")
    mask = b.compare("LT", b.step(LANES), b.const(active))
    b.store(result, b.const(0), b.convert(b.load(given, b.const(0), LANES), target), mask)
    x = np.full(LANES, 255 if source is S32 and target is U8 else -1, source.dtype)
    stored = 255 if target is U8 else -1
    expected = np.array([stored] * active + [0] * (LANES - active), target.dtype)
    np.testing.assert_array_equal(run(b, x, target), expected)
    assert ("masked.store" in emitter(host_target())(b.finish(), "kernel")) == (active > 1)


@pytest.mark.parametrize("registers", [1, 2, 4])
@pytest.mark.parametrize("element", [PRED, U8, S32, F32, F64])
@pytest.mark.parametrize("first, last", [(1, 4), (0, 8), (8, 16), (5, 11), (0, 5), (12, 13), (0, 16)])
@pytest.mark.parametrize("level", [0, 2])
def test_masks_of_vectors_wider_than_a_register(
    level: int, first: int, last: int, element: ElementType, registers: int
) -> None:
    """LLVM 22 takes a register's part of a mask for all true where it is known to be all false."""
    target = host_target()
    lanes = registers * target.vector_bytes // element.bytes
    first, last = first * lanes // 16, last * lanes // 16
    b = KernelBuilder("part")
    given = b.parameter("in0", element, lanes, "input")
    flag = b.parameter("in1", PRED, 1, "input")
    result = b.parameter("out0", element, 2 * lanes, "output")
    place = b.step(lanes)
    inside = b.and_(b.compare("GE", place, b.const(first)), b.compare("LT", place, b.const(last)))
    mask = b.and_(b.splat(b.load(flag, b.const(0)), lanes), inside)
    loaded = b.load(given, b.const(0), lanes, mask)
    b.store(result, b.const(0), loaded)
    b.store(result, b.const(lanes), b.load(given, b.const(0), lanes), b.not_(mask))
    code = compile_module(emitter(target)(b.finish(), "kernel"), target, level)
    x = np.arange(1, lanes + 1).astype(element.dtype)
    for wanted in (True, False):
        held = (np.arange(lanes) >= first) & (np.arange(lanes) < last) & wanted
        out = call(code, [x, np.array([wanted])], np.zeros(2 * lanes, element.dtype))
        np.testing.assert_array_equal(out, np.concatenate([np.where(held, x, 0), np.where(held, 0, x)]))
