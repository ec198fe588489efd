"""What is measured, in what order, for how long, and what is remembered: with a clock and times that a test decides."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from onnxla.codegen.choices import Candidate, Choices, Decision, Site, print_decisions, read_decisions, site_of
from onnxla.codegen.cost import Machine
from onnxla.codegen.cpu.target import Target, named_target
from onnxla.codegen.kernels.schedule import lower
from onnxla.errors import ArtifactError
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Module
from onnxla.hlo.types import F32, TensorType
from onnxla.tuning.memory import TuningMemory
from onnxla.tuning.tuner import AT_ONCE, Tuner

V3 = named_target("x86-64-v3")
MACHINE = Target(V3.triple, V3.cpu, V3.features, l2_bytes=1 << 20)
SIZES = (512, 448, 384, 320, 256, 192)


def products(*sizes: int) -> Module:
    """One product of matrices for each size, the dearest of the largest."""
    b = Builder("main")
    results = []
    for size in sizes:
        x, w = b.parameter(TensorType(F32, (64, size))), b.constant(np.full((size, size), 0.5, np.float32))
        results.append(b.dot(x, w, lhs_contracting=[1], rhs_contracting=[0]))
    return Module("products", b.build(b.tuple(*results)))


class Fake:
    """Measures in `seconds` each, and finds the way of that number fastest; keeps what it was asked."""

    def __init__(self, best: int = 0, seconds: float = 1.0, faster: float = 2.0) -> None:
        self.now, self.best, self.seconds, self.faster = 0.0, best, seconds, faster
        self.asked: list[str] = []

    def clock(self) -> float:
        return self.now

    def __call__(self, sites: Sequence[Site]) -> list[dict[str, float]]:
        self.now += self.seconds * len(sites)
        self.asked += [str(site.instruction.operands[1].tensor_type.shape[0]) for site in sites]
        return [
            {way.name: 1.0 if k == min(self.best, len(s.ways) - 1) else self.faster for k, way in enumerate(s.ways)}
            for s in sites
        ]

    def tuner(self, seconds: float = 1e9, memory: TuningMemory | None = None) -> Tuner:
        return Tuner(MACHINE, seconds, self, memory, self.clock)


def test_the_dearest_kernels_come_first_and_the_fastest_way_wins() -> None:
    fake = Fake(best=1)
    tuned = fake.tuner().tune(products(*reversed(SIZES)))
    assert fake.asked == [str(n) for n in SIZES] and tuned.is_complete and tuned.measured_now == len(SIZES)
    assert all(d.chosen == d.candidates[1].name and d.gain == 2.0 for d in tuned.decisions.values())


def test_no_measurement_begins_when_the_time_is_over() -> None:
    fake = Fake()
    tuned = fake.tuner(seconds=0.5).tune(products(*SIZES))
    assert len(fake.asked) == AT_ONCE and not tuned.is_complete
    assert Fake().tuner(seconds=0.0).tune(products(*SIZES)).measured_now == 0


def test_what_takes_no_time_is_left_to_the_model() -> None:
    fake = Fake()
    assert fake.tuner().tune(products(1024, 2)).is_complete
    assert fake.asked == ["1024"]


def test_a_way_that_is_hardly_faster_does_not_replace_the_models() -> None:
    for faster, replaced in ((1.029, False), (1.031, True)):
        (decision,) = Fake(best=1, faster=faster).tuner().tune(products(512)).decisions.values()
        assert (decision.chosen != decision.candidates[0].name) is replaced


def test_ties_do_not_depend_on_luck() -> None:
    candidates = tuple(Candidate(name, 1.0) for name in "abc")
    decision = Decision("site", "what", candidates, "a").with_times({"a": 2.0, "b": 1.0, "c": 1.0})
    assert decision.chosen == "b"


def test_what_was_measured_is_remembered_for_other_models_too(tmp_path: Path) -> None:
    first, second = Fake(best=1), Fake(best=2)
    first.tuner(memory=TuningMemory(tmp_path, "here")).tune(products(512, 256))
    tuned = second.tuner(memory=TuningMemory(tmp_path, "here")).tune(products(512, 384))
    assert second.asked == ["384"]
    assert {d.chosen == d.candidates[1].name for d in tuned.decisions.values()} == {True, False}
    third = Fake()
    third.tuner(memory=TuningMemory(tmp_path, "elsewhere")).tune(products(512))
    assert third.asked == ["512"]


def test_what_an_interrupted_run_measured_stays(tmp_path: Path) -> None:
    memory = TuningMemory(tmp_path, "here")

    class Interrupted(Fake):
        def __call__(self, sites: Sequence[Site]) -> list[dict[str, float]]:
            if self.asked:
                raise KeyboardInterrupt
            return super().__call__(sites)

    with pytest.raises(KeyboardInterrupt):
        Interrupted().tuner(memory=memory).tune(products(*SIZES))
    again = Fake()
    again.tuner(memory=memory).tune(products(*SIZES))
    assert again.asked == [str(n) for n in SIZES[AT_ONCE:]]


@pytest.mark.parametrize(
    "text", ["", "{", "[1]", '{"6x2": "x"}', '{"6x2": -1}', '{"6x2": NaN}', '{"6x2": Infinity}', '{"other": 1.0}', "1"]
)
def test_a_damaged_memory_counts_as_none(tmp_path: Path, text: str) -> None:
    memory = TuningMemory(tmp_path, "here")
    Fake().tuner(memory=memory).tune(products(512))
    (file,) = memory.folder.iterdir()
    file.write_text(text)
    fake = Fake()
    fake.tuner(memory=memory).tune(products(512))
    assert fake.asked == ["512"]


def test_a_memory_that_others_may_write_is_not_read(tmp_path: Path) -> None:
    memory = TuningMemory(tmp_path, "here")
    Fake().tuner(memory=memory).tune(products(512))
    (file,) = memory.folder.iterdir()
    os.chmod(file, 0o666)
    fake = Fake()
    fake.tuner(memory=memory).tune(products(512))
    assert fake.asked == ["512"]
    os.chmod(memory.folder, 0o777)
    with pytest.raises(ArtifactError, match="open to, another user"):
        TuningMemory(tmp_path, "here")


def test_sites_are_equal_for_equal_operations_in_any_model() -> None:
    def sites(*sizes: int) -> list[str]:
        root = products(*sizes).entry.root
        return [site_of(i) for i in root.operands]

    assert sites(64, 32)[1] == sites(32)[0] and len(set(sites(64, 32))) == 2


def test_decisions_survive_their_text() -> None:
    choices = Choices(Machine.stated(MACHINE))
    for instruction in products(512, 64).entry.root.operands:
        lower(instruction, MACHINE, choices=choices)
    decisions = {s: d.with_times({d.candidates[1].name: 0.1}) for s, d in choices.decisions.items()}
    assert read_decisions(print_decisions(decisions.values())) == decisions
    line = print_decisions(list(decisions.values())[:1])
    for bad in (
        "{}",
        "x",
        line.replace('"chosen": "', '"chosen": "no '),
        line.replace('"measured": 0.1', '"measured": -1'),
    ):
        with pytest.raises(ArtifactError, match="malformed"):
            read_decisions(bad)
