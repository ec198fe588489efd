"""No code of an artifact is brought into the process before all of the file is known to be what was written, and no
memory is ever writable and executable."""

import ctypes
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import onnxla
from onnxla.errors import ArtifactError
from onnxla.runtime import executable, loader, thread_pool
from onnxla.runtime.artifact_reading import read_artifact
from tests.hostile.models import with_weights

MAP = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S{4}) ")


def maps() -> Iterator[tuple[int, int, str]]:
    """Begin, end and permissions of every piece of this process's memory."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        found = MAP.match(line)
        assert found
        yield int(found[1], 16), int(found[2], 16), found[3]


def permissions(address: int) -> str:
    return next(kind for begin, end, kind in maps() if begin <= address < end)


def writable_code() -> set[int]:
    return {begin for begin, _, kind in maps() if "w" in kind and "x" in kind}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "model.onnxla"
    onnxla.compile(with_weights().SerializeToString()).save(path)
    return path


def test_code_in_memory_is_never_writable(saved: Path) -> None:
    callback = ctypes.CFUNCTYPE(None)(lambda: None)  # Python's own ctypes takes a page for these
    before = writable_code()
    native = executable.Executable(read_artifact(saved).programs[0])
    (y,) = native.run([np.ones(1, np.float32)], 1)
    np.testing.assert_array_equal(y, np.arange(4096, dtype=np.float32))
    code = native._library["onnxla_run"]
    assert permissions(code) == "r-xp"
    assert thread_pool._pool is not None
    assert permissions(thread_pool._pool.parallel_for_address) == "r-xp"
    assert permissions(native._weights.ctypes.data)[:3] == "r--"
    assert writable_code() <= before
    callback()


@pytest.mark.parametrize("verify_weights", ["fast", "full"])
def test_a_damaged_section_of_any_kind_keeps_all_code_out(
    saved: Path, monkeypatch: pytest.MonkeyPatch, verify_weights: str
) -> None:
    whole = saved.read_bytes()
    program = read_artifact(saved).programs[0]
    sections = {
        "code": program.objects[0],
        "pool": program.thread_pool,
        "weights": bytes(program.weights)[-4096:],
        "manifest": b'"signature"',
    }
    linked: list[object] = []
    for module in (executable, thread_pool, loader):
        monkeypatch.setattr(module, "NativeLibrary", lambda *arguments: linked.append(arguments))
    for name, content in sections.items():
        damaged = bytearray(whole)
        damaged[whole.rindex(content) + len(content) // 2] ^= 1
        saved.write_bytes(damaged)
        with pytest.raises(ArtifactError, match="differs"):
            onnxla.load_compiled(saved, verify_weights=verify_weights)
        assert not linked, name


def test_code_that_changes_in_the_file_behind_its_check_does_not_change_in_the_program(saved: Path) -> None:
    """A map of the file would show what was written later."""
    whole = saved.read_bytes()
    program = read_artifact(saved).programs[0]
    place = whole.index(program.objects[0])
    with open(saved, "r+b") as file:
        file.seek(place)
        file.write(b"\xcc" * len(program.objects[0]))
    assert whole[place:].startswith(program.objects[0]) and program.objects[0][:4] == b"\x7fELF"
