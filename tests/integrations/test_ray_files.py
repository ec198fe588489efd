"""Files that the workers of a node share. No cluster is needed."""

import fcntl
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from onnxla.errors import FileError

pytest.importorskip("ray")
from onnxla.integrations.ray import node_files  # noqa: E402
from onnxla.integrations.ray.node_files import node_file, node_folder  # noqa: E402


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(node_files, "_held", {})
    return node_folder()


def test_a_file_is_written_once_for_this_user_only(folder: Path) -> None:
    asked = []

    def content() -> bytes:
        asked.append(1)
        return b"artifact"

    path = node_file("a", content)
    assert node_file("a", content) == path == folder / "a.onnxla" and len(asked) == 1
    assert path.read_bytes() == b"artifact"
    assert path.stat().st_mode & 0o777 == 0o600 and folder.stat().st_mode & 0o777 == 0o700


def test_what_nobody_holds_goes_with_the_next_request(folder: Path) -> None:
    program = f"""
import runpy, tempfile
tempfile.tempdir = {str(folder.parent)!r}
node_file = runpy.run_path({node_files.__file__!r})["node_file"]  # without the rest of the package, which takes long
print(node_file("of another process", lambda: b"x"), flush=True)
input()
"""
    other = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    theirs = Path(other.stdout.readline().strip())
    mine = node_file("mine", lambda: b"y")
    assert theirs.exists() and mine.exists()
    other.communicate("\n", timeout=60)
    node_file("another", lambda: b"z")
    assert not theirs.exists() and mine.exists()


def test_a_folder_or_file_that_others_may_write_to_is_refused(folder: Path) -> None:
    path = node_file("a", lambda: b"x")
    for held in node_files._held.values():
        fcntl.flock(held, fcntl.LOCK_UN)
    path.chmod(0o666)
    with pytest.raises(FileError, match="open to, another user"):
        node_file("a", lambda: b"x")
    folder.chmod(0o777)
    with pytest.raises(FileError, match="open to, another user"):
        node_file("b", lambda: b"x")


def test_a_file_that_cannot_be_had_is_written_by_the_next_who_asks(folder: Path) -> None:
    def lost() -> bytes:
        raise FileError("lost")

    with pytest.raises(FileError, match="lost"):
        node_file("a", lost)
    assert node_file("a", lambda: b"there").read_bytes() == b"there"
