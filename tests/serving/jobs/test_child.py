"""Compiles in processes of their own: what they give, and that nothing they do reaches the one that started them."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import onnxla
from onnxla.config import ChildLimits
from onnxla.errors import InputError, InternalError, OnnxlaError, ResourceLimitError, UnsupportedOpError
from onnxla.serving.jobs.compile_in_child import compile_in_child, run_in_child
from onnxla.serving.jobs.processes import family, usage
from tests.serving.jobs import models

ROOT = Path(__file__).parents[3]


def children() -> list[int]:
    """The processes that this one has started, and those they have."""
    return family(os.getpid())[1:]


def nothing_is_left(folder: Path) -> bool:
    return not children() and not list(folder.glob(".compile-*"))


def test_the_artifact_is_that_of_a_compile_here(tmp_path: Path) -> None:
    model = models.small(tmp_path / "model.onnx")
    told: list[tuple[str, float]] = []
    output = tmp_path / "out" / "model.onnxla"
    limits = ChildLimits(cpu_seconds=1000)
    given = asyncio.run(compile_in_child(model, {}, limits, lambda *what: told.append(what), output=output))
    assert given == output
    onnxla.compile(model).save(tmp_path / "here.onnxla")
    assert output.read_bytes() == (tmp_path / "here.onnxla").read_bytes()
    (y,) = onnxla.load_compiled(output).run(None, {"x": np.ones((1, 8), np.float32)})
    assert np.array_equal(y, np.full((1, 8), 8, np.float32))
    assert told and told[0][0] == "import" and all(0 <= part <= 1 for _, part in told)
    assert nothing_is_left(output.parent)


def test_options_reach_the_compiler(tmp_path: Path) -> None:
    model = models.small(tmp_path / "model.onnx", rows="batch")
    options = {"dims": {"batch": [1, 4]}, "options": {"target_cpu": "x86-64-v3"}}
    outcome = asyncio.run(run_in_child(model, options, output=tmp_path / "a.onnxla"))
    assert outcome.error is None
    assert outcome.document["programs"] == 2
    assert [str(t) for t in outcome.inputs] == ["x tensor(float)[batch,8]"]
    assert len(outcome.reports) == 2 and outcome.reports[0].nodes == 2
    assert "every node can be imported" in outcome.text
    assert {p.cpu for p in onnxla.load_compiled(tmp_path / "a.onnxla").programs} == {"x86-64-v3"}


def test_every_problem_of_a_model_is_raised_as_here(tmp_path: Path) -> None:
    model = models.unsupported(tmp_path / "model.onnx")
    with pytest.raises(UnsupportedOpError) as here:
        onnxla.compile(model)
    with pytest.raises(UnsupportedOpError) as there:
        asyncio.run(compile_in_child(model, {}, output=tmp_path / "a.onnxla"))
    assert str(there.value) == str(here.value) and there.value.problems == here.value.problems
    assert len(there.value.problems) == 2
    assert not (tmp_path / "a.onnxla").exists() and nothing_is_left(tmp_path)


def test_open_dimensions_are_a_problem_since_there_is_no_code(tmp_path: Path) -> None:
    model = models.small(tmp_path / "model.onnx", rows="batch")
    with pytest.raises(onnxla.UnboundDimensionsError, match="batch"):
        asyncio.run(compile_in_child(model, {}, output=tmp_path / "a.onnxla"))


def test_what_is_no_model_is_an_error_of_its_kind(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"\xff" * 100)
    with pytest.raises(onnxla.ModelFormatError):
        asyncio.run(compile_in_child(tmp_path / "model.onnx", {}, output=tmp_path / "a.onnxla"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"options": {"dump_to": "/tmp/x"}}, "dump_to is the server's to choose"),
        ({"options": {"quick": True}}, "no option quick"),
        ({"options": {"opt_level": 9}}, "opt_level=9"),
        ({"dims": {"batch": []}}, "no sizes given"),
        ({"shapes": {"x": "8"}}, "whole numbers are needed"),
        ({"num_threads": 0}, "at least 1"),
        ({"inputs": "x"}, "a list of names"),
        ({"target": None}, "a text is needed"),
    ],
)
def test_options_that_are_none_are_refused_before_a_process_starts(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        asyncio.run(compile_in_child(Path("nothing.onnx"), options, output=Path("nothing.onnxla")))


def test_a_model_of_100_gb_is_beyond_the_memory(tmp_path: Path) -> None:
    model = models.with_external_data(tmp_path / "model.onnx", 100 << 30)
    with pytest.raises(OnnxlaError, match="memory|elements"):
        asyncio.run(compile_in_child(model, {}, ChildLimits(memory_bytes=1 << 30), output=tmp_path / "a.onnxla"))
    assert nothing_is_left(tmp_path)


def test_a_compile_beyond_its_memory_says_so(tmp_path: Path) -> None:
    model = models.with_external_data(tmp_path / "model.onnx", 400 << 20)
    with pytest.raises(
        ResourceLimitError, match=r"memory_bytes=\d+ of memory .*weights.bin.*; a larger limit allows more"
    ):
        asyncio.run(compile_in_child(model, {}, ChildLimits(memory_bytes=300 << 20), output=tmp_path / "a.onnxla"))
    assert nothing_is_left(tmp_path)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (ChildLimits(wall_seconds=0.2), "longer than wall_seconds=0.2"),
        (ChildLimits(cpu_seconds=0.2), "more CPU time than cpu_seconds=0.2"),
        (ChildLimits(file_bytes=1000), "a file larger than file_bytes=1000"),
    ],
)
def test_a_compile_beyond_a_limit_is_ended(tmp_path: Path, limits: ChildLimits, message: str) -> None:
    model = models.slow(tmp_path / "model.onnx", 120 if limits.file_bytes > 1000 else 1)
    with pytest.raises(ResourceLimitError, match=message):
        asyncio.run(compile_in_child(model, {}, limits, output=tmp_path / "a.onnxla"))
    assert nothing_is_left(tmp_path)


@pytest.mark.parametrize(
    ("number", "kind", "message"),
    [
        (signal.SIGSEGV, InternalError, r"crashed \(signal SIGSEGV\)"),
        (signal.SIGKILL, ResourceLimitError, "killed by the system, which does so when its memory runs out"),
    ],
)
def test_a_crash_is_a_failure_of_that_compile_alone(
    tmp_path: Path, number: signal.Signals, kind: type[Exception], message: str
) -> None:
    model = models.slow(tmp_path / "model.onnx")

    def crash(stage: str, part: float) -> None:
        for pid in children():
            os.kill(pid, number)

    async def both() -> None:
        with pytest.raises(kind, match=message):
            await compile_in_child(model, {}, None, crash, output=tmp_path / "a.onnxla")
        if number is signal.SIGSEGV:
            await compile_in_child(models.small(tmp_path / "small.onnx"), {}, output=tmp_path / "b.onnxla")

    asyncio.run(both())
    assert nothing_is_left(tmp_path) and not (tmp_path / "a.onnxla").exists()


def test_cancelling_ends_the_process_and_all_that_it_started(tmp_path: Path) -> None:
    model = models.slow(tmp_path / "model.onnx")

    async def cancelled() -> list[int]:
        started = asyncio.Event()
        task = asyncio.create_task(
            compile_in_child(model, {}, None, lambda *what: started.set(), output=tmp_path / "a.onnxla")
        )
        await started.wait()
        found = children()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return found

    assert asyncio.run(cancelled())
    assert nothing_is_left(tmp_path)


def test_a_process_ends_with_the_one_that_started_it(tmp_path: Path) -> None:
    model = models.slow(tmp_path / "model.onnx")
    program = f"""
import asyncio
from pathlib import Path
from onnxla.serving.jobs.compile_in_child import compile_in_child
tell = lambda *what: print("compiling", flush=True)
asyncio.run(compile_in_child(Path({str(model)!r}), {{}}, None, tell, output=Path({str(tmp_path / "a.onnxla")!r})))
"""
    server = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE)
    with server:
        assert server.stdout is not None and server.stdout.readline() == b"compiling\n"
        compiling = family(server.pid)[1:]
        assert compiling
        server.kill()
    assert becomes_true(lambda: not any(map(is_running, compiling)))


def test_a_file_beside_the_model_is_no_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = models.small(tmp_path / "model.onnx")
    for name in ("onnx.py", "json.py", "sitecustomize.py"):
        (tmp_path / name).write_text("raise SystemExit('imported')")
    monkeypatch.chdir(tmp_path)
    assert asyncio.run(compile_in_child(model, {}, output=tmp_path / "a.onnxla")).exists()


def test_a_child_knows_no_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of the server")
    seen: list[bytes] = []

    def look(stage: str, part: float) -> None:
        seen.extend(Path(f"/proc/{pid}/environ").read_bytes() for pid in children())

    model = models.slow(tmp_path / "model.onnx", 20)
    asyncio.run(compile_in_child(model, {}, progress=look, output=tmp_path / "a.onnxla"))
    assert seen and not any(b"of the server" in text for text in seen)


def test_the_memory_of_a_family_is_the_sum() -> None:
    program = "import sys; held = bytearray(64 << 20); print(len(held), flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline()
        taken = usage([process.pid])
        assert 64 << 20 < taken.memory_bytes < 96 << 20
        assert usage([process.pid, process.pid]).memory_bytes > 2 * (64 << 20)
        assert process.pid in family(os.getpid())
        process.communicate()
    assert usage([process.pid]).memory_bytes == 0


def is_running(pid: int) -> bool:
    """Whether there is such a process that has not ended."""
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


def becomes_true(what: Callable[[], bool], seconds: float = 30) -> bool:
    end = time.monotonic() + seconds
    while not what() and time.monotonic() < end:
        time.sleep(0.02)
    return what()
