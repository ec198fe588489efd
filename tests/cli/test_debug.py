"""`onnxla debug`, its folder and its bundle; the page of `validate --layers`."""

import json
import subprocess
import sys
import zipfile
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.cli.command import DIGITS, DIGITS_INPUT, onnxla, relu_model, save_model, succeed
from tests.debugging.planted import KERNELS, PASSES

EVIL = "</td><script>alert(1)</script>\x1b[31m"


def negations(path: Path) -> Path:
    """x -> Abs -> Neg -> Neg -> Abs -> y, with a name that wants to be more than a name."""
    operators = ("Abs", "Neg", "Neg", "Abs")
    values = ["x", "a", "b", EVIL, "y"]
    nodes = [helper.make_node(op, [values[k]], [values[k + 1]], f"{EVIL}{k}") for k, op in enumerate(operators)]
    return save_model(path, *nodes)


def test_a_fault_ends_with_one_and_a_folder_that_shows_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    PASSES["a rule changes a sign"].plant(monkeypatch)
    model, folder = negations(tmp_path / "model.onnx"), tmp_path / "fault"
    ended = onnxla("debug", model, "--out", folder, "--option", "opt_level=0", "--threads", "1")
    assert ended.code == 1, ended.err
    assert "broken by: the pass simplify" in ended.out and "its rule negate_twice" in ended.out
    assert "2 nodes" in ended.out and "\x1b" not in ended.out
    assert {p.name for p in folder.iterdir()} == {"model.onnx", "inputs.npz", "replay.sh", "README.txt"}
    assert "negate_twice" in (folder / "README.txt").read_text()
    assert "debug model.onnx --input inputs.npz --threads 1 --option opt_level=0" in (folder / "replay.sh").read_text()
    again = onnxla("debug", folder / "model.onnx", "-i", folder / "inputs.npz", "--out", tmp_path / "2", "--json")
    assert again.code == 1
    fault = again.json["fault"]
    assert (fault["part"], fault["name"], len(fault["nodes"])) == ("pass", "simplify", 2)


def test_the_replay_script_runs_the_command_in_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    KERNELS["select takes the other"].plant(monkeypatch)
    nodes = (
        helper.make_node("Greater", ["x", "zero"], ["flag"]),
        helper.make_node("Neg", ["x"], ["n"]),
        helper.make_node("Where", ["flag", "x", "n"], ["y"]),
    )
    path = save_model(tmp_path / "it's.onnx", *nodes)
    model = onnx.load(path)
    model.graph.initializer.append(numpy_helper.from_array(np.array(0, np.float32), "zero"))
    onnx.save(model, path)
    folder = tmp_path / "o u t"
    assert onnxla("debug", path, "--out", folder, "--option", "opt_level=0", "--rtol", "1e-2").code == 1
    command = tmp_path / "onnxla"
    command.write_text('#!/bin/sh\npwd; printf "%s\\n" "$@"\n')
    command.chmod(0o755)
    path_of_commands = f"{tmp_path}:/usr/bin:/bin"
    run = subprocess.run([folder / "replay.sh"], env={"PATH": path_of_commands}, capture_output=True, text=True)
    expected = [
        str(folder),
        "debug",
        "model.onnx",
        "--input",
        "inputs.npz",
        "--rtol",
        "0.01",
        "--option",
        "opt_level=0",
    ]
    assert run.stdout.splitlines() == expected


def test_no_fault_ends_with_zero_and_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ended = succeed("debug", DIGITS, "-i", DIGITS_INPUT, "--json")
    assert ended.json["fault"] is None and ended.json["folder"] is None
    assert all(c["agrees"] for c in ended.json["outputs"]) and not ended.json["values"]
    assert list(tmp_path.iterdir()) == []


def test_what_is_refused(tmp_path: Path) -> None:
    model = relu_model(tmp_path / "relu.onnx")
    artifact = tmp_path / "relu.onnxla"
    succeed("compile", model, "-o", artifact)
    for arguments, text in (
        ((artifact,), "give the ONNX model it was made from"),
        ((model, "--random-weights", "1"), "--random-weights is for --bundle"),
        ((model, "-i", "nothing.npz"), "nothing.npz"),
    ):
        ended = onnxla("debug", *arguments)
        assert ended.code == 2 and text in ended.err
    unknown = save_model(tmp_path / "unknown.onnx", helper.make_node("Relu", ["x"], ["y"], domain="no.such"))
    assert onnxla("debug", unknown).code in (2, 3)


@pytest.mark.skipif(sys.platform != "linux", reason="asks for a driver")
def test_a_gpu_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    pytest.importorskip("cuda.bindings")
    ended = onnxla("debug", relu_model(tmp_path / "relu.onnx"), "--target", "gpu")
    assert ended.code in (0, 6)


def weighted(path: Path) -> Path:
    """A model with weights of each kind, one in an external file, comments and metadata."""
    rng = np.random.default_rng(0)
    weights = {
        "w": np.abs(rng.standard_normal((4, 8))).astype(np.float32),
        "small": np.array([0.5], np.float32),
        "shape": np.array([2, 8]),
    }
    nodes = [
        helper.make_node("Reshape", ["x", "rows"], ["table"], doc_string="my secret"),
        helper.make_node("MatMul", ["table", "w"], ["product"]),
        helper.make_node("Mul", ["product", "small"], ["scaled"]),
        helper.make_node("Reshape", ["scaled", "shape"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        EVIL,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ("n",))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(a, name) for name, a in {**weights, "rows": np.array([2, 4])}.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    model.metadata_props.add(key="owner", value="my secret")
    onnx.save(model, path, save_as_external_data=True, location="w.bin", size_threshold=100)
    return path


@pytest.mark.parametrize("seed", [None, 5])
def test_a_bundle_holds_what_a_report_needs(tmp_path: Path, seed: int | None) -> None:
    model, bundle = weighted(tmp_path / "model.onnx"), tmp_path / "report.zip"
    extra = [] if seed is None else ["--random-weights", seed]
    ended = succeed("debug", model, "--dim", "n=8", "--bundle", bundle, *extra, "--json")
    with zipfile.ZipFile(bundle) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    assert sorted(ended.json["files"]) == sorted(files)
    assert {"README.txt", "model.onnx", "inputs.npz", "command.txt", "machine.json", "dump/plan.txt"} <= files.keys()
    assert "dump/00-input.hlo" in files and any(name.endswith(".ll") for name in files)
    assert "onnxla" in json.loads(files["machine.json"])
    texts = {name: data for name, data in files.items() if not name.endswith((".onnx", ".npz"))}
    assert all(b"\x1b" not in data for data in texts.values())
    kept = {t.name: numpy_helper.to_array(t) for t in onnx.load_from_string(files["model.onnx"]).graph.initializer}
    original = {t.name: numpy_helper.to_array(t) for t in onnx.load(model).graph.initializer}
    assert all(np.array_equal(kept[name], original[name]) for name in ("small", "shape", "rows"))
    assert np.array_equal(kept["w"], original["w"]) == (seed is None)
    assert (kept["w"] >= 0).all() and kept["w"].shape == (4, 8)
    assert (b"my secret" in files["model.onnx"]) == (seed is None)
    (tmp_path / "again").mkdir()
    for name in ("model.onnx", "inputs.npz"):
        (tmp_path / "again" / name).write_bytes(files[name])
    succeed("debug", tmp_path / "again" / "model.onnx", "-i", tmp_path / "again" / "inputs.npz")


def test_a_bundle_of_what_does_not_compile_has_the_error(tmp_path: Path) -> None:
    model = save_model(tmp_path / "model.onnx", helper.make_node("NonZero", ["x"], ["y"]), y=TensorProto.INT64)
    succeed("debug", model, "--bundle", tmp_path / "report.zip")
    with zipfile.ZipFile(tmp_path / "report.zip") as archive:
        assert "DynamicShapeError" in archive.read("error.txt").decode()


class Rows(HTMLParser):
    """The cells of a page's tables, and the tags in it."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.rows: list[list[str]] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag == "td":
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1] in ("td", "meter") and self.rows and self.rows[-1]:
            self.rows[-1][-1] += data.strip()


def test_layers_as_a_page(tmp_path: Path) -> None:
    page = tmp_path / "layers.html"
    succeed("validate", negations(tmp_path / "model.onnx"), "--layers", "--html", page)
    text = page.read_text()
    parsed = Rows()
    parsed.feed(text)
    assert parsed.tags.count("script") == 1 and "\x1b" not in text
    assert not {"link", "img", "iframe"} & set(parsed.tags) and "http" not in text.replace("http-equiv", "")
    cells = [row for row in parsed.rows if row]
    assert [row[1] for row in cells] == ["y", "a", "b", EVIL.replace("\x1b", "\\x1b"), "y"]
    assert all(row[-1] == "agrees" for row in cells)
    assert "4 of 4 values of the graph agree; no value differs" in text


def test_a_page_needs_layers(tmp_path: Path) -> None:
    ended = onnxla("validate", relu_model(tmp_path / "relu.onnx"), "--html", tmp_path / "x.html")
    assert ended.code == 2 and "--html is for --layers" in ended.err
