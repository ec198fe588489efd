"""`--precision`, `--keep-f32`, `--arch`, `--target cpu,gpu` and `--device` on the command line."""

from pathlib import Path

import numpy as np
import onnx
import pytest

import onnxla
from onnxla.errors import DeviceError
from onnxla.runtime import cuda_driver
from tests.cli.command import onnxla as command
from tests.cli.command import succeed
from tests.debugging.test_ranges import MODEL
from tests.gpu.pretended_driver import PretendedDriver
from tests.gpu.test_models import feeds_of


@pytest.fixture
def model(tmp_path: Path) -> Path:
    onnx.save(MODEL, tmp_path / "growing.onnx")
    return tmp_path / "growing.onnx"


def test_validation_names_what_to_keep_in_f32_and_then_agrees(model: Path) -> None:
    ended = command("validate", model, "--precision", "fp16")
    assert ended.code == 1 and "OVERFLOWS" in ended.out and "imitated on the CPU" in ended.out
    assert "--keep-f32 second" in ended.out
    kept = [text for name in ("first", "second") for text in ("--keep-f32", name)]
    ended = succeed("validate", model, "--precision", "fp16", *kept)
    assert "nothing overflows" in ended.out and "every output agrees" in ended.out
    found = succeed("validate", model, "--precision", "fp16", *kept, "--json").json
    assert found["agrees"] and found["ranges"]["keep_f32"] == [] and found["ranges"]["largest"] == 65504
    assert [row["node"] for row in found["ranges"]["products"]] == ["third"]
    ended = command("validate", model, "--precision", "fp16", "--keep-f32", "scale")
    assert ended.code == 2 and "there are first, second, third" in ended.err
    ended = command("validate", model, "--precision", "fp16", "--exact")
    assert ended.code == 2 and "--exact" in ended.err


def test_one_file_for_both_kinds_of_machine(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "both.onnxla"
    succeed(
        *("compile", model, "-o", path, "--target", "cpu,gpu", "--arch", "sm_90,sm_80"),
        *("--precision", "bf16", "--keep-f32", "first"),
    )
    feeds = feeds_of(MODEL)
    on_cpu = onnxla.load_compiled(path, device="cpu")
    assert on_cpu.device == "cpu" and on_cpu.about["options"]["keep_f32"] == ["first"]
    assert len(on_cpu.about["targets"]) == 2 and on_cpu.about["targets"][1] == "sm_80,sm_90"
    (expected,) = onnxla.compile(MODEL).run(None, feeds)
    np.testing.assert_array_equal(on_cpu.run(None, feeds)[0], expected)  # the precision is that of the GPU's code

    def no_bindings() -> None:
        raise DeviceError("the CUDA bindings are missing")

    monkeypatch.setattr(cuda_driver, "_bindings", no_bindings)
    assert onnxla.load_compiled(path).device == "cpu"
    with pytest.raises(DeviceError, match="bindings are missing"):
        onnxla.load_compiled(path, device="cuda").run(None, feeds)
    driver = PretendedDriver(gpus=2)
    monkeypatch.setattr(cuda_driver, "_bindings", lambda: driver)
    on_gpu = onnxla.load_compiled(path)
    assert on_gpu.device == "cuda:0" and onnxla.load_compiled(path, device="cuda:1").device == "cuda:1"
    np.testing.assert_allclose(on_gpu.run(None, feeds)[0], expected, 5e-2, 5e-2)
    driver.capability = (7, 5)
    assert onnxla.load_compiled(path).device == "cpu"
    on_gpu.save(tmp_path / "again.onnxla")
    assert (tmp_path / "again.onnxla").read_bytes() == path.read_bytes()
    ended = succeed("run", path, "--device", "cpu")
    assert "y float32[20,24]" in ended.out
    assert "first" in succeed("inspect", path, "--target", "gpu").out


def test_options_that_do_not_go_together(model: Path, tmp_path: Path) -> None:
    ended = command("compile", model, "--arch", "sm_90")
    assert ended.code == 2 and "--arch sm_90 goes with --target gpu" in ended.err
    ended = command("compile", model, "--target", "cpu,tpu")
    assert ended.code == 6 and "no target 'tpu'" in ended.err
    ended = command("compile", model, "--target", "gpu", "--precision", "fp8")
    assert ended.code == 2 and "choose one of" in ended.err
    ended = command("compile", model, "--target", "gpu", "--arch", "sm_80", "-O", "target_gpu=sm_90")
    assert ended.code == 2 and "given by an option of its own as well" in ended.err
    path = tmp_path / "cpu.onnxla"
    succeed("compile", model, "-o", path)
    ended = command("run", path, "--target", "gpu")
    assert ended.code == 2 and "is compiled already: device='cuda': the model has no code for a GPU" in ended.err
    ended = command("run", model, "--device", "cuda:1")
    assert ended.code == 6 and "device='cuda:1' does not go with target='cpu'" in ended.err
