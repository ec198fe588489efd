"""The compile cache behind `compile`: what invalidates an entry, and who may meet in one folder."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import onnxla
from onnxla.compiler import cache_key, made
from onnxla.compiler.compiler import Compiler
from onnxla.compiler.onnx_source import OnnxSource
from onnxla.frontends.onnx.model_file import read_model
from onnxla.hlo.printer import print_module
from onnxla.makers import ABOVE, digest_of_sources
from onnxla.runtime.cache import CompileCache
from onnxla.runtime.tensors import Array

X = np.arange(12, dtype=np.float32).reshape(3, 4)
W = np.array([1, 2, 4, 8], np.float32)


def a_model(weight: float = 2.0, name: str = "scaled", negative: bool = False) -> ModelProto:
    nodes = [helper.make_node("Mul", ["x", "w"], ["m"], name), helper.make_node("Abs", ["m"], ["y"])]
    if negative:
        nodes[1] = helper.make_node("Neg", ["m"], ["y"])
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", 4])],
        [numpy_helper.from_array((weight * W).astype(np.float32), "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def compiled(folder: Path, model: ModelProto | None = None, rows: int = 3, **options: object) -> onnxla.CompiledModel:
    return onnxla.compile(model or a_model(), dims={"rows": rows}, options={"cache_dir": str(folder), **options})


def is_cached(model: onnxla.CompiledModel) -> bool:
    assert model.report is not None
    return model.report.from_cache


def differing(folder: Path, model: ModelProto | None = None, rows: int = 3, **options: object) -> list[str]:
    """The parts of the key in which the nearest entry differs."""
    settings = onnxla.CompileOptions.from_environment(**options)
    source = OnnxSource(read_model(model or a_model()), settings, onnxla.Limits(), {})
    imported = source.load({}, {"rows": rows}, {})
    key = Compiler(source, "cpu", settings).cache_key(imported, print_module(imported.module))
    comparison = CompileCache(folder, 1 << 30).compare(key)
    assert comparison is not None
    return [part.name for part in comparison.differing]


def test_the_same_again_is_a_hit_and_computes_the_same(tmp_path: Path) -> None:
    first, second = compiled(tmp_path), compiled(tmp_path)
    assert (is_cached(first), is_cached(second)) == (False, True)
    np.testing.assert_array_equal(first(X), second(X))
    assert differing(tmp_path) == []
    first.save(tmp_path / "first"), second.save(tmp_path / "second")
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


@pytest.fixture(scope="module")
def filled_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cache")
    compiled(folder)
    return folder


@pytest.fixture
def filled(filled_once: Path, tmp_path: Path) -> Path:
    """A cache with the code of the model for three rows."""
    folder = tmp_path / "cache"
    shutil.copytree(filled_once, folder)
    folder.chmod(0o700)
    return folder


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        (lambda: {"model": a_model(negative=True)}, ["program"]),
        (lambda: {"model": a_model(name="renamed")}, ["program"]),
        (lambda: {"model": a_model(weight=3)}, ["program", "weights"]),
        (lambda: {"rows": 5}, ["program", "shapes", "signature"]),
        (lambda: {"fast_math": True}, ["option fast_math"]),
        (lambda: {"opt_level": 1}, ["option opt_level"]),
        (lambda: {"precision": "highest"}, ["option precision"]),
        (lambda: {"folding_bytes": 7}, ["option folding_bytes"]),
        (lambda: {"target_cpu": "x86-64"}, ["option target_cpu", "target"]),
    ],
)
def test_each_change_of_model_and_options_is_a_miss_that_is_explained(
    change: Callable[[], dict[str, Any]], parts: list[str], filled: Path
) -> None:
    assert differing(filled, **change()) == parts
    assert not is_cached(compiled(filled, **change()))
    assert is_cached(compiled(filled))


@pytest.mark.parametrize(
    ("name", "part"), [("__version__", "version"), ("libraries", "libraries"), ("compiler_digest", "compiler")]
)
def test_another_onnxla_is_a_miss(name: str, part: str, filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_key, name, "9.9" if name == "__version__" else lambda *given: "9.9")
    assert differing(filled) == [part]
    assert not is_cached(compiled(filled))


def test_any_change_of_the_source_is_another_compiler(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (tmp_path / "passes").mkdir()
    (package / "passes").symlink_to("../passes")
    (package / "config.py").write_text("LEVEL = 1")
    (tmp_path / "passes" / "fusion.py").write_text("MOST = 8")
    digests = [digest_of_sources(str(package), without=ABOVE)]

    def changed() -> bool:
        digests.append(digest_of_sources(str(package), without=ABOVE))
        return digests[-1] not in digests[:-1]

    assert not changed()
    (package / "config.py").write_text("LEVEL = 2")
    assert changed()
    (tmp_path / "passes" / "fusion.py").write_text("MOST = 9")
    assert changed()
    (package / "config.py").rename(tmp_path / "passes" / "config.py")
    assert changed()
    (package / "compiled.pyc").write_text("")
    (package / "cli").mkdir()
    (package / "cli" / "main.py").write_text("")
    assert not changed()


def test_what_does_not_change_the_code_is_no_miss(filled: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "verify": False,
        "dump_to": str(tmp_path / "dump"),
        "compile_timeout": 100,
        "cache_bytes": 1 << 20,
    }
    assert is_cached(compiled(filled, **options))


def test_compiling_ahead_serves_runs_of_the_open_model(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    later = onnxla.compile(a_model(), options={"cache_dir": str(filled)})

    def fail(*given: object) -> None:
        raise AssertionError("nothing is compiled")

    monkeypatch.setattr(made, "compile_cpu", fail)
    np.testing.assert_array_equal(later(X), 2 * X * W)


def test_a_poisoned_entry_is_compiled_anew(tmp_path: Path) -> None:
    """One bit in the middle of each section that is read, or of the end; and entries that were cut."""
    compiled(tmp_path)
    (entry,) = tmp_path.glob("*.onnxla")
    good = entry.read_bytes()
    with zipfile.ZipFile(entry) as archive:
        manifest = archive.read("manifest.json")
    sections = json.loads(manifest)["sections"]
    places = [s["offset"] + s["size"] // 2 for name, s in sections.items() if not name.startswith("texts/")]
    assert len(places) == 4  # two objects, the thread pool, the weights
    for place in (*places, good.index(manifest) + len(manifest) // 2, len(good) - 1):
        entry.write_bytes(good[:place] + bytes([good[place] ^ 0x40]) + good[place + 1 :])
        np.testing.assert_array_equal(_warned(tmp_path)(X), 2 * X * W)
    for length in (0, 1, 4096, len(good) - 1):
        entry.write_bytes(good[:length])
        np.testing.assert_array_equal(_warned(tmp_path)(X), 2 * X * W)
    assert is_cached(compiled(tmp_path))


def _warned(folder: Path) -> onnxla.CompiledModel:
    with pytest.warns(UserWarning, match="a damaged entry of the compile cache is removed"):
        model = compiled(folder)
    assert not is_cached(model)
    return model


def test_an_entry_of_another_model_under_this_name_is_not_used(tmp_path: Path) -> None:
    compiled(tmp_path / "a")
    compiled(tmp_path / "b", a_model(weight=3))
    (mine,), (other,) = (list((tmp_path / n).glob("*.onnxla")) for n in "ab")
    mine.write_bytes(other.read_bytes())
    model = compiled(tmp_path / "a")
    assert not is_cached(model)
    np.testing.assert_array_equal(model(X), 2 * X * W)


PROCESS = """
import json, os, sys, tempfile, warnings
import numpy as np, onnxla, onnxla.compiler.cache_key
onnxla.compiler.cache_key.compiler_digest = lambda: "this checkout"  # which somebody may be working in
folder, user, path, action = sys.argv[1:]
x = np.arange(12, dtype=np.float32).reshape(3, 4)
with tempfile.TemporaryDirectory() as other:  # all is imported and read before another user, who may not, takes over
    onnxla.compile(path, dims={"rows": 3}, options={"cache_dir": other})(x)
if user != "-":
    os.setgroups([]); os.setgid(int(user)); os.setuid(int(user))
warnings.simplefilter(action)
seen = []
warnings.showwarning = lambda message, *rest: seen.append(str(message))
model = onnxla.compile(path, dims={"rows": 3}, options={"cache_dir": folder})
print(json.dumps([model(x).tolist(), model.report.from_cache, seen]))
"""


def process(folder: Path, model: Path, user: int | None = None, filter: str = "error") -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", PROCESS, str(folder), "-" if user is None else str(user), str(model), filter],
        stdout=subprocess.PIPE,
        text=True,
    )


def answer(process: "subprocess.Popen[str]") -> tuple[Array, bool, list[str]]:
    out, _ = process.communicate()
    assert process.returncode == 0
    values, cached, seen = json.loads(out)
    return np.array(values, np.float32), cached, seen


def test_two_processes_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_key, "compiler_digest", lambda: "this checkout")
    (tmp_path / "m.onnx").write_bytes(a_model().SerializeToString())
    running = [process(tmp_path / "cache", tmp_path / "m.onnx") for _ in range(2)]
    for one in running:
        np.testing.assert_array_equal(answer(one)[0], 2 * X * W)
    assert [p.suffix for p in (tmp_path / "cache").iterdir() if p.is_file()] == [".onnxla"]
    assert is_cached(compiled(tmp_path / "cache"))


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter, as pytest's are not."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


def test_a_read_only_cache_serves_and_warns(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As another user where this one is the administrator, whom permissions do not stop."""
    monkeypatch.setattr(cache_key, "compiler_digest", lambda: "this checkout")
    user = 65534 if os.getuid() == 0 else None
    for name, weight in (("m", 2), ("other", 3)):
        (open_folder / f"{name}.onnx").write_bytes(a_model(weight).SerializeToString())
        (open_folder / f"{name}.onnx").chmod(0o644)
    folder = open_folder / "cache"
    compiled(folder)
    for path in folder.iterdir():
        path.chmod(0o644)
    folder.chmod(0o555)
    try:
        values, cached, seen = answer(process(folder, open_folder / "m.onnx", user))
        np.testing.assert_array_equal(values, 2 * X * W)
        assert cached and not seen
        values, cached, seen = answer(process(folder, open_folder / "other.onnx", user, "default"))
        np.testing.assert_array_equal(values, 3 * X * W)
        assert not cached and len(seen) == 1 and "the compile cache is not written: cannot write" in seen[0]
    finally:
        folder.chmod(0o755)
