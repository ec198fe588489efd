"""`scripts/gpu_check.sh`: what it says without a GPU, and its whole course on a pretended one."""

import subprocess
import sys
from pathlib import Path

import pytest

from onnxla.errors import DeviceError
from onnxla.runtime import cuda_driver
from tests.gpu import check, speed

SCRIPT = Path(__file__).parents[2] / "scripts" / "gpu_check.sh"


@pytest.fixture(autouse=True)
def bindings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put back what `--pretended` changes."""
    monkeypatch.setattr(cuda_driver, "_bindings", cuda_driver._bindings)
    monkeypatch.setenv("ONNXLA_TARGET_GPU", "sm_80")


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """One test of each of the first stages, and two rows of the table."""
    words = ("exact and fp16 and 0-1", "row", "runs_on_a_device and looped")
    stages = [
        (name, [*places[:1], "-k", f"cuda and {some}"])
        for (name, places), some in zip(check.STAGES[:3], words, strict=True)
    ]
    monkeypatch.setattr(check, "STAGES", stages)
    rows = [case for case in speed.cases(speed.SMALL.size) if "fp16" in case.name or "softmax" in case.name]
    monkeypatch.setattr(speed, "cases", lambda size: rows[:2])


def test_without_a_gpu_the_script_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise DeviceError("no NVIDIA driver")

    monkeypatch.setattr(check, "CudaDevice", missing)
    assert check.main([]) == check.NO_GPU
    assert check.main(["--fast"]) == 2
    ended = subprocess.run([SCRIPT, "--fast"], env={"PYTHON": sys.executable}, capture_output=True, text=True)
    assert ended.returncode == 2 and "no option --fast" in ended.stdout, ended.stderr


def test_the_whole_course_on_a_pretended_gpu(few: None, capfd: pytest.CaptureFixture[str]) -> None:
    assert check.main(["--pretended"]) == 0
    out = capfd.readouterr().out
    assert "GPU: cuda:0 Pretended 0 (sm_129" in out and "compiles for" in out
    assert all(f"== {name}: right, after" in out for name, _ in check.STAGES)
    product, softmax = out.splitlines()[-2:]
    assert "product 32^3 fp16" in product and " us " in product and "softmax 32x32" in softmax
    errors = [float(line.split()[-1]) for line in (product, softmax)]
    assert 0 < errors[0] < 1e-2 and errors[1] < 1e-5


def test_wrong_fragments_end_it(few: None, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(check, "_in_this_process", lambda places: 1)
    assert check.main(["--pretended"]) == 1
    out = capfd.readouterr().out
    assert "fragment layouts: WRONG" in out and "== times" not in out


def test_cases_without_time_are_named() -> None:
    assert speed.table(speed.SMALL, -1.0).count("no time left") == len(speed.cases(32))
