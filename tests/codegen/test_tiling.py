"""How contractions are cut: who reads which operand, how often, and what is asked for ahead of time."""

import math

import numpy as np
import pytest

from onnxla.codegen.cpu.target import Target, named_target
from onnxla.codegen.kernels.ir import For, Kernel, walk
from onnxla.codegen.kernels.schedule import lower
from onnxla.codegen.kernels.text import print_kernel
from onnxla.codegen.kernels.tiling import Shapes, Sharing, choose_tiling, share_out
from onnxla.codegen.kernels.tilings import Cut, tile_ways
from onnxla.codegen.lowering import Lowering
from onnxla.hlo.builder import Builder
from onnxla.hlo.types import F32, TensorType

V3 = named_target("x86-64-v3")
MACHINE = Target(V3.triple, V3.cpu, V3.features, l2_bytes=1 << 20)


def sharing(rows: int, columns: int, depth: int, batches: int = 1) -> Sharing:
    tiling = choose_tiling((rows,), columns, True, F32, MACHINE)
    return share_out(Shapes(batches, (rows,), columns, (depth,), rows * depth * 4), tiling)


def test_rows_that_stay_in_cache_let_each_weight_be_read_once() -> None:
    plan = sharing(64, 4096, 512)
    assert plan.tile_shares == 1
    assert plan.panel_shares > 8
    assert plan.block == plan.tiles


def test_rows_beyond_the_cache_come_in_blocks_that_fit() -> None:
    plan = sharing(512, 1024, 1024)
    rows = plan.block * math.ceil(512 / plan.tiles)
    assert 1 < plan.block < plan.tiles
    assert rows * 1024 * 4 <= MACHINE.l2_bytes // 4
    assert plan.tile_shares * plan.block >= plan.tiles


def test_small_weights_stay_while_tasks_share_out_rows() -> None:
    plan = sharing(20_000, 32, 64)
    assert plan.tile_shares > 8
    assert plan.panel_shares <= 2


@pytest.mark.parametrize(
    ("rows", "columns", "depth"), [(1, 1, 1), (1, 5000, 3), (7, 33, 5000), (3000, 1, 1), (97, 101, 103)]
)
@pytest.mark.parametrize("batches", [1, 3, 40])
def test_tiles_and_panels_cover_the_result(rows: int, columns: int, depth: int, batches: int) -> None:
    tiling = choose_tiling((rows,), columns, True, F32, MACHINE)
    plan = sharing(rows, columns, depth, batches)
    assert plan.tall * tiling.rows + (plan.line_tiles - plan.tall) * (tiling.rows - 1) == rows
    assert plan.panels * tiling.width + plan.tail_columns == columns
    assert plan.tasks == batches * plan.panel_shares * plan.tile_shares
    assert plan.tile_shares <= plan.tiles
    assert plan.panel_shares <= plan.panels + (plan.tail_columns > 0)
    assert 1 <= plan.block <= plan.tiles


def kernel_of_product(rows: int, depth: int, columns: int, target: Target = MACHINE) -> Kernel:
    b = Builder()
    weights = b.constant(np.ones((depth, columns), np.float32))
    product = b.matmul(b.parameter(TensorType(F32, (rows, depth))), weights)
    return lower(product, target).calls[-1].kernel


def test_the_next_panel_of_large_weights_is_asked_for() -> None:
    assert "prefetch packed" in print_kernel(kernel_of_product(64, 512, 512))


def test_small_weights_and_single_rows_need_no_asking() -> None:
    assert "prefetch" not in print_kernel(kernel_of_product(64, 64, 64))
    assert "prefetch" not in print_kernel(kernel_of_product(1, 512, 512))


@pytest.mark.parametrize("level", ["x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("rows", [1, 2, 4, 14])
def test_a_round_goes_on_in_its_panel_no_further_than_a_cpu_foresees(rows: int, level: str) -> None:
    kernel = kernel_of_product(rows, 512, 1024, named_target(level))
    rounds = []
    for loop in walk(kernel.body):
        if isinstance(loop, For) and not any(isinstance(op, For) for op in loop.body.ops):
            loads = [op for op in loop.body.ops if op.opcode == "load" and op.attributes[0].name == "packed"]
            rounds.append(sum(op.lanes * 4 for op in loads))
    assert 0 < max(rounds) <= 512


def test_blocks_are_larger_where_weights_would_be_read_again_for_each() -> None:
    small_cache = Target(V3.triple, V3.cpu, V3.features, l2_bytes=512 << 10)

    def first_way(rows: int, depth: int, columns: int) -> str:
        shapes = Shapes(1, (rows,), columns, (depth,), rows * depth * 4)
        cut = Cut(shapes, F32, True, 1, depth * columns * 4, True)
        return tile_ways(cut, small_cache, lambda tiling: Lowering(()))[0].name

    assert first_way(128, 3072, 768) == "6x2 in blocks of 256 KB"
    assert first_way(784, 128, 64) == "6x2"
