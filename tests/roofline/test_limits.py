"""The roofline model, measuring this machine, keeping the result, and the peaks of GPUs."""

import json
from pathlib import Path

import pytest

from onnxla.codegen.gpu.schedule import lower
from onnxla.codegen.gpu.target import GpuTarget
from onnxla.codegen.plan import Plan, walk_steps
from onnxla.codegen.planner import make_plan
from onnxla.codegen.weights import WeightsImage
from onnxla.errors import InputError
from onnxla.hlo.parser import parse_module
from onnxla.roofline import stored
from onnxla.roofline.gpus import GPUS, LAUNCH_SECONDS, floors, gpu_named, total_seconds
from onnxla.roofline.limits import Limits, Memory
from onnxla.roofline.measure import measure_limits
from onnxla.runtime.program import Step

FOUR = Limits(4, 100.0, (Memory("L2", 1_000_000, 200.0), Memory("memory", None, 20.0)), 1e-7, 2e-6)


def step(bytes: int = 0, flops: int = 0, tasks: int = 8, effort: int = 0) -> Step:
    return Step("s", "fusion", "", bytes, flops, 0, "k", tasks, effort)


@pytest.mark.parametrize(
    ("one", "seconds", "bound"),
    [
        (step(flops=10**9), 2e-6 + 1e-2, "compute"),
        (step(flops=10**9, tasks=2), 2e-6 + 2e-2, "compute"),  # two of four threads have work
        (step(flops=10**9, tasks=1), 1e-7 + 4e-2, "compute"),
        (step(flops=10**9, effort=8 * 10**8), 2e-6 + 1e-2, "compute"),  # as the count may be off
        (step(flops=10**9, effort=3 * 10**8), 2e-6 + 2.5e-3, "compute"),  # bytes, four to an instruction
        (step(bytes=1_000_000), 2e-6 + 5e-6, "L2"),
        (step(bytes=2_000_000), 2e-6 + 1e-4, "memory"),
        (step(bytes=2_000_000, flops=10**6), 2e-6 + 1e-4, "memory"),
        (step(bytes=100, tasks=1), 1e-7 + 5e-10, "start"),
        (step(bytes=2_000_000, tasks=0), 1e-7 + 1e-4, "memory"),  # a copy
    ],
)
def test_the_floor_is_start_and_the_larger_of_work_and_traffic(one: Step, seconds: float, bound: str) -> None:
    assert FOUR.seconds(one) == pytest.approx(seconds)
    assert FOUR.bound(one) == bound


def test_limits_go_through_json() -> None:
    assert Limits.from_json(json.loads(json.dumps(FOUR.json()))) == FOUR
    wrongs: list[dict[str, object]] = [
        {"memories": []},
        {"gigaflops": -1},
        {"gigaflops": "many"},
        {"memories": [["L2", 5, 10.0]]},
    ]
    for wrong in wrongs:
        with pytest.raises((KeyError, TypeError, ValueError)):
            Limits.from_json({**FOUR.json(), **wrong})


def test_the_better_of_two_measurements_counts() -> None:
    slow = Limits(4, 90.0, (Memory("L2", 1_000_000, 250.0), Memory("memory", None, 10.0)), 2e-7, 1e-6)
    best = Limits(4, 100.0, (Memory("L2", 1_000_000, 250.0), Memory("memory", None, 20.0)), 1e-7, 1e-6)
    assert FOUR.improved_by(slow) == slow.improved_by(FOUR) == best


def test_this_machine_can_do_something() -> None:
    limits = measure_limits(1)
    assert limits.threads == 1 and [m.name for m in limits.memories] == ["L2", "L3", "memory"]
    assert 0.1 < limits.gigaflops < 1e4
    speeds = [m.gigabytes_per_second for m in limits.memories]
    assert speeds == sorted(speeds, reverse=True) and 0.1 < speeds[-1] and speeds[0] < 1e4
    sizes = [m.bytes for m in limits.memories if m.bytes is not None]
    assert sizes == sorted(sizes) and limits.memories[-1].bytes is None
    assert 0 < limits.start_seconds <= limits.parallel_start_seconds < 0.1


def test_limits_are_measured_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, measured = tmp_path / "new" / "limits.json", []

    def measure(threads: int, target: object) -> Limits:
        measured.append(threads)
        return Limits(threads, 100.0 + len(measured), FOUR.memories, 1e-7, 2e-6)

    monkeypatch.setenv("ONNXLA_LIMITS_FILE", str(file))
    monkeypatch.setattr(stored, "measure_limits", measure)
    first = stored.machine_limits(4)
    assert stored.machine_limits(4) == first and measured == [4]
    assert stored.machine_limits(2).threads == 2 and measured == [4, 2]
    assert stored.machine_limits(4, again=True).gigaflops == 103.0 and measured == [4, 2, 4]
    assert [p.name for p in file.parent.iterdir()] == ["limits.json"]
    for damaged in ("", "[]", "{", json.dumps(dict.fromkeys(json.loads(file.read_text()), {"threads": "x"}))):
        file.write_text(damaged)
        assert stored.machine_limits(4).threads == 4
    assert len(measured) == 7


def test_a_folder_that_cannot_be_written_only_means_measuring_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ONNXLA_LIMITS_FILE", str(tmp_path / "file" / "limits.json"))
    monkeypatch.setattr(stored, "measure_limits", lambda threads, target: FOUR)
    assert stored.machine_limits(4) == FOUR


MODULE = """
HloModule m
ENTRY main {
  %a = ELEMENT[256,512] parameter(0)
  %b = ELEMENT[512,1024] parameter(1)
  %d = f32[256,1024] dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT %t = f32[1024,256] transpose(%d), dimensions={1,0}
}
"""


def gpu_plan(element: str, tf32: bool = False) -> Plan:
    module, target = parse_module(MODULE.replace("ELEMENT", element)), GpuTarget(tf32=tf32)
    return make_plan(module, lambda instruction: lower(instruction, target), WeightsImage())


@pytest.mark.parametrize(
    ("element", "tf32", "unit"), [("f32", False, "fp32"), ("f32", True, "tf32"), ("bf16", False, "fp16")]
)
def test_floors_on_a_gpu_know_the_unit_that_multiplies(element: str, tf32: bool, unit: str) -> None:
    plan, gpu = gpu_plan(element, tf32), gpu_named("a100")
    rows = list(floors(plan, gpu))
    assert len(rows) == len(list(walk_steps(plan.steps)))
    product = max(rows, key=lambda row: row.flops)
    assert product.flops == 2 * 256 * 512 * 1024 and product.unit == unit
    assert product.compute_seconds == pytest.approx(product.flops / (getattr(gpu, unit) * 1e12))
    move = rows[-1]
    assert move.bytes == 2 * 4 * 256 * 1024 and move.unit == "fp32" and not move.flops
    assert move.memory_seconds == pytest.approx(move.bytes / 2039e9)
    assert move.seconds == LAUNCH_SECONDS and move.bound == "launch"
    assert total_seconds(rows) == pytest.approx(sum(row.seconds for row in rows))


def test_gpus_by_name() -> None:
    assert gpu_named("rtx 4090") is gpu_named("RTX4090") is GPUS[-1]
    with pytest.raises(InputError, match="no peaks are known for 'V100'; there are A100, H100"):
        gpu_named("V100")
