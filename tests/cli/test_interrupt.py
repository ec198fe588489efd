"""Ctrl-C at any stage of `onnxla compile`: exit code 130, a line instead of a traceback, nothing left behind."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import DIGITS

DRIVER = """
import os, signal, subprocess, sys
from onnxla import watch
from onnxla.codegen import workers
from onnxla.runtime import artifact_writing

stage = sys.argv.pop(1)

def interrupt():
    os.kill(os.getpid(), signal.SIGINT)

told = watch.Watch.part_done
def part_done(self, part):
    told(self, part)
    if self._name == stage and (part > 0 or "kernels" not in stage):
        interrupt()
watch.Watch.part_done = part_done

start = subprocess.Popen
def recorded(*arguments, **options):
    process = start(*arguments, **options)
    print("worker", process.pid, file=sys.stderr)
    if stage == "workers":
        interrupt()
    return process
workers.subprocess.Popen = recorded

add = artifact_writing._add_entry
def added(archive, file, name, data):
    place = add(archive, file, name, data)
    if stage == "artifact" and name.startswith("weights"):
        interrupt()
    return place
artifact_writing._add_entry = added

from onnxla.__main__ import main
main()
"""
STAGES = ["import", "passes: simplify", "workers", "artifact"]


def interrupted(stage: str, folder: Path, *more: str) -> "subprocess.CompletedProcess[str]":
    (folder / "temporary").mkdir()
    # a limit of time, so that workers do the compiling
    command = ["compile", DIGITS, "--dim", "batch=1", "-o", "out.onnxla", "-O", "compile_timeout=300", *more]
    return subprocess.run(
        [sys.executable, "-c", DRIVER, stage, *command],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder / "temporary"), "ONNXLA_CACHE_DIR": str(folder / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("stage", STAGES)
def test_an_interrupt_leaves_nothing(stage: str, tmp_path: Path) -> None:
    run = interrupted(stage, tmp_path)
    assert run.returncode == 130, run.stderr
    workers = [int(number) for number in re.findall(r"^worker (\d+)\n", run.stderr, re.MULTILINE)]
    assert re.sub(r"worker \d+\n", "", run.stderr) == "KeyboardInterrupt: stopped from the keyboard\n"
    assert bool(workers) == (stage in ("workers", "artifact"))
    assert not any(os.path.exists(f"/proc/{worker}") for worker in workers)
    left = [p for p in tmp_path.rglob("*") if p.is_file()]
    if stage == "artifact":  # the code was in the cache by then
        left = [p for p in left if p.parent.name != "cache" or p.suffix != ".onnxla"]
    assert not left


def test_without_an_interrupt_the_driver_compiles(tmp_path: Path) -> None:
    run = interrupted("none", tmp_path)
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "out.onnxla").exists()


def test_an_interrupt_takes_a_dump_back(tmp_path: Path) -> None:
    """What was in the folder before stays."""
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "mine.txt").write_text("mine")
    for folder in ("new", "old"):
        place = tmp_path / f"in {folder}"
        place.mkdir()
        run = interrupted("workers", place, "--dump-to", str(tmp_path / folder))
        assert run.returncode == 130, run.stderr
    assert not (tmp_path / "new").exists()
    assert [p.name for p in (tmp_path / "old").iterdir()] == ["mine.txt"]


IMPORTS = """
import os, signal, sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "{module}":
            try:
                os.kill(os.getpid(), signal.SIGINT)
            except KeyboardInterrupt as error:
                {becomes}
sys.meta_path.insert(0, Interrupt())
sys.argv[1:] = {arguments!r}
from onnxla.__main__ import main
main()
"""


@pytest.mark.parametrize(
    "becomes", ["raise", "raise ImportError('half imported') from error", "raise ImportError from None"]
)
@pytest.mark.parametrize(
    ("module", "command"),
    [("typer", ("doctor",)), ("numpy", ("doctor",)), ("onnxruntime", ("bench", DIGITS, "--dim", "batch=1"))],
)
def test_an_interrupt_of_an_import_is_one_line(module: str, command: tuple[str, ...], becomes: str) -> None:
    """Whatever a half-imported library makes of it, in the first moment too."""
    script = IMPORTS.format(module=module, becomes=becomes, arguments=list(command))
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (130, "")
    assert run.stderr == "KeyboardInterrupt: stopped from the keyboard\n"
