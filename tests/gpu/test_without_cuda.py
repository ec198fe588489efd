"""Without the `cuda` extra: nothing of it is imported, CPUs run as ever, and what needs it says what to install."""

import subprocess
import sys
from pathlib import Path

import onnx
import pytest

import onnxla
from onnxla.cli.doctor_command import facts
from onnxla.runtime import cuda_driver
from tests.gpu.pretended_driver import PretendedDriver
from tests.gpu.test_models import mlp

PROGRAM = """
import sys
sys.modules["cuda"] = None  # as if it were not installed
import numpy as np
import onnxla
from onnxla.errors import DeviceError

def refused(work):
    try:
        work()
    except DeviceError as error:
        return str(error)

feeds = {"x": np.zeros((5, 20), "f4")}
both = onnxla.load_compiled("both.onnxla")
assert both.device == "cpu" and both.run(None, feeds)[0].shape == (5, 7)
assert onnxla.load_compiled("cpu.onnxla").run(None, feeds)[0].shape == (5, 7)
assert not [name for name in sys.modules if name.startswith(("cuda.", "nvidia", "onnxla.runtime.cuda_device"))]
for path in ("gpu.onnxla", "both.onnxla"):
    text = refused(lambda: onnxla.load_compiled(path, device="cuda").run(None, feeds))
    assert "CUDA bindings are missing" in text and "pip install onnxla[cuda]" in text, text
text = refused(lambda: onnxla.compile("model.onnx", target="gpu"))
assert "NVRTC is missing" in text and "pip install onnxla[cuda]" in text, text
assert onnxla.compile("model.onnx").run(None, feeds)[0].shape == (5, 7)
from onnxla.cli.doctor_command import facts
found = facts()
assert "pip install onnxla[cuda]" in found["gpu"]["missing"] and "NVRTC is missing" in found["nvrtc"]["missing"]
"""


def test_nothing_of_it_is_imported_and_what_needs_it_says_what_to_install(tmp_path: Path) -> None:
    onnx.save(mlp(), tmp_path / "model.onnx")
    for name, target in (("cpu", "cpu"), ("gpu", "gpu"), ("both", "cpu,gpu")):
        onnxla.compile(tmp_path / "model.onnx", target=target).save(tmp_path / f"{name}.onnxla")
    root = Path(__file__).parents[2]
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, env={"PYTHONPATH": str(root)}, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr


def test_doctor_shows_driver_devices_and_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = PretendedDriver(gpus=2, capability=(8, 9), version=12040)
    monkeypatch.setattr(cuda_driver, "_bindings", lambda: driver)
    found = facts()
    assert found["gpu"]["devices"] == [f"cuda:{k} Pretended {k} (sm_89, 8192 MiB)" for k in (0, 1)]
    assert found["gpu"]["driver"].startswith("CUDA 12.4: older than the PTX of compiled models")
    assert "sm_90" in found["nvrtc"]["compiles for"]
    driver.fail["cuInit"] = driver.CUresult.CUDA_ERROR_NO_DEVICE
    assert "finds no usable GPU (CUDA_ERROR_NO_DEVICE)" in facts()["gpu"]["missing"]
