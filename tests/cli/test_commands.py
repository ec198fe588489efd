"""Each command as its user meets it."""

import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxla import api
from onnxla.cli.feeds import write_outputs
from onnxla.version import __version__
from tests.cli.command import DIGITS, DIGITS_INPUT, onnxla, relu_model, save_model, succeed

HLO = """HloModule scaled

ENTRY main {
  %x = f32[2,3] parameter(0)
  %two = f32[] constant(2)
  %all = f32[2,3] broadcast(%two), dimensions={}
  ROOT %y = f32[2,3] multiply(%x, %all)
}
"""


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The digits model, compiled for ten images."""
    artifact = tmp_path_factory.mktemp("cli") / "digits.onnxla"
    succeed("compile", DIGITS, "--dim", "batch=10", "-o", artifact)
    return artifact


def test_compile_says_what_it_did(tmp_path: Path) -> None:
    ended = succeed("compile", DIGITS, "--dim", "batch=1,10", "-o", tmp_path / "d.onnxla")
    for words in ("code for 2 sets of shapes", "10 nodes ->", "arena", "all intermediates", "weights", "codegen"):
        assert words in ended.out
    document = succeed("compile", DIGITS, "--dim", "batch=3", "-o", tmp_path / "e.onnxla", "--json").json
    assert document["inputs"][0] == {"name": "image", "type": "tensor(float)", "shape": [3, 1, 8, 8]}
    assert document["artifact_bytes"] == (tmp_path / "e.onnxla").stat().st_size
    assert set(document["report"]["seconds"]) == {"import", "passes", "codegen"}


def test_compile_writes_beside_the_caller_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = relu_model(tmp_path / "r.onnx")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    succeed("compile", model)
    assert (tmp_path / "elsewhere" / "r.onnxla").exists()


def test_run_recognises_the_digits(digits: Path, tmp_path: Path) -> None:
    ended = succeed("run", digits, "-i", DIGITS_INPUT, "-o", tmp_path / "out.npz")
    assert "[0 1 2 3 4 5 6 7 8 9]" in ended.out
    with np.load(tmp_path / "out.npz") as out:
        assert out["digit"].tolist() == list(range(10))
        assert out["probabilities"].shape == (10, 10)


def test_run_draws_the_inputs_that_nobody_gives(digits: Path) -> None:
    first, again, other = (succeed("run", digits, "--seed", s, "--json").json for s in (1, 1, 2))
    assert first["random"] == ["image"]
    assert first["outputs"] == again["outputs"] != other["outputs"]


def test_run_profiles_each_step(digits: Path) -> None:
    assert "GFLOP/s" in succeed("run", digits, "--profile").out
    assert succeed("run", digits, "--profile", "--json").json["profile"][0]["source"].startswith("/conv1/")


def test_run_compiles_a_model_for_the_shapes_of_its_inputs() -> None:
    assert succeed("run", DIGITS, "-i", DIGITS_INPUT, "--json").json["outputs"]["digit"] == list(range(10))


def test_an_artifact_takes_no_shapes(digits: Path) -> None:
    ended = onnxla("run", digits, "--dim", "batch=2")
    assert ended.code == 2 and "is compiled already" in ended.err


def test_what_is_compiled_already_is_not_compiled(digits: Path, tmp_path: Path) -> None:
    ended = onnxla("compile", digits)
    assert ended.code == 2 and "is compiled already" in ended.err
    other = tmp_path / "model.zip"
    with zipfile.ZipFile(other, "w") as archive:
        archive.write(DIGITS, "model.onnx")
    for more in ((), ("--server", "http://127.0.0.1:1")):
        ended = onnxla("compile", other, *more)
        assert ended.code == 2 and "is a zip file, and no model" in ended.err and "give the model in it" in ended.err
    damaged = tmp_path / "damaged.onnxla"
    damaged.write_bytes(digits.read_bytes()[:-100])
    assert onnxla("compile", damaged).code == 4


def test_an_artifact_for_several_sizes_runs_on_any_of_them(tmp_path: Path) -> None:
    several = tmp_path / "several.onnxla"
    succeed("compile", DIGITS, "--dim", "batch=1,10", "-o", several)
    ended = onnxla("run", several)
    assert ended.code == 2 and "hint   give --dim batch=1" in ended.err
    assert len(succeed("run", several, "--dim", "batch=10", "--json").json["outputs"]["digit"]) == 10


def test_an_artifact_takes_no_options(digits: Path) -> None:
    ended = onnxla("run", digits, "--option", "fast_math=true")
    assert ended.code == 2 and "--option are for models" in ended.err
    ended = onnxla("run", digits, "--target", "gpu")
    assert ended.code == 2 and "is compiled already: device='cuda': the model has no code for a GPU" in ended.err


def test_bench_takes_sequences_apart(tmp_path: Path) -> None:
    split = helper.make_node("SplitToSequence", ["x"], ["y"], axis=0)
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])]
    outputs = [helper.make_tensor_sequence_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph([split], "split", inputs, outputs)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "split.onnx")
    document = succeed("bench", tmp_path / "split.onnx", "--rounds", "1", "--json").json
    assert document["differing"] == []


def test_an_artifact_of_another_model_is_no_fault_of_ours(tmp_path: Path, digits: Path) -> None:
    ended = onnxla("validate", relu_model(tmp_path / "relu.onnx"), "--compiled", digits)
    assert ended.code == 2 and "compare an artifact with the model it was made from" in ended.err


def test_validate_judges_each_output_and_the_values_given(digits: Path) -> None:
    ended = succeed("validate", DIGITS, "-i", DIGITS_INPUT, "--compiled", digits)
    assert "outputs against onnxruntime" in ended.out and "outputs against the values given" in ended.out
    assert "every output agrees" in ended.out
    document = succeed("validate", DIGITS, "--dim", "batch=2", "--json").json
    assert document["agrees"] is True and document["layers"] is None


def test_validate_finds_what_differs(tmp_path: Path) -> None:
    """An artifact of another model: identity in place of relu."""
    other = save_model(tmp_path / "other.onnx", helper.make_node("Identity", ["x"], ["y"]))
    succeed("compile", other, "-o", tmp_path / "other.onnxla")
    ended = onnxla("validate", relu_model(tmp_path / "relu.onnx"), "--compiled", tmp_path / "other.onnxla")
    assert ended.code == 1
    assert "DIFFERS" in ended.out and "elements differ, first at [" in ended.out


def test_validate_compares_with_given_outputs(tmp_path: Path) -> None:
    np.savez(tmp_path / "given.npz", x=np.ones(4, np.float32), y=np.zeros(4, np.float32))
    ended = onnxla("validate", relu_model(tmp_path / "relu.onnx"), "-i", tmp_path / "given.npz", "--json")
    assert ended.code == 1
    assert ended.json["outputs"]["given"][0]["agrees"] is False


def test_validate_compares_every_layer() -> None:
    document = succeed("validate", DIGITS, "-i", DIGITS_INPUT, "--layers", "--json").json
    assert [layer["name"] for layer in document["layers"]][:3] == ["conv1", "relu1", "pool1"]
    assert all(layer["agrees"] for layer in document["layers"])


def test_validate_judges_by_float64_on_request() -> None:
    """No rounding meets the tolerance, and yet both results are as exact as f32 can be."""
    strict = ["--rtol", "0", "--atol", "0"]
    assert onnxla("validate", DIGITS, "--dim", "batch=64", *strict).code == 1
    ended = succeed("validate", DIGITS, "--dim", "batch=64", *strict, "--exact")
    assert "as exact" in ended.out and "every output agrees" in ended.out
    document = succeed("validate", DIGITS, "--dim", "batch=2", "--exact", "--json").json
    assert all(0 <= judged["ours"] < 1e-5 for judged in document["exact"])


def test_layers_name_the_first_node_that_differs(tmp_path: Path) -> None:
    """A tolerance that no rounding meets."""
    nodes = [
        helper.make_node("Neg", ["x"], ["exact"], "exact"),
        helper.make_node("Exp", ["exact"], ["rounded"], "rounded"),
        helper.make_node("Tanh", ["rounded"], ["y"], "last"),
    ]
    model = save_model(tmp_path / "m.onnx", *nodes, x=(4096,))
    ended = onnxla("validate", model, "--layers", "--rtol", "0", "--atol", "0")
    assert ended.code == 1
    assert "1 of 3 values of the graph agree" in ended.out
    assert "the first node that differs is rounded (Exp), node 1" in ended.out


def test_layers_of_a_model_with_external_data_and_strings(tmp_path: Path) -> None:
    weight = numpy_helper.from_array(np.full(2048, 3, np.float32), "w")
    graph = helper.make_graph(
        [
            helper.make_node("Mul", ["x", "w"], ["scaled"]),
            helper.make_node("Constant", [], ["words"], value_strings=["a", "b"]),
            helper.make_node("Identity", ["words"], ["same_words"]),
            helper.make_node("SequenceConstruct", ["scaled"], ["list"]),
            helper.make_node("Relu", ["scaled"], ["y"]),
        ],
        "external",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2048])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2048])],
        [weight],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    document = succeed("validate", tmp_path / "m.onnx", "--layers", "--json").json
    assert [layer["name"] for layer in document["layers"]] == ["scaled", "y"]


def test_constants_on_the_command_line(tmp_path: Path) -> None:
    """TopK's k decides a shape."""
    graph = helper.make_graph(
        [helper.make_node("TopK", ["x", "k"], ["y", "places"])],
        "top",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [8]),
            helper.make_tensor_value_info("k", TensorProto.INT64, [1]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    model = tmp_path / "top.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), model)
    succeed("compile", model, "--constant", "k=[3]", "-o", tmp_path / "top.onnxla")
    assert len(succeed("run", tmp_path / "top.onnxla", "--json").json["outputs"]["y"]) == 3
    succeed("validate", model, "--constant", "k=[3]")
    ended = onnxla("compile", model, "-o", tmp_path / "open.onnxla")
    assert ended.code == 3 and "k" in ended.err


def test_strings_and_types_that_numpy_lacks(tmp_path: Path) -> None:
    """Strings are fixed when compiling, or by the first run; onnxruntime takes bfloat16 by its own door."""
    keys: dict[str, Any] = {"keys_strings": ["a", "b"], "values_int64s": [5, 6], "default_int64": -1}
    graph = helper.make_graph(
        [
            helper.make_node("LabelEncoder", ["s"], ["labels"], domain="ai.onnx.ml", **keys),
            helper.make_node("Cast", ["labels"], ["y"], to=TensorProto.BFLOAT16),
        ],
        "labels",
        [helper.make_tensor_value_info("s", TensorProto.STRING, [3])],
        [helper.make_tensor_value_info("labels", TensorProto.INT64, [3])],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 3)]
    model = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), model)
    succeed("validate", model, "--constant", 's=["a","c","b"]')
    np.save(tmp_path / "s.npy", np.array(["a", "c", "b"]))
    assert succeed("run", model, "-i", tmp_path / "s.npy", "--json").json["outputs"]["labels"] == [5, -1, 6]
    succeed("bench", model, "-i", tmp_path / "s.npy", "--rounds", 1, "--burst", 0)
    assert "give it with --input s=file.npy" in onnxla("run", model).err
    half = helper.make_graph(
        [helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT), helper.make_node("Identity", ["x"], ["z"])],
        "half",
        [helper.make_tensor_value_info("x", TensorProto.BFLOAT16, [5])],
        [
            helper.make_tensor_value_info("y", TensorProto.FLOAT, [5]),
            helper.make_tensor_value_info("z", TensorProto.BFLOAT16, [5]),
        ],
    )
    onnx.save(helper.make_model(half, opset_imports=opsets, ir_version=10), model)
    succeed("validate", model, "--layers")
    succeed("bench", model, "--rounds", 1, "--burst", 0)


def test_bench_states_threads_and_medians() -> None:
    document = succeed("bench", DIGITS, "--dim", "batch=1", "--rounds", 2, "--burst", 0, "--json").json
    assert document["threads"] == 1 and document["differing"] == []
    assert [t["runs"] for t in document["timings"]] == [6, 6]
    assert document["ratio"] > 0
    ended = succeed("bench", DIGITS, "--dim", "batch=1", "--rounds", 1, "--burst", 0, "-t", 2)
    assert "at most 2 threads" in ended.out and "times as fast as onnxruntime" in ended.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "memory   arena"),
        (["--show", "kernels"], "/conv1/Relu (Relu, opset 17), node 1"),
        (["--show", "plan"], "plan digits"),
        (["--show", "memory"], "all values"),
        (["--show", "hlo"], "convolution("),
        (["--show", "optimized_hlo"], "fusion("),
        (["--show", "optimized_hlo_dot"], "digraph"),
        (["--after", "import"], "convolution("),
        (["--after", "passes"], "fusion("),
    ],
)
def test_inspect_shows_the_inside_of_model_and_artifact(digits: Path, arguments: list[str], words: str) -> None:
    assert words in succeed("inspect", digits, *arguments).out
    assert words in succeed("inspect", DIGITS, "--dim", "batch=2", *arguments).out


def test_inspect_shows_the_hlo_after_one_pass(digits: Path) -> None:
    text = succeed("inspect", DIGITS, "--dim", "batch=2", "--after", "merge-common-subexpressions").out
    assert "convolution(" in text and "fusion(" not in text
    ended = onnxla("inspect", digits, "--after", "merge-common-subexpressions")
    assert ended.code == 2 and "give the model" in ended.err


def test_a_gpu_needs_no_gpu_to_compile_for(tmp_path: Path) -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    artifact = tmp_path / "r.onnxla"
    succeed(
        "compile", relu_model(tmp_path / "r.onnx"), "--target", "gpu", "--option", "target_gpu=sm_90", "-o", artifact
    )
    assert "__global__" in succeed("inspect", artifact, "--show", "cuda").out
    assert succeed("inspect", artifact, "--json").json["cpu"] == "sm_90"


def test_explain_describes_a_model_that_compiles() -> None:
    ended = succeed("explain", DIGITS, "--dim", "batch=1")
    assert "10 nodes, 7 operators, opset ai.onnx 17" in ended.out and "every node can be imported" in ended.out


def test_explain_takes_open_dimensions_as_one(tmp_path: Path) -> None:
    ended = succeed("explain", DIGITS)
    assert "dimensions without a size are taken as 1: batch=1" in ended.out and "every node" in ended.out
    model = save_model(tmp_path / "m.onnx", helper.make_node("NonZero", ["x"], ["y"]), x=("n",), y=TensorProto.INT64)
    document = onnxla("explain", model, "--json").json
    assert document["assumed_sizes"] == {"n": "1"}
    assert [p["kind"] for p in document["problems"]] == ["DynamicShapeError"]
    assert "sizes of 1 may be the reason" in onnxla("explain", model).out


def test_ops_is_the_coverage_table() -> None:
    rows = succeed("ops", "squeeze", "--json").json
    assert {(row["domain"], row["operator"]) for row in rows} >= {("ai.onnx", "Squeeze"), ("ai.onnx", "Unsqueeze")}
    assert "Conv" in succeed("ops").out


def test_opt_runs_passes_on_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "m.hlo"
    file.write_text(HLO)
    assert "multiply(" in succeed("opt", file).out
    assert "fusion(" in succeed("opt", file, "--passes", "simplify,fuse-instructions").out
    assert "simplify" in succeed("opt", "--list").out
    ended = onnxla("opt", file, "--passes", "magic")
    assert ended.code == 2 and "no pass is called 'magic'; the passes are" in ended.err
    file.write_text("ENTRY broken {")
    assert onnxla("opt", file).code == 2


def test_replay_runs_text_against_the_interpreter(tmp_path: Path) -> None:
    file = tmp_path / "m.hlo"
    file.write_text(HLO)
    assert "agrees" in succeed("replay", file).out
    text = "HloModule m\nENTRY main {\n  %x = f32[64] parameter(0)\n  %w = f32[64] constant({...})\n"
    file.write_text(text + "  ROOT %y = f32[64] add(%x, %w)\n}\n")
    assert succeed("replay", file, "--json").json["random_constants"] == ["main/w"]
    write_outputs(tmp_path / "w.npz", {"main/w": np.ones(64, np.float32)})
    assert succeed("replay", file, "--weights", tmp_path / "w.npz", "--json").json["random_constants"] == []


def test_every_stage_of_a_dump_computes_what_the_model_does(tmp_path: Path) -> None:
    dump = tmp_path / "dump"
    succeed("compile", DIGITS, "--dim", "batch=2", "-o", tmp_path / "d.onnxla", "--dump-to", dump)
    images = {"image": np.random.default_rng(0).random((2, 1, 8, 8), np.float32)}
    expected = api.load_compiled(tmp_path / "d.onnxla").run(None, images)
    stages = sorted(dump.glob("*.hlo"))
    assert len(stages) > 3
    for stage in stages:
        model = api.compile(stage)
        (name,) = (t.name for t in model.get_inputs())
        for ours, wanted in zip(model.run(None, {name: images["image"]}), expected, strict=True):
            np.testing.assert_allclose(ours, wanted, rtol=1e-5, atol=1e-6)
    for stage in (stages[0], stages[-1]):
        assert succeed("replay", stage, "--json").json["random_constants"] == []


def test_opt_reads_the_weights_of_a_dump_and_writes_those_it_makes(tmp_path: Path) -> None:
    dump, folded = tmp_path / "dump", tmp_path / "folded.hlo"
    succeed("compile", DIGITS, "--dim", "batch=1", "-o", tmp_path / "d.onnxla", "--dump-to", dump)
    first = dump / "00-input.hlo"
    assert succeed("opt", first, "--passes", "simplify,fold-constants", "-o", folded).out == ""
    assert "constant({...})" in folded.read_text()
    assert succeed("replay", folded, "--json").json["random_constants"] == []
    image = np.random.default_rng(0).random((1, 1, 8, 8), np.float32)
    for ours, wanted in zip(*(api.compile(f)(image) for f in (folded, first)), strict=True):
        np.testing.assert_allclose(ours, wanted, rtol=1e-5, atol=1e-6)


def test_doctor_names_cpu_and_libraries() -> None:
    found = succeed("doctor", "--json").json
    assert found["onnxla"]["version"] == __version__
    assert found["cpu"]["cpus"] >= 1 and "onnxruntime" in found["libraries"]
    libraries = {"cuda-bindings", "nvidia-cuda-nvrtc", "nvmath-python", "nvidia-cublas"}
    assert set(found["gpu"]) <= {"devices", "missing", "driver"} | libraries
    assert "features" in succeed("doctor").out


def test_the_module_is_the_command() -> None:
    ended = subprocess.run([sys.executable, "-m", "onnxla", "--version"], capture_output=True, text=True, check=True)
    assert ended.stdout == f"onnxla {__version__}\n"


def test_an_artifact_runs_without_onnx_and_the_compiler(digits: Path) -> None:
    program = (
        "import sys\n"
        "from onnxla.cli.main import run_command_line\n"
        f"assert run_command_line(['run', {str(digits)!r}]) == 0\n"
        "print(' '.join(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(run.stdout.splitlines()[-1].split())
    assert not loaded & {
        "onnx",
        "onnxruntime",
        "onnxla.compiler",
        "onnxla.frontends",
        "onnxla.passes",
        "onnxla.codegen",
    }


def test_help_lists_the_exit_codes() -> None:
    assert "Exit codes" in succeed("--help").out
