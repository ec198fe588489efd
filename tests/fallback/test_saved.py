"""Mixed models in artifacts: the same results after loading, weights once, and typed errors for what does not fit."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper

import onnxla
from onnxla.errors import ArtifactError, DeviceError, InputError
from onnxla.hlo.types import Array
from onnxla.runtime.artifact_reading import read_artifact
from onnxla.runtime.mixed_model import MixedModel
from tests.cli.command import onnxla as command
from tests.cli.command import succeed
from tests.fallback.models import (
    FLOAT,
    INT,
    detector,
    hash_between,
    model_of,
    node,
    nonzero_between,
    onnxruntime_results,
    require_equal,
    weight,
)


def saved(model: Any, path: Path, **arguments: Any) -> MixedModel:
    """The model, saved and loaded."""
    compiled = onnxla.compile(model, fallback="onnxruntime", num_threads=1, **arguments)
    compiled.save(path)
    loaded = onnxla.load_compiled(path, num_threads=1)
    assert isinstance(loaded, MixedModel)
    return loaded


def image(batch: int) -> Array:
    return np.random.default_rng(7).random((batch, 3, 16, 16), np.float32)


def big_weights() -> ModelProto:
    """A product, and NonZero over it with a table of 400 kB that onnxruntime reads, beside another of bfloat16."""
    nodes = [
        node("MatMul", ["x", "w"], ["product"], name="product"),
        node("Relu", ["product"], ["active"], name="relu"),
        node("NonZero", ["active"], ["places"], name="nonzero"),
        node("Gather", ["table", "places"], ["y"], axis=0, name="look"),
        node("Cast", ["half"], ["whole"], to=FLOAT, name="cast"),
        node("Gather", ["whole", "places"], ["z"], axis=0, name="look_again"),
    ]
    held = {"w": weight(64, 256), "table": np.arange(100_000, dtype=np.float32)}
    model = model_of(nodes, {"x": (FLOAT, ["n", 64])}, {"y": FLOAT, "z": FLOAT}, held)
    values = np.arange(1000, dtype=np.float32)
    model.graph.initializer.append(helper.make_tensor("half", TensorProto.BFLOAT16, [1000], values))
    return model


@pytest.mark.parametrize(
    ("model", "feeds"),
    [
        (detector, {"x": image(1)}),
        (nonzero_between, {"x": np.random.default_rng(3).standard_normal((64, 64)).astype(np.float32)}),
        (hash_between, {"x": np.arange(40000, dtype=np.int32).reshape(200, 200)}),
        (big_weights, {"x": np.random.default_rng(5).standard_normal((3, 64)).astype(np.float32)}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_loaded_model_gives_what_the_saved_one_gave(model: Any, feeds: dict[str, Array], tmp_path: Path) -> None:
    shapes = {name: array.shape for name, array in feeds.items()}
    loaded = saved(model(), tmp_path / "m.onnxla", shapes=shapes)
    require_equal(loaded.run(None, feeds), onnxruntime_results(model(), feeds))
    compiled = onnxla.compile(model(), fallback="onnxruntime", num_threads=1, shapes=shapes)
    assert str(loaded.clusters) == str(getattr(compiled, "clusters", None))
    assert list(map(str, loaded.get_inputs())) == list(map(str, compiled.get_inputs()))
    loaded.save(tmp_path / "again.onnxla")
    assert (tmp_path / "again.onnxla").read_bytes() == (tmp_path / "m.onnxla").read_bytes()


def test_it_is_loaded_without_onnx_and_the_compiler(tmp_path: Path) -> None:
    saved(detector(), tmp_path / "m.onnxla", dims={"N": 1})
    np.save(tmp_path / "x.npy", image(1))
    script = (
        "import sys, numpy as np, onnxla; m = onnxla.load_compiled('m.onnxla'); m.run(None, {'x': np.load('x.npy')}); "
        "print(sorted({'onnx', 'llvmlite', 'google.protobuf', 'onnxla.compiler', 'onnxla.hlo'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "[]\n", done.stderr


def test_weights_are_stored_once(tmp_path: Path) -> None:
    """For several sizes, and from a model whose weights lie beside it."""
    onnx.save(big_weights(), tmp_path / "m.onnx", save_as_external_data=True, location="data", size_threshold=0)
    loaded = saved(tmp_path / "m.onnx", tmp_path / "m.onnxla", dims={"n": [2, 3]})
    with zipfile.ZipFile(tmp_path / "m.onnxla") as archive:
        sizes = [info.file_size for info in archive.infolist() if info.filename.startswith("weights/")]
        parts = [info.file_size for info in archive.infolist() if info.filename.startswith("onnx/")]
    assert sizes.count(400_000) == 1 and sizes.count(4000) == 1  # the table, and what is known to be cast
    assert len(parts) == 2 and max(parts) < 4000
    (tmp_path / "data").unlink()
    for n in (2, 3):
        x = np.random.default_rng(n).standard_normal((n, 64)).astype(np.float32)
        require_equal(loaded.run(None, {"x": x}), onnxruntime_results(big_weights(), {"x": x}))
    with pytest.raises(InputError, match="no code for x"):
        loaded.run(None, {"x": np.zeros((5, 64), np.float32)})


def test_a_shape_that_was_inferred_wrongly_is_an_error(tmp_path: Path) -> None:
    """The model that was compiled plans again; one that was loaded cannot."""
    x = np.array([[1.0, 0.0, 2.0, 3.0]] * 200, np.float32)
    nodes = [
        node("Relu", ["x"], ["active"]),
        node("NonZero", ["active"], ["places"]),
        node("Mul", ["places", "places"], ["squares"]),
        node("Add", ["squares", "places"], ["y"]),
    ]
    claim = helper.make_tensor_value_info("places", INT, [2, 5000])
    model = model_of(nodes, {"x": (FLOAT, [200, 4])}, {"y": INT}, {}, [claim])
    loaded = saved(model, tmp_path / "m.onnxla")
    with pytest.raises(ArtifactError, match="places is int64 .* was inferred: compile the model again"):
        loaded.run(None, {"x": x})


def test_without_onnxruntime_the_error_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.onnxla"
    saved(detector(), path, dims={"N": 1})
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(DeviceError, match="needs onnxruntime"):
        onnxla.load_compiled(path)
    assert command("run", path).code == 6


def test_what_is_open_is_not_saved(tmp_path: Path) -> None:
    compiled = onnxla.compile(detector(), fallback="onnxruntime")
    with pytest.raises(ArtifactError, match="nothing is compiled yet"):
        compiled.save(tmp_path / "m.onnxla")
    compiled.run(None, {"x": image(2)})
    compiled.save(tmp_path / "m.onnxla")
    assert len(onnxla.load_compiled(tmp_path / "m.onnxla").run(None, {"x": image(2)})) == 2


def test_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    onnx.save(detector(), "m.onnx")
    assert "give --dim N=1" in command("compile", "m.onnx", "--fallback", "onnxruntime").err
    said = succeed("compile", "m.onnx", "--fallback", "onnxruntime", "--dim", "N=1").out
    assert "nodes compiled in 1 cluster" in said
    for text in (succeed("inspect", "m.onnxla").out, succeed("run", "m.onnxla").out):
        assert "nms (NonMaxSuppression), node 10" in text and "2 onnxruntime: " in text
    assert [c["compiled"] for c in succeed("inspect", "m.onnxla", "--json").json["clusters"]] == [True, False]
    assert "conv" in succeed("inspect", "m.onnxla", "--show", "kernels").out
    assert "every output agrees" in succeed("validate", "m.onnx", "--compiled", "m.onnxla").out


MUTATIONS: dict[str, Any] = {
    "a stage reads what nobody makes": lambda m: m["mixed"][0]["stages"][0]["inputs"].append("nothing"),
    "a program that is not there": lambda m: m["mixed"][0]["stages"][0].update(program=7),
    "another order": lambda m: m["mixed"][0]["stages"].reverse(),
    "a shape of letters": lambda m: m["mixed"][0]["shapes"].update(x=["a"]),
    "a negative shape": lambda m: m["mixed"][0]["shapes"].update(x=[-1, 3, 16, 16]),
    "an output that is not made": lambda m: m["mixed"][0]["stages"].pop(),
    "no stages": lambda m: m["mixed"][0].pop("stages"),
    "a report of numbers": lambda m: m["mixed"][0].update(report=[1, 2]),
    "a model that is no section": lambda m: m["mixed"][0]["stages"][1].update(onnx="manifest"),
}


@pytest.mark.parametrize("mutate", MUTATIONS.values(), ids=MUTATIONS.keys())
def test_a_manifest_that_does_not_fit_is_refused(mutate: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved(detector(), tmp_path / "m.onnxla", dims={"N": 1})
    loads = json.loads

    def changed(text: Any) -> Any:
        manifest = loads(text)
        if isinstance(manifest, dict) and "mixed" in manifest:
            mutate(manifest)
        return manifest

    monkeypatch.setattr("onnxla.runtime.artifact_reading.json.loads", changed)
    with pytest.raises(ArtifactError):
        read_artifact(tmp_path / "m.onnxla")
