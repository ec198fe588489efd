"""What the runtime finds out about the machine, and code for other machines refused."""

import subprocess
import sys
from pathlib import Path

import pytest

import onnxla
from onnxla.codegen.cpu.target import host_target
from onnxla.errors import ArtifactError
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Module
from onnxla.hlo.types import F32, TensorType
from onnxla.runtime import machine
from onnxla.runtime.machine import cgroup_quota, check_machine, host_features, usable_cpus

ROOT = Path(__file__).parents[2]
LINUX = "x86_64-unknown-linux-gnu" if machine._host()[0] == "x86_64" else "aarch64-unknown-linux-gnu"


def test_code_for_this_machine_may_run() -> None:
    check_machine(LINUX, host_features())


def test_linux_and_llvm_agree_on_the_features_of_this_machine() -> None:
    plain = {machine._plain(name) for name in host_features()}
    vector = {"avx", "avx2", "fma", "f16c", "avx512f", "avx512vnni", "avx512bf16", "sse4.2", "bmi", "lzcnt", "neon"}
    for name in map(machine._plain, vector):
        assert (name in plain) == (name in machine._features_by_linux()), name


def test_code_for_another_architecture_is_refused() -> None:
    with pytest.raises(ArtifactError, match="compiled for riscv64-unknown-linux-gnu, this is .*; compile the model"):
        check_machine("riscv64-unknown-linux-gnu", [])


def test_code_for_another_system_is_refused() -> None:
    with pytest.raises(ArtifactError, match="compiled for x86_64-apple-darwin"):
        check_machine("x86_64-apple-darwin", [])


def test_code_for_a_cpu_with_more_features_is_refused() -> None:
    with pytest.raises(ArtifactError, match="compiled for a CPU with avx9, which this one .* lacks; compile the model"):
        check_machine(LINUX, ["avx9"])


def test_features_that_linux_does_not_tell_are_asked_of_llvm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_features_by_linux", frozenset)
    check_machine(LINUX, host_features())


def test_code_made_for_this_machine_is_known_to_run_without_llvm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "host_features", lambda: pytest.fail("LLVM was asked"))
    check_machine(LINUX, host_target().features)


@pytest.mark.skipif(not LINUX.startswith("x86_64"), reason="these are features of x86-64")
def test_features_that_llvm_spells_with_other_punctuation_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    known = frozenset(map(machine._plain, ("sse4_2", "amx_tile", "avx512_vnni")))
    monkeypatch.setattr(machine, "_features_by_linux", lambda: known)
    monkeypatch.setattr(machine, "host_features", lambda: pytest.fail("LLVM was asked"))
    check_machine(LINUX, ["sse4.2", "amx-tile", "avx512vnni"])


def test_cgroup_quota_is_the_smallest_on_the_way_up(tmp_path: Path) -> None:
    membership = tmp_path / "cgroup"
    membership.write_text("0::/outer/inner\n")
    inner = tmp_path / "fs" / "outer" / "inner"
    inner.mkdir(parents=True)
    (inner / "cpu.max").write_text("400000 100000\n")
    (inner.parent / "cpu.max").write_text("150000 100000\n")
    (tmp_path / "fs" / "cpu.max").write_text("max 100000\n")
    assert cgroup_quota(membership, tmp_path / "fs") == 1.5
    assert cgroup_quota(tmp_path / "absent", tmp_path / "fs") is None


def test_cgroup_version_1_quota(tmp_path: Path) -> None:
    membership = tmp_path / "cgroup"
    membership.write_text("4:cpu,cpuacct:/box\n3:memory:/box\n")
    box = tmp_path / "fs" / "cpu,cpuacct" / "box"
    box.mkdir(parents=True)
    (box / "cpu.cfs_quota_us").write_text("200000\n")
    (box / "cpu.cfs_period_us").write_text("100000\n")
    assert cgroup_quota(membership, tmp_path / "fs") == 2.0
    (box / "cpu.cfs_quota_us").write_text("-1\n")
    assert cgroup_quota(membership, tmp_path / "fs") is None


def test_at_least_one_cpu_is_usable() -> None:
    assert usable_cpus() >= 1


def test_code_for_this_machine_is_accepted_without_llvm(tmp_path: Path) -> None:
    """Loading LLVM would take more time and memory than the rest of it."""
    b = Builder("main")
    model = onnxla.compile(Module("twice", b.build(b.add(x := b.parameter(TensorType(F32, (4,)), "x"), x))))
    model.save(tmp_path / "twice.onnxla")
    program = f"""
import sys
import numpy as np
from onnxla.runtime.loading import load_compiled
model = load_compiled({str(tmp_path / "twice.onnxla")!r})
print(model(np.array([1, 2, 3, 4], np.float32)), "llvmlite" in sys.modules)
"""
    run = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[2. 4. 6. 8.] False"
