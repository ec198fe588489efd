"""The model in float64: what results are judged by when they differ."""

import numpy as np

from onnxla.debugging.exact import exactness, widened
from onnxla.hlo.parser import parse_module

PROGRAM = """HloModule m
%add { %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b) }
ENTRY main {
  %x = f16[3] parameter(0)
  %wide = f32[3] convert(%x)
  %tenth = f32[] constant(0.1)
  %tenths = f32[3] broadcast(%tenth), dimensions={}
  %scaled = f32[3] multiply(%wide, %tenths)
  %zero = f32[] constant(0)
  %total = f32[] reduce(%scaled, %zero), dimensions={0}, to_apply=%add
  %count = s32[] constant(3)
  ROOT %out = (f32[], s32[]) tuple(%total, %count)
}
"""


def test_a_widened_module_computes_in_float64_with_the_same_constants() -> None:
    wide = widened(parse_module(PROGRAM))
    total, count = wide.entry.evaluate(np.array([1, 2, 4], np.float64))
    assert np.asarray(total).dtype == np.float64 and np.asarray(count).dtype == np.int32
    assert total == 7 * np.float64(np.float32(0.1))


def test_a_result_may_err_twice_as_much_or_hardly() -> None:
    exact = np.array([1.0, np.inf, 1.0])

    def judged(ours: float, theirs: float) -> bool:
        a, b = (np.array([1 + e, np.inf, 1.0]) for e in (ours, theirs))
        return exactness("y", a, b, exact).agrees

    assert judged(1.9e-3, 1e-3)
    assert not judged(3e-3, 1e-3)
    assert judged(1e-6, 0)
    assert not judged(1e-3, 0)
