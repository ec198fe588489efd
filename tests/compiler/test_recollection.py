"""What the cache knows of a file: the same call with the same bytes reads no model and loads no compiler; whatever is
different in either is compiled."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper, save_model

import onnxla
from onnxla import recollection
from onnxla.runtime.digest import digest_of_all

X = np.arange(12, dtype=np.float32).reshape(3, 4)
W = np.arange(1, 5, dtype=np.float32)


def scaled(weight: float = 2.0) -> ModelProto:
    """`y = x * w * weight`, with open rows and a default for `w`."""
    node = helper.make_node("Mul", ["x", "w"], ["y"])
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", 4])],
        [numpy_helper.from_array(np.float32(weight) * W, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "m.onnx"
    path.write_bytes(scaled().SerializeToString())
    return path


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[onnxla.CompiledModel, bool]]:
    """Compiles with a cache; says whether it was recalled, in which case the model is not read."""
    import onnxla.compile_call

    calls: list[object] = []
    original = onnxla.compile_call.compile_call

    def counted(*given: Any) -> onnxla.CompiledModel:
        calls.append(given)
        return original(*given)

    monkeypatch.setattr(onnxla.compile_call, "compile_call", counted)

    def compile_it(path: Path, **arguments: Any) -> tuple[onnxla.CompiledModel, bool]:
        options = {"cache_dir": str(tmp_path / "cache"), **arguments.pop("options", {})}
        before = len(calls)
        made = onnxla.compile(path, options=options, **{"dims": {"rows": 3}, **arguments})
        return made, len(calls) == before

    return compile_it


Compile = Callable[..., tuple[onnxla.CompiledModel, bool]]


def test_the_same_call_gives_the_same_model_again(model: Path, compiled: Compile, tmp_path: Path) -> None:
    (first, was_known), (second, is_known) = compiled(model), compiled(model)
    assert (was_known, is_known) == (False, True)
    np.testing.assert_array_equal(second(X), 2 * X * W)
    assert second.get_inputs() == first.get_inputs() and second.get_outputs() == first.get_outputs()
    assert second.about == first.about
    assert first.report is not None and second.report is not None and second.report.from_cache
    assert (second.report.nodes, second.report.kernels) == (first.report.nodes, first.report.kernels)
    first.save(tmp_path / "first"), second.save(tmp_path / "second")
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


def test_several_sizes_are_recalled_together(model: Path, compiled: Compile) -> None:
    first, _ = compiled(model, dims={"rows": [1, 3]})
    second, is_known = compiled(model, dims={"rows": [1, 3]})
    assert is_known and len(second.programs) == 2
    assert [t.shape for t in second.get_inputs()] == [t.shape for t in first.get_inputs()] == [["rows", 4]]
    np.testing.assert_array_equal(second(X), 2 * X * W)


@pytest.mark.parametrize(
    "change",
    [
        {"dims": {"rows": 2}},
        {"dims": {}, "shapes": {"x": (3, 4)}},
        {"dims": {"rows": [3, 2]}},
        {"options": {"fast_math": True}},
        {"options": {"target_cpu": "x86-64"}},
        {"limits": onnxla.Limits(nodes=1000)},
        {"constants": {"x": X}},
    ],
    ids=lambda change: " ".join(change),
)
def test_another_call_is_compiled(change: dict[str, Any], model: Path, compiled: Compile) -> None:
    compiled(model)
    assert not compiled(model, **change)[1]
    assert compiled(model, **change)[1]


def test_values_of_constants_count(model: Path, compiled: Compile) -> None:
    for value in (X, X + 1, X.astype(np.float32) * 0):
        made, is_known = compiled(model, constants={"x": value}, dims={})
        assert not is_known
        np.testing.assert_array_equal(made.run(None, {})[0], 2 * value * W)


def test_another_file_under_the_name_is_compiled_though_its_times_are_the_same(model: Path, compiled: Compile) -> None:
    compiled(model)
    status = model.stat()
    model.write_bytes(scaled(3.0).SerializeToString())
    os.utime(model, ns=(status.st_atime_ns, status.st_mtime_ns))
    made, is_known = compiled(model)
    assert not is_known
    np.testing.assert_array_equal(made(X), 3 * X * W)


def test_what_is_kept_is_of_the_bytes_that_were_compiled(model: Path, compiled: Compile) -> None:
    """The file changes after it was looked for in the cache, and before it is read."""
    import onnxla.compile_call

    counted = onnxla.compile_call.compile_call

    def changed_before(*given: Any) -> onnxla.CompiledModel:
        model.write_bytes(scaled(5.0).SerializeToString())
        return counted(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(onnxla.compile_call, "compile_call", changed_before)
        np.testing.assert_array_equal(compiled(model)[0](X), 5 * X * W)
    model.write_bytes(scaled(2.0).SerializeToString())
    np.testing.assert_array_equal(compiled(model)[0](X), 2 * X * W)
    model.write_bytes(scaled(5.0).SerializeToString())
    made, is_known = compiled(model)
    assert is_known
    np.testing.assert_array_equal(made(X), 5 * X * W)


@pytest.mark.parametrize("name", ["__version__", "compiler_digest", "libraries", "cpu_identity"])
def test_another_onnxla_or_cpu_knows_nothing(
    name: str, model: Path, compiled: Compile, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled(model)
    monkeypatch.setattr(recollection, name, "9.9" if name == "__version__" else lambda: "9.9")
    assert not compiled(model)[1]


def test_a_model_with_weights_beside_it_is_read(tmp_path: Path, compiled: Compile) -> None:
    path = tmp_path / "m.onnx"
    save_model(scaled(), path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    compiled(path)
    assert not compiled(path)[1]


def test_a_model_whose_sizes_runs_settle_is_read(model: Path, compiled: Compile) -> None:
    for _ in range(2):
        made, is_known = compiled(model, dims={})
        assert not is_known
        np.testing.assert_array_equal(made(X), 2 * X * W)


@pytest.mark.parametrize("damage", [b"", b"{}", b"[1]", b"\xff", b'{"programs": [], "interface": 1}'])
def test_what_cannot_be_read_is_compiled_and_written_again(
    damage: bytes, model: Path, compiled: Compile, tmp_path: Path
) -> None:
    compiled(model)
    (kept,) = (tmp_path / "cache" / "recalled").iterdir()
    kept.write_bytes(damage)
    assert not compiled(model)[1]
    assert compiled(model)[1]


def test_a_recollection_of_another_interface_is_not_used(model: Path, compiled: Compile, tmp_path: Path) -> None:
    compiled(model)
    (kept,) = (tmp_path / "cache" / "recalled").iterdir()
    text = kept.read_text().partition("\n")[2]
    stored = json.loads(text)
    stored["interface"]["inputs"][0][0] = "z"
    changed = json.dumps(stored)
    kept.write_text(f"{digest_of_all([kept.name, changed])}\n{changed}")
    assert not compiled(model)[1]


def test_a_changed_recollection_is_not_used(model: Path, compiled: Compile, tmp_path: Path) -> None:
    """A digit of the report: everything else would fit."""
    compiled(model)
    (kept,) = (tmp_path / "cache" / "recalled").iterdir()
    text = kept.read_text()
    assert text.count('"weights_bytes": 64') == 1
    kept.write_text(text.replace('"weights_bytes": 64', '"weights_bytes": 65'))
    made, is_known = compiled(model)
    assert not is_known and made.report is not None and made.report.weights_bytes == 64


def test_a_recollection_under_the_name_of_another_is_not_used(model: Path, compiled: Compile, tmp_path: Path) -> None:
    """Files of a cache that were copied or restored in the wrong order."""
    compiled(model, constants={"x": X}, dims={})
    (first,) = (tmp_path / "cache" / "recalled").iterdir()
    compiled(model, constants={"x": 2 * X}, dims={})
    (second,) = set((tmp_path / "cache" / "recalled").iterdir()) - {first}
    second.write_bytes(first.read_bytes())
    made, is_known = compiled(model, constants={"x": 2 * X}, dims={})
    assert not is_known
    np.testing.assert_array_equal(made.run(None, {})[0], 4 * X * W)


def test_what_others_may_write_is_not_read(model: Path, compiled: Compile, tmp_path: Path) -> None:
    compiled(model)
    (kept,) = (tmp_path / "cache" / "recalled").iterdir()
    kept.chmod(0o666)
    assert not compiled(model)[1]


def test_an_entry_that_is_gone_is_made_again(model: Path, compiled: Compile, tmp_path: Path) -> None:
    compiled(model)
    (entry,) = (tmp_path / "cache").glob("*.onnxla")
    entry.unlink()
    made, is_known = compiled(model)
    assert not is_known
    np.testing.assert_array_equal(made(X), 2 * X * W)
    assert compiled(model)[1]


def test_clearing_the_cache_forgets(model: Path, compiled: Compile, tmp_path: Path) -> None:
    compiled(model)
    from onnxla.runtime.cache import CompileCache

    assert len(CompileCache(tmp_path / "cache", 1 << 30).clear()) == 2
    assert list((tmp_path / "cache" / "recalled").iterdir()) == []


def test_a_model_that_is_missing_or_broken_is_an_error_as_ever(tmp_path: Path, compiled: Compile) -> None:
    (tmp_path / "broken.onnx").write_bytes(b"\x08\x01junk")
    for name, words in (("missing.onnx", "cannot be opened"), ("broken.onnx", "is not an ONNX model")):
        with pytest.raises(onnxla.ModelFormatError, match=words):
            compiled(tmp_path / name)


PROCESS = """
import sys, numpy as np, onnxla
model = onnxla.compile(sys.argv[1], dims={"rows": 3}, options={"cache_dir": sys.argv[2]})
print(model(np.ones((3, 4), np.float32)).tolist())
print(*sorted({m for m in sys.modules if m in ("onnx", "llvmlite", "onnxla.compiler", "onnxla.hlo")}))
"""


def test_what_is_recalled_needs_no_compiler(model: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROCESS, str(model), str(tmp_path / "cache")]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines() for _ in range(2)]
    assert runs[0][0] == runs[1][0] == str([[2.0, 4.0, 6.0, 8.0]] * 3)
    assert runs[0][1] == "llvmlite onnx onnxla.compiler onnxla.hlo" and len(runs[1]) == 2 and runs[1][1] == ""
