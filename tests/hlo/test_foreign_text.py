"""What XLA and JAX print is read: other spellings, layouts, hints on how to run, operations of theirs alone."""

from typing import Any

import numpy as np
import pytest

from onnxla.errors import SourceNode
from onnxla.hlo.fingerprint import structurally_equal
from onnxla.hlo.parser import parse_module
from onnxla.hlo.printer import print_module
from onnxla.hlo.verifier import verify
from tests.hlo.programs import FOREIGN_PROGRAMS
from tests.hlo.texts import entry, error_of


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
