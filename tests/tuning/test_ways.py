"""Every way to compute a kernel gives the same values, and does the work that it states."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest

import onnxla
from onnxla.codegen.choices import Choices, Site, read_decisions
from onnxla.codegen.cost import Machine
from onnxla.codegen.cpu.target import Target, host_target, named_target
from onnxla.codegen.kernels.schedule import lower
from onnxla.codegen.kernels.work import effort_of
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.contraction import ConvolutionDimensions, Window
from onnxla.hlo.types import F32, S8, S32, U8, Array, TensorType
from onnxla.tuning import bench
from tests.codegen.kernel_runner import disagreement, together
from tests.hlo.case import Case, random

V3 = named_target("x86-64-v3")
V4 = named_target("x86-64-v4")
VNNI = replace(V4, features=(*V4.features, "avx512vnni"))


def convolution(name: str, x: Sequence[int], w: Sequence[int], window: Window, groups: int = 1) -> Case:
    kernel = random(F32, tuple(w), name)

    def build(b: Builder, p: Instruction) -> Instruction:
        y = b.convolution(p, b.constant(kernel), window, ConvolutionDimensions.nhwc(2), groups)
        return b.maximum(y, b.full_like(y, 0.0))

    return Case(name, build, (random(F32, tuple(x), name),), 512)


def cases() -> Iterator[Case]:
    same = Window.of([3, 3], [1, 1], [1, 1], [1, 1])
    yield convolution("Winograd", (2, 9, 14, 16), (3, 3, 16, 32), same)
    yield convolution("stride", (1, 13, 27, 16), (3, 3, 16, 20), Window.of([3, 3], [2, 2], [1, 1], [0, 1]))
    yield convolution("pointwise", (1, 7, 7, 48), (1, 1, 48, 72), Window.of([1, 1], [1, 1], [0, 0], [0, 0]))
    yield convolution("depthwise", (1, 9, 23, 20), (5, 5, 1, 20), Window.of([5, 5], [1, 1], [2, 2], [2, 2]), 20)
    for rows, depth, columns in ((97, 31, 103), (1, 33, 300)):
        right = random(F32, (depth, columns), rows)
        yield Case(
            f"dot {rows} {depth} {columns}",
            lambda b, p, k=right: b.dot(p, b.constant(k), lhs_contracting=[1], rhs_contracting=[0]),
            (random(F32, (rows, depth), "left"),),
            256,
        )
    yield Case(
        "batched, both computed",
        lambda b, p, q: b.dot(p, q, [0], [0], [2], [2]),
        (random(F32, (3, 14, 19), "p"), random(F32, (3, 21, 19), "q")),
        256,
    )
    signed = random(S8, (64, 40), "s8")
    yield Case(
        "bytes",
        lambda b, p: b.dot(p, b.constant(signed), lhs_contracting=[1], rhs_contracting=[0], element=S32),
        (random(U8, (33, 64), "u8"),),
        0,
    )


class Forced:
    """In place of the clock: the way of one number is fastest everywhere."""

    def __init__(self, number: int) -> None:
        self.number, self.most = number, 0

    def __call__(self, sites: Sequence[Site], *rest: object) -> list[dict[str, float]]:
        self.most = max([self.most, *(len(s.ways) for s in sites)])
        return [{way.name: abs(k - self.number) + 1.0 for k, way in enumerate(s.ways)} for s in sites]


def test_every_way_computes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    every = list(cases())
    monkeypatch.setattr("onnxla.tuning.tuner.NEGLIGIBLE", 0.0)
    number, most, wrong, taken = 0, 1, [], set[str]()
    while number < most:
        forced = Forced(number)
        monkeypatch.setattr(bench, "measure", forced)
        model = onnxla.compile(together(every), tune=1e9, options={"cache_dir": None, "opt_level": 0})
        taken |= {d.chosen for d in read_decisions(model.hlo("decisions")).values()}
        most = forced.most
        feeds = {g.name: a for g, a in zip(model.get_inputs(), (a for c in every for a in c.arguments), strict=True)}
        results: list[Array] = model.run(None, feeds)
        for case, ours in zip(every, results, strict=True):
            found = disagreement(ours, np.asarray(case.computation().evaluate(*case.arguments)), case.ulps, True)
            wrong += [f"way {number}: {case.name}: {found}"] if found else []
        number += 1
    assert not wrong, "\n".join(wrong)
    assert most >= 5 and {"winograd 4x4", "winograd 2x2"} <= taken


def sites(target: Target) -> Iterator[Site]:
    """The same shapes a little larger, where a kernel's own loops outweigh what is around them; and of bytes."""
    b = Builder("main")
    choices = Choices(Machine.stated(target))
    same = Window.of([3, 3], [1, 1], [1, 1], [1, 1])
    x = b.parameter(TensorType(F32, (1, 28, 28, 64)))
    for w, window, groups in (
        ((3, 3, 64, 64), same, 1),
        ((1, 1, 64, 96), Window.of([1, 1], [1, 1], [0, 0], [0, 0]), 1),
        ((3, 3, 1, 64), same, 64),
    ):
        kernel = b.constant(random(F32, w))
        lower(b.convolution(x, kernel, window, ConvolutionDimensions.nhwc(2), groups), target, choices=choices)
    left, right = b.parameter(TensorType(U8, (840, 256))), b.constant(random(S8, (256, 192)))
    lower(b.dot(left, right, lhs_contracting=[1], rhs_contracting=[0], element=S32), target, choices=choices)
    yield from choices.sites.values()


@pytest.mark.parametrize("target", [V3, V4, VNNI], ids=["avx2", "avx512", "vnni"])
def test_ways_state_the_work_that_their_kernels_do(target: Target) -> None:
    wrong, count = [], 0
    for site in sites(target):
        for way in site.ways:
            counted = sum(effort_of(call.kernel, target) for call in way.lower().calls)
            count += 1
            if not 1 / 1.4 < way.work.effort / counted < 1.4:
                wrong.append(f"{site.instruction}: {way.name} states {way.work.effort:.3g}, does {counted:.3g}")
    assert count > 12 and not wrong, "\n".join(wrong)


def test_effort_is_about_the_operations_of_a_good_kernel() -> None:
    for site in sites(V3):
        call = site.lowering.calls[-1]
        assert 0.95 < effort_of(call.kernel, V3) / call.kernel.flops < 2.2


def test_bytes_are_four_to_an_instruction_where_the_cpu_has_it() -> None:
    *_, site = sites(VNNI)
    call = site.lowering.calls[-1]
    assert 0.25 <= effort_of(call.kernel, VNNI) / call.kernel.flops < 0.4


def test_real_measurements_give_a_time_for_each_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "_SECONDS", 0.0)  # the least number of rounds
    target = host_target()
    choices = Choices(Machine.stated(target))
    b = Builder("main")
    x, y = (b.parameter(TensorType(F32, shape)) for shape in ((2, 33, 40), (2, 48, 40)))
    weights = b.constant(random(F32, (40, 24)))
    lower(b.dot(x, y, [0], [0], [2], [2]), target, choices=choices)  # a temporary, two computed operands
    lower(b.dot(x, weights, lhs_contracting=[2], rhs_contracting=[0]), target, choices=choices)
    for cold in (False, True):
        found = bench.measure(list(choices.sites.values()), target, 2, cold, 1)
        for site, times in zip(choices.sites.values(), found, strict=True):
            assert list(times) == [way.name for way in site.ways] and all(t > 0 for t in times.values())
