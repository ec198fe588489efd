"""Rounds of loops that counters decide, before and after fusion, and loops that data decide."""

import numpy as np
import pytest

from onnxla.codegen.rounds import MOST_ROUNDS, rounds_of
from onnxla.config import CompileOptions
from onnxla.hlo.module import Instruction, Module
from onnxla.hlo.ops.control_flow import While
from onnxla.hlo.parser import parse_module
from onnxla.passes.pipelines import optimize

LOOP = """
condition {{
  %s = (s32[], f32[4]{{0}}, s32[]) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %n = s32[] get-tuple-element(%s), index=2
  ROOT %more = pred[] compare(%i, %n), direction={direction}
}}

body {{
  %s = (s32[], f32[4]{{0}}, s32[]) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %x = f32[4]{{0}} get-tuple-element(%s), index=1
  %n = s32[] get-tuple-element(%s), index=2
  %step = s32[] constant({step})
  %next = s32[] add(%i, %step)
  %two = f32[] constant(2)
  %twos = f32[4]{{0}} broadcast(%two), dimensions={{}}
  %y = f32[4]{{0}} multiply(%x, %twos)
  ROOT %t = (s32[], f32[4]{{0}}, s32[]) tuple(%next, %y, {limit})
}}

ENTRY main {{
  %x = f32[4]{{0}} parameter(0)
  %given = s32[] parameter(1)
  %zero = s32[] constant({start})
  %n = s32[] constant({n})
  %init = (s32[], f32[4]{{0}}, s32[]) tuple(%zero, %x, {end})
  %loop = (s32[], f32[4]{{0}}, s32[]) while(%init), condition=%condition, body=%body
  ROOT %y = f32[4]{{0}} get-tuple-element(%loop), index=1
}}
"""


def loop_of(module: Module) -> Instruction:
    (loop,) = (i for i in module.entry.instructions() if isinstance(i.op, While))
    return loop


def text(
    start: int = 0, n: int = 7, step: int = 1, direction: str = "LT", end: str = "%n", limit: str = "%n"
) -> Module:
    return parse_module(LOOP.format(start=start, n=n, step=step, direction=direction, end=end, limit=limit))


@pytest.mark.parametrize(
    ("start", "n", "step", "direction", "rounds"),
    [(0, 7, 1, "LT", 7), (0, 7, 2, "LE", 4), (9, 2, -3, "GT", 3), (5, 5, 1, "LT", 0), (0, 6, 3, "NE", 2)],
)
def test_counters(start: int, n: int, step: int, direction: str, rounds: int) -> None:
    module = text(start, n, step, direction)
    assert rounds_of(loop_of(module)) == rounds
    if rounds > 1:
        optimize(module, "gpu", CompileOptions())
        assert rounds_of(loop_of(module)) == rounds


def test_a_limit_that_moves() -> None:
    # 0 < 7, and then 1 < 0
    assert rounds_of(loop_of(text(limit="%i"))) == 1


def test_what_data_decide_is_unknown() -> None:
    assert rounds_of(loop_of(text(end="%given"))) is None


def test_loops_without_end_and_long_ones_are_unknown() -> None:
    assert rounds_of(loop_of(text(step=0))) is None
    assert rounds_of(loop_of(text(n=MOST_ROUNDS))) == MOST_ROUNDS
    assert rounds_of(loop_of(text(n=MOST_ROUNDS + 1))) is None


def test_values_are_those_of_the_loop() -> None:
    module = text(n=5)
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(module.entry.evaluate(x, np.int32(0)), x * 2**5)
    assert rounds_of(loop_of(module)) == 5
