"""The pipeline keeps what random programs compute, infinities and NaN included."""

import numpy as np
import pytest

from onnxla.config import CompileOptions
from onnxla.hlo.fingerprint import fingerprint
from onnxla.hlo.printer import print_module
from onnxla.hlo.types import Array
from onnxla.passes.pipelines import pipeline_for
from tests.passes.random_programs import ProgramMaker, arguments_for

PROGRAMS_A_TEST = 20


def assert_close(found: Array, expected: Array, about: str) -> None:
    """Equal but for rounding; where both are not finite, they are the same."""
    assert found.shape == expected.shape and found.dtype == expected.dtype, about
    with np.errstate(all="ignore"):
        assert np.array_equal(np.isnan(found), np.isnan(expected)), about
        known = np.abs(expected) > 1e6
        scale = np.maximum(np.abs(expected), 1.0)
        same = (np.abs(found - expected) <= 1e-3 * scale) | (found == expected) | np.isnan(expected) | known
    assert same.all(), about


@pytest.mark.parametrize("block", range(15))
def test_the_pipeline_keeps_values(block: int) -> None:
    for seed in range(block * PROGRAMS_A_TEST, (block + 1) * PROGRAMS_A_TEST):
        module = ProgramMaker(seed).module(operations=5 + seed % 25)
        arguments = arguments_for(module, seed)
        before = print_module(module)
        with np.errstate(all="ignore"):
            expected = module.entry.evaluate(*arguments)
            pipeline_for("cpu", CompileOptions()).run(module)
            found = module.entry.evaluate(*arguments)
        for k, (one, other) in enumerate(zip(found, expected, strict=True)):
            about = f"seed {seed}, result {k}\n{before}\nbecame\n{print_module(module)}\n{one}\n!=\n{other}"
            assert_close(np.asarray(one), np.asarray(other), about)


@pytest.mark.parametrize("block", range(5))
def test_each_pass_says_whether_it_changed_the_module(block: int) -> None:
    for seed in range(1000 + block * 10, 1010 + block * 10):
        module = ProgramMaker(seed).module(operations=20)
        for one in pipeline_for("cpu", CompileOptions()).passes:
            before = fingerprint(module)
            changed = one.run(module)
            assert changed == (fingerprint(module) != before), f"seed {seed}: {one.name} says changed={changed}"
