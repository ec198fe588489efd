"""The row schedule: rows in pairs, what is kept between sweeps, extremes, what memory is asked for ahead of time."""

import re
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from onnxla.codegen.cpu.target import Target, named_target
from onnxla.codegen.kernels.cluster import Cluster
from onnxla.codegen.kernels.kept_values import plan_kept
from onnxla.codegen.kernels.rows import Rows
from onnxla.codegen.kernels.schedule import lower
from onnxla.codegen.kernels.text import print_kernel
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.control_flow import Fusion
from onnxla.hlo.types import F16, F32, F64, TensorType
from tests.codegen.kernel_runner import problems
from tests.codegen.test_kernels_schedules import layer_norm, softmax
from tests.hlo.case import Case, random

V3 = named_target("x86-64-v3")
MACHINE = Target(V3.triple, V3.cpu, V3.features, l2_bytes=1 << 20)
Build = Callable[[Builder, Instruction], Instruction]


def asked_for(build: Build, rows: int, columns: int) -> set[str]:
    """The buffers that the kernel of a fusion prefetches."""
    return set(re.findall(r"prefetch (\w+)", row_kernel(build, rows, columns)))


def row_kernel(build: Build, rows: int, columns: int) -> str:
    body = Builder("rows")
    computation = body.build(build(body, body.parameter(TensorType(F32, (rows, columns)))))
    b = Builder("main")
    fusion = b.emit(Fusion("kInput", computation), b.parameter(TensorType(F32, (rows, columns))))
    (call,) = lower(fusion, MACHINE).calls
    return print_kernel(call.kernel)


@pytest.mark.parametrize("build", [softmax, layer_norm])
def test_rows_from_memory_are_asked_for(build: Build) -> None:
    assert asked_for(build, 4096, 1024) == {"in0", "out0"}


def test_pairs_of_rows_are_asked_for_near_and_long_rows_are_not() -> None:
    pair, long = row_kernel(softmax, 4096, 1024), row_kernel(softmax, 4096, 4096)
    assert re.findall(r"prefetch (\w+)\[.*\] near", pair)
    assert re.findall(r"prefetch (\w+)\[", long) and "near" not in long


def test_rows_in_cache_rows_too_long_for_it_and_single_sweeps_are_not() -> None:
    assert asked_for(softmax, 64, 64) == set()
    assert asked_for(softmax, 4, 1 << 20) == set()
    assert asked_for(lambda b, x: b.reduce_by("maximum", x, [1]), 4096, 1024) == set()


def test_results_of_rows_from_memory() -> None:
    x = random(F32, (1030, 259))
    cases = [Case("softmax", softmax, (x,), 64), Case("layer norm", layer_norm, (x,), 64)]
    assert np.prod(x.shape) * 8 > MACHINE.l2_bytes
    assert not problems(cases, "x86-64-v3", normwise=True)


def two_of_both(b: Builder, x: Instruction) -> Instruction:
    """Softmax with what it came from added, and a layer norm; twice. Values are kept over several sweeps."""
    for _ in range(2):
        x = layer_norm(b, b.add(softmax(b, x), x))
    return x


@pytest.mark.parametrize("target", ["host", "x86-64-v3", "x86-64"])
def test_rows_in_pairs_with_one_left_over(target: str) -> None:
    shapes = [(4, 16), (5, 37), (9, 3), (2, 3, 5, 21), (3, 1, 7, 64), (11, 1, 1, 129), (63, 260)]
    x = [random(F32, shape) for shape in shapes]
    cases = [
        Case(f"{build.__name__} {v.shape}", lambda b, x, f=build: over_last(b, x, f), (v,), 64)
        for v in x
        for build in (softmax, two_of_both)
    ]
    assert not problems(cases, target, normwise=True)


def over_last(b: Builder, x: Instruction, build: Build) -> Instruction:
    """`build`, made for matrices, over the last dimension of x."""
    rows = x.tensor_type.size // x.shape[-1]
    return b.reshape(build(b, b.reshape(x, (rows, x.shape[-1]))), x.shape)


def test_values_share_a_place_where_one_is_read_for_the_last_time() -> None:
    body = Builder("rows")
    computation = body.build(two_of_both(body, body.parameter(TensorType(F32, (64, 1024)))))
    b = Builder("main")
    fusion = b.emit(Fusion("kInput", computation), b.parameter(TensorType(F32, (64, 1024))))
    rows = Rows.of(Cluster.of(fusion))
    assert rows is not None
    kept = plan_kept(rows)
    assert [k.instruction.op.opcode for k in kept].count("exponential") == 2
    assert len(kept) > 2 >= len({k.place for k in kept})
    for k, one in enumerate(kept):
        for other in kept[k + 1 :]:
            assert one.place != other.place or one.last <= other.stored


@pytest.mark.parametrize("target", ["host", "x86-64-v3", "x86-64"])
@pytest.mark.parametrize("opcode", ["maximum", "minimum"])
def test_extremes_of_rows_with_nan_and_infinities(opcode: str, target: str) -> None:
    """NaN of either sign and any payload, wherever in the row it stands, is the result; nothing else is."""
    cases = []
    for element, columns in product((F32, F64, F16), (3, 16, 37, 200)):
        x = random(element, (columns + 12, columns))
        bits = {2: np.uint16, 4: np.uint32, 8: np.uint64}[x.itemsize]
        quiet = np.array(np.nan, x.dtype).view(bits)
        for k in range(columns):
            x[k, k] = np.array(quiet | bits(k % 5), bits).view(x.dtype) * (-1 if k % 2 else 1)
        x[columns] = -np.inf
        x[columns + 1] = np.inf
        x[columns + 2, ::2] = -np.inf
        x[columns + 2, 1::2] = np.inf
        x[columns + 3] = -0.0
        x[columns + 4] = np.finfo(x.dtype).max
        x[columns + 5] = -np.finfo(x.dtype).max
        x[columns + 6] = np.finfo(x.dtype).smallest_subnormal
        x[columns + 7], x[columns + 7, -1] = np.inf, np.nan
        cases.append(Case(f"{element} {columns}", lambda b, x: b.reduce_by(opcode, x, [1]), (x,), 0))
    assert not problems(cases, target)
