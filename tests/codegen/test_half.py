"""f16 on CPUs that have no instruction for it is converted as numpy does, every code and every kind of rounding."""

import numpy as np
import pytest

import onnxla
from onnxla.codegen.cpu.target import named_target
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Module
from onnxla.hlo.types import F16, F32, ElementType, TensorType

LEVELS = ("x86-64", "x86-64-v2")
CODES = np.arange(1 << 16, dtype=np.uint16).view(np.float16)


def converted(x: np.ndarray, source: ElementType, target: ElementType, level: str) -> np.ndarray:
    b = Builder("main")
    root = b.convert(b.parameter(TensorType(source, x.shape)), target)
    model = onnxla.compile(Module("m", b.build(root)), options={"target_cpu": level, "cache_dir": None})
    return np.asarray(model(x))


def same_bits(ours: np.ndarray, exact: np.ndarray) -> None:
    bits = {2: np.uint16, 4: np.uint32}[ours.itemsize]
    quiet = {2: 0x0200, 4: 0x00400000}[ours.itemsize]  # numpy keeps NaNs that signal, CPUs make them quiet
    want = np.where(np.isnan(exact), exact.view(bits) | bits(quiet), exact.view(bits))
    np.testing.assert_array_equal(ours.view(bits), want)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("size", [len(CODES), len(CODES) - 3], ids=["vectors", "tail"])
def test_every_half_is_read_as_it_is(size: int, level: str) -> None:
    x = CODES[-size:]
    same_bits(converted(x, F16, F32, level), x.astype(np.float32))


@pytest.mark.parametrize("level", LEVELS)
def test_rounding_to_half_is_to_nearest_even(level: str) -> None:
    """Each half, the middles between neighbours, and the floats beside those; then any bits at all."""
    finite = np.sort(CODES[np.isfinite(CODES)].astype(np.float32))
    middles = np.append((finite[:-1] + finite[1:]) / 2, np.array([65520, -65520], np.float32))
    beside = [np.nextafter(middles, np.float32(way)) for way in (-np.inf, np.inf)]
    bits = np.random.default_rng(0).integers(0, 1 << 32, 100003, dtype=np.uint32).view(np.float32)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 3e38, -3e38], np.float32)
    x = np.concatenate([finite, middles, *beside, bits, special])
    with np.errstate(over="ignore"):
        exact = x.astype(np.float16)
    ours = converted(x, F32, F16, level)
    number = ~np.isnan(x)
    same_bits(ours[number], exact[number])
    assert np.isnan(ours[~number]).all()


def test_who_converts_half() -> None:
    names = (*LEVELS, "x86-64-v3", "x86-64-v4", "generic-aarch64", "generic-riscv64", "wasm32")
    able = [n for n in names if named_target(n).converts_half]
    assert able == ["x86-64-v3", "x86-64-v4", "generic-aarch64"]
