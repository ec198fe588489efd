"""The budget of constant folding."""

import numpy as np

from onnxla.config import CompileOptions
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Module
from onnxla.passes.constant_folding import FoldConstants


def product_of_constants() -> Module:
    b = Builder()
    x = b.constant(np.ones((300, 300), np.float32))
    return Module("m", b.build(b.matmul(x, x)))


def test_results_within_the_budget_are_folded() -> None:
    module = product_of_constants()
    one = FoldConstants(CompileOptions())
    assert one.run(module)
    assert one.stats == {"folded": 1, "bytes": 300 * 300 * 4}
    assert module.entry.root.op.opcode == "constant"


def test_results_beyond_the_bytes_stay() -> None:
    module = product_of_constants()
    one = FoldConstants(CompileOptions(folding_bytes=1000))
    assert not one.run(module)
    assert one.stats == {"beyond the budget": 1}


def test_results_beyond_the_seconds_stay() -> None:
    module = product_of_constants()
    assert not FoldConstants(CompileOptions(folding_seconds=0.0)).run(module)
    assert module.entry.root.op.opcode == "dot"
