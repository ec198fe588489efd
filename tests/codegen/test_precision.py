"""`precision="highest"` keeps to direct convolution where Winograd would be faster."""

import numpy as np

import onnxla
from onnxla.hlo.parser import parse_module
from onnxla.hlo.types import Array, TensorType

# Many channels on a small image: Winograd pays on every CPU.
PROGRAM = """HloModule m
ENTRY main {
  %x = f32[1,28,28,64] parameter(0)
  %w = f32[3,3,64,64] constant({...})
  ROOT %y = f32[1,28,28,64] convolution(%x, %w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
}
"""


def weights(name: str, type: TensorType) -> Array:
    return np.random.default_rng(0).normal(size=type.shape).astype(np.float32)


def compiled(precision: str) -> onnxla.CompiledModel:
    options = {"precision": precision, "target_cpu": "x86-64-v3"}
    return onnxla.compile(parse_module(PROGRAM, weights=weights), options=options)


def test_highest_precision_forbids_winograd() -> None:
    default, highest = compiled("default"), compiled("highest")
    assert "winograd" in default.hlo("plan")
    assert "winograd" not in highest.hlo("plan")


def test_highest_precision_errs_less() -> None:
    module = parse_module(PROGRAM, weights=weights)
    x = np.random.default_rng(1).normal(size=(1, 28, 28, 64)).astype(np.float32)
    exact = np.asarray(module.entry.evaluate(x), np.float64)
    errors = {p: float(np.abs(compiled(p)(x) - exact).max()) for p in ("default", "highest")}
    assert errors["highest"] < errors["default"] < 1e-2
