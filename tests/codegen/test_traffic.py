"""Bytes that launches move: whole buffers, and of tables and places that are written to, only what is touched."""

import pytest

from onnxla.codegen.cpu.target import named_target
from onnxla.codegen.kernels.schedule import lower
from onnxla.codegen.plan import Launch, walk_steps
from onnxla.codegen.planner import make_plan
from onnxla.codegen.traffic import bytes_moved
from onnxla.codegen.weights import WeightsImage
from onnxla.hlo.parser import parse_module

TABLE, ROWS = 1000 * 64 * 4, 10 * 64 * 4
GATHER = (
    "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,64}, "
    "indices_are_sorted=false"
)
PROGRAMS = {
    "read whole": ("%a = f32[64] parameter(0)\n ROOT %r = f32[64] exponential(%a)", 2 * 64 * 4),
    "gather": (
        f"%t = f32[1000,64] parameter(0)\n %i = s32[10] parameter(1)\n ROOT %r = f32[10,64] gather(%t, %i), {GATHER}",
        2 * ROWS + 40,
    ),
    "update": (
        "%t = f32[1000,64] parameter(0)\n %e = f32[1000,64] exponential(%t)\n %u = f32[1,64] parameter(1)\n "
        "%i = s32[] parameter(2)\n %z = s32[] constant(0)\n "
        "ROOT %r = f32[1000,64] dynamic-update-slice(%e, %u, %i, %z)",
        2 * 256 + 4,
    ),
}
FUSED = f"""
HloModule m
%body {{
  %t = f32[1000,64] parameter(0)
  %i = s32[10] parameter(1)
  %b = f32[1000,64] parameter(2)
  %g = f32[10,64] gather(%t, %i), {GATHER}
  ROOT %n = f32[10,64] negate(%g)
}}
ENTRY main {{
  %t = f32[1000,64] parameter(0)
  %i = s32[10] parameter(1)
  %b = f32[1000,64] parameter(2)
  ROOT %r = f32[10,64] fusion(%t, %i, %b), kind=kLoop, calls=%body
}}
"""


def moved(text: str) -> list[int]:
    target = named_target("x86-64-v3")
    plan = make_plan(parse_module(text), lambda instruction: lower(instruction, target), WeightsImage())
    launches = [step for step in walk_steps(plan.steps) if isinstance(step, Launch)]
    return [bytes_moved(launch, plan.instructions[launch.name]) for launch in launches]


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_touched_counts(name: str) -> None:
    body, expected = PROGRAMS[name]
    assert moved(f"HloModule m\nENTRY main {{\n {body}\n}}\n")[-1] == expected


def test_a_fusion_that_picks_from_a_table_does_not_read_it() -> None:
    assert sum(moved(FUSED.replace(", %b)", ")").replace("  %b = f32[1000,64] parameter(2)\n", ""))) == 2 * ROWS + 40


def test_another_operand_of_the_same_size_that_is_read_counts_whole() -> None:
    added = FUSED.replace("negate(%g)", "add(%g, %s)").replace(
        "  ROOT %n", "  %s = f32[10,64] slice(%b), slice={[0:10], [0:64]}\n  ROOT %n"
    )
    assert sum(moved(added)) >= 2 * TABLE


def test_the_last_step_of_a_reduction_reads_the_partial_sums_alone() -> None:
    text = (
        "HloModule m\n%add {\n %x = f32[] parameter(0)\n %y = f32[] parameter(1)\n ROOT %s = f32[] add(%x, %y)\n}\n"
        "ENTRY main {\n %a = f32[1048576] parameter(0)\n %z = f32[] constant(0)\n"
        " ROOT %r = f32[] reduce(%a, %z), dimensions={0}, to_apply=%add\n}\n"
    )
    first, last = moved(text)
    assert first >= 4 << 20 and last < 1 << 14
