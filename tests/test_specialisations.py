"""Several sizes in one model: shared weights, warm-up, what is logged, and an end in time when a run compiles."""

import logging
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import onnxla
from onnxla.errors import InputError, ResourceLimitError
from onnxla.runtime.artifact_reading import read_artifact
from onnxla.watch import watching
from tests.cli.command import DIGITS, succeed
from tests.cli.command import onnxla as command

WIDE = np.random.default_rng(0).standard_normal((256, 512)).astype(np.float32)


def a_model(name: str = "x") -> ModelProto:
    nodes = [helper.make_node("Add", [name, "w"], ["a"]), helper.make_node("ReduceSum", ["a", "axes"], ["y"])]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "g",
        [info(name, TensorProto.FLOAT, ["batch", 256, 512])],
        [info("y", TensorProto.FLOAT, ["batch", 1, 512])],
        [numpy_helper.from_array(WIDE, "w"), numpy_helper.from_array(np.array([1]), "axes")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def test_equal_weights_are_in_an_artifact_once(tmp_path: Path) -> None:
    one = onnxla.compile(a_model(), dims={"batch": 1}).save(tmp_path / "one.onnxla")
    three = onnxla.compile(a_model(), dims={"batch": [1, 2, 3]}).save(tmp_path / "three.onnxla")
    assert three - one < WIDE.nbytes // 2
    loaded = onnxla.load_compiled(tmp_path / "three.onnxla")
    for batch in (1, 2, 3):
        x = np.random.default_rng(batch).standard_normal((batch, 256, 512)).astype(np.float32)
        np.testing.assert_allclose(loaded(x), (x + WIDE).sum(1, keepdims=True), rtol=1e-4, atol=1e-3)
    for verify in ("full", "off"):
        programs = read_artifact(tmp_path / "three.onnxla", verify_weights=verify).programs
        assert len({p.weights.tobytes() for p in programs}) <= 3
    os.unlink(tmp_path / "three.onnxla")  # what is mapped stays
    assert loaded(np.zeros((2, 256, 512), np.float32)).shape == (2, 1, 512)


def test_sizes_on_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "d.onnxla"
    made = succeed("compile", DIGITS, "--dim", "batch=1,3,6", "-O", "pad_to_bucket=batch", "-o", path, "--json").json
    assert made["programs"] == 3 and len(made["reports"]) == 3
    model = onnxla.load_compiled(path)
    images = np.random.default_rng(0).random((6, 1, 8, 8), np.float32)
    whole = model(images)
    for rows in range(1, 7):
        for part, all_rows in zip(model(images[:rows]), whole, strict=True):
            np.testing.assert_allclose(part, all_rows[:rows], rtol=1e-5, atol=1e-6)
    assert command("run", path, "--dim", "batch=5").code == 0


def test_a_report_of_every_pass(tmp_path: Path) -> None:
    made = succeed("compile", DIGITS, "--dim", "batch=1", "-o", tmp_path / "d.onnxla", "--json").json
    report = made["report"]
    assert set(report["seconds"]) == set(report["memory_bytes"]) == {"import", "passes", "codegen"}
    assert report["peak_memory_bytes"] > 1 << 20
    names = [p["name"] for p in report["passes"]]
    assert names[0] == "inline-calls" and names[-1] == "fuse-instructions"
    for one in report["passes"]:
        assert set(one) == {"name", "seconds", "memory_bytes", "changed", "instructions"}
        assert one["seconds"] >= 0 and one["memory_bytes"] >= 0 and one["instructions"] > 0
    assert sum(p["seconds"] for p in report["passes"]) <= report["seconds"]["passes"]


def test_progress_moves_with_the_kernels() -> None:
    told: list[tuple[str, float]] = []
    onnxla.compile(DIGITS, dims={"batch": [1, 2]}, progress=lambda name, part: told.append((name, part)))
    parts = [part for _, part in told]
    assert parts == sorted(parts) and parts[0] == 0.0 and parts[-1] == 1.0
    assert len({round(part, 3) for name, part in told if name.startswith("kernels")}) > 20


def test_a_log_line_for_each_compile_of_a_run(caplog: pytest.LogCaptureFixture) -> None:
    model = onnxla.compile(a_model("x\x1b[31m"), options={"opt_level": 0})
    with caplog.at_level(logging.INFO, "onnxla"):
        for batch in (1, 2, 1):
            model(np.zeros((batch, 256, 512), np.float32))
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 2
    assert lines[0].startswith(r"compiled for x\x1b[31m [1, 256, 512] in ") and lines[0].endswith(" seconds")


def test_a_warning_when_code_is_dropped(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONNXLA_SPECIALISATIONS", "1")
    model = onnxla.compile(a_model(), options={"opt_level": 0})
    with caplog.at_level(logging.WARNING, "onnxla"):
        for batch in (1, 2, 1):
            model(np.zeros((batch, 256, 512), np.float32))
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("the code for x [1, 256, 512] is dropped: a model keeps that of 1 sets of shapes")


def test_warming_up_compiles_before_the_first_run(monkeypatch: pytest.MonkeyPatch) -> None:
    model = onnxla.compile(a_model(), options={"opt_level": 0})
    with pytest.raises(InputError, match="give shapes or dims to compile for"):
        model.warm_up()
    assert model.warm_up(dims={"batch": [1, 2]}) == 2
    assert model.warm_up(shapes={"x": (3, 256, 512)}) == 1
    assert sorted(p.inputs[0].shape[0] for p in model.programs) == [1, 2, 3]
    monkeypatch.setattr(model._specialisations, "_specialise", None)
    for batch in (1, 2, 3):
        model(np.zeros((batch, 256, 512), np.float32))
    assert model.warm_up() == 3
    for wrong, message in (
        ({"shapes": {"z": (1,)}}, "not inputs of the model: z"),
        ({"shapes": {"x": (3, 7, 512)}}, r"x: shape \[3, 7, 512\]"),
        ({"dims": {"other": 3}}, "a size is missing"),
    ):
        with pytest.raises(InputError, match=message):
            model.warm_up(**wrong)


def test_values_that_decide_are_asked_for_when_warming_up() -> None:
    node = helper.make_node("TopK", ["x", "k"], ["v", "i"])
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [node],
        "g",
        [info("x", TensorProto.FLOAT, [8]), info("k", TensorProto.INT64, [1])],
        [info("v", TensorProto.FLOAT, None), info("i", TensorProto.INT64, None)],
    )
    model = onnxla.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9))
    with pytest.raises(InputError, match="the code depends on the value of k; give it in feeds"):
        model.warm_up()
    assert model.warm_up({"k": [3]}) == 1


def test_a_run_that_compiles_for_too_long_ends_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen[bytes]] = []
    start = subprocess.Popen

    def recorded(*arguments: Any, **options: Any) -> "subprocess.Popen[bytes]":
        started.append(start(*arguments, **options))
        return started[-1]

    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr(subprocess, "Popen", recorded)
    model = onnxla.compile(DIGITS)
    monkeypatch.setattr("onnxla.compile_call.watching", lambda progress, seconds: watching(progress, 1e-3))
    images = np.zeros((2, 1, 8, 8), np.float32)
    with pytest.raises(ResourceLimitError, match="compiling takes longer than compile_timeout=0.001 seconds"):
        model(images)
    assert model.programs == () and not list(tmp_path.iterdir())
    assert all(p.returncode is not None for p in started)
    with pytest.raises(InputError, match="compile_timeout=0: choose a number of seconds above 0"):
        onnxla.compile(DIGITS, options={"compile_timeout": 0})
