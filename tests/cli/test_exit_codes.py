"""The table of exit codes, held by every command; and names of models, which break no line of what is printed."""

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.cli.command import DIGITS, DIGITS_INPUT, onnxla, relu_model, save_model, succeed

BATCH = ("--dim", "batch=10")


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("artifact")
    succeed("compile", relu_model(folder / "relu.onnx"), "-o", folder / "relu.onnxla")
    return folder / "relu.onnxla"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return relu_model(tmp_path / "relu.onnx")


WRITERS = {
    "compile": ("compile", "{model}", "-o", "{out}"),
    "compile to a dump": ("compile", "{model}", "-o", "{here}/a.onnxla", "--dump-to", "{out}"),
    "run": ("run", "{model}", "-o", "{out}"),
    "validate": ("validate", "{model}", "--layers", "--html", "{out}"),
    "inspect": ("inspect", "{model}", "--html", "{out}"),
    "profile to a trace": ("profile", "{model}", "--runs", 1, "--trace", "{out}"),
    "opt": ("opt", "{text}", "-o", "{out}"),
    "aot": ("aot", "{model}", "-o", "{out}"),
    "debug to a bundle": ("debug", "{model}", "--bundle", "{out}"),
}


@pytest.mark.parametrize("command", WRITERS.values(), ids=WRITERS.keys())
def test_an_output_that_cannot_be_written_is_2(command: tuple[object, ...], model: Path) -> None:
    """Below a file there is no folder; the message has the name that was given, and no other one."""
    (model.parent / "file").write_text("")
    (model.parent / "text.hlo").write_text("HloModule m\n\nENTRY e {\n  ROOT %x = f32[2]{0} parameter(0)\n}\n")
    out = model.parent / "file" / "out"
    places = {"model": model, "out": out, "here": model.parent, "text": model.parent / "text.hlo"}
    ended = onnxla(*(str(part).format(**places) for part in command))
    assert ended.code == 2, ended.err
    assert str(out) in ended.err and ".out." not in ended.err and "Not a directory" in ended.err
    assert "Traceback" not in ended.err


READERS = ("compile", "run", "validate", "bench", "aot", "inspect", "profile", "explain", "debug", "opt", "replay")


@pytest.mark.parametrize("command", READERS)
def test_a_model_that_is_not_there_is_2(command: str, tmp_path: Path) -> None:
    for name in ("missing.onnx", "missing.onnxla", "missing.hlo"):
        ended = onnxla(command, tmp_path / name)
        assert ended.code == 2 and name in ended.err, ended.err


@pytest.mark.parametrize("command", ["run", "inspect", "profile", "aot"])
@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"nothing of ours"])
def test_a_file_called_onnxla_that_is_none_is_4(command: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "broken.onnxla"
    path.write_bytes(content)
    assert onnxla(command, path).code == 4
    assert onnxla("validate", relu_model(tmp_path / "relu.onnx"), "--compiled", path).code == 4


NAMES = {
    "a dimension": ("--dim", "typo=2"),
    "an input": ("--shape", "typo=2x2"),
    "a constant": ("--constant", "typo=1"),
    "a shape": ("--shape", "images=10x2x8x8"),
    "a rank": ("--shape", "images=10x1x8"),
    "a size": ("--dim", "batch=1.5"),
    "a knob": ("--option", "typo=1"),
    "a value of a knob": ("--option", "opt_level=9"),
}


COMPILERS = ("run", "validate", "bench", "aot", "inspect", "profile", "debug")
WRONG = [("compile", wrong) for wrong in NAMES.values()] + [(command, NAMES["a dimension"]) for command in COMPILERS]


@pytest.mark.parametrize(("command", "wrong"), WRONG, ids=lambda value: value if isinstance(value, str) else value[1])
def test_a_name_that_the_model_does_not_have_is_2(command: str, wrong: tuple[str, str]) -> None:
    """Nobody goes another way to the model than `compile` does."""
    ended = onnxla(command, DIGITS, *wrong)
    assert ended.code == 2, ended.err
    assert wrong[0] in ended.err or wrong[1].partition("=")[0] in ended.err
    assert "dims={" not in ended.err and "shapes={" not in ended.err


@pytest.mark.parametrize("command", ["explain", "cache explain"])
def test_what_only_looks_at_a_model_knows_its_names_too(command: str, tmp_path: Path) -> None:
    more = ("--folder", tmp_path) if command == "cache explain" else ()
    ended = onnxla(*command.split(), DIGITS, "--dim", "typo=2", *more)
    assert ended.code == 2 and "there is batch" in ended.err
    if more:
        ended = onnxla("cache", "explain", DIGITS, *more)
        assert ended.code == 2 and "give --dim batch=1" in ended.err


TOLERANCES = [("--rtol", "nan"), ("--rtol", "-1"), ("--atol", "inf"), ("--atol", "-0.1")]


@pytest.mark.parametrize("command", ["validate", "debug", "replay"])
@pytest.mark.parametrize("tolerance", TOLERANCES, ids=" ".join)
def test_a_tolerance_is_a_number_from_0_on(command: str, tolerance: tuple[str, str]) -> None:
    ended = onnxla(command, DIGITS, *tolerance)
    assert ended.code == 2 and f"{tolerance[0]}" in ended.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", DIGITS, "--seed", "-1"),
        ("bench", DIGITS, "--burst", "nan"),
        ("bench", DIGITS, "--threads", "0"),
        ("debug", DIGITS, "--seconds", "nan"),
        ("debug", DIGITS, "--bundle", "b.zip", "--random-weights", "-1"),
        ("cache", "prune", "--unused-days", "nan"),
        ("compile", DIGITS, "--option", "compile_timeout=nan"),
        ("compile", DIGITS, "--option", "folding_bytes=-1"),
    ],
    ids=lambda arguments: " ".join(map(str, arguments[-2:])),
)
def test_other_numbers_are_sensible_too(arguments: tuple[str, ...]) -> None:
    assert onnxla(*arguments).code == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ("compile", ""),
        ("compile", DIGITS, "-o", ""),
        ("compile", DIGITS, "--output="),
        ("run", "", "--input", ""),
        ("aot", DIGITS, "--name", ""),
        ("cache", "list", "--folder", ""),
    ],
    ids=str,
)
def test_an_empty_argument_is_no_name(arguments: tuple[str, ...]) -> None:
    ended = onnxla(*arguments)
    assert ended.code == 2 and ("an argument is empty, behind" in ended.err or "nothing behind it" in ended.err)


def test_files_of_inputs_without_arrays(tmp_path: Path, model: Path) -> None:
    np.savez(tmp_path / "empty.npz")
    np.save(tmp_path / "one.npy", np.zeros(4, np.float32))
    os.rename(tmp_path / "one.npy", tmp_path / "one.npz")
    (tmp_path / "bytes.npz").write_bytes(b"")
    for name, said in (("empty", "holds no arrays"), ("one", "is one array"), ("bytes", "cannot be read")):
        ended = onnxla("run", model, "-i", tmp_path / f"{name}.npz")
        assert ended.code == 2 and said in ended.err


def test_a_size_given_twice_is_compiled_once(tmp_path: Path) -> None:
    assert succeed("compile", DIGITS, "--dim", "batch=8,8", "-o", tmp_path / "a.onnxla", "--json").json["programs"] == 1


def test_the_cache_explains_each_of_several_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONNXLA_CACHE_DIR", str(tmp_path / "cache"))
    open_model = save_model(tmp_path / "m.onnx", helper.make_node("Relu", ["x"], ["y"]), x=("n", 3))
    succeed("compile", open_model, "--dim", "n=2", "-o", tmp_path / "a.onnxla")
    found = succeed("cache", "explain", open_model, "--dim", "n=2,5", "--json").json
    assert not found["hit"] and [(s["dims"], s["hit"]) for s in found["sizes"]] == [({"n": 2}, True), ({"n": 5}, False)]
    text = succeed("cache", "explain", open_model, "--dim", "n=2,5").out
    assert text.index("n=2\nhit\n") < text.index("n=5\nmiss: ")


# Names of models

HOSTILE = "in\nExit code 0\x1b[2J\tput"
PLAIN = r"in\nExit code 0\x1b[2J\tput"


def hostile_model(path: Path, *nodes: onnx.NodeProto, size: int | str = 4) -> Path:
    nodes = nodes or (helper.make_node("Relu", [HOSTILE], [f"out{HOSTILE}"], f"node{HOSTILE}"),)
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(HOSTILE, TensorProto.FLOAT, [size])],
        [helper.make_tensor_value_info(f"out{HOSTILE}", TensorProto.FLOAT, None)],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    return path


def require_one_line(text: str) -> None:
    assert "in\nExit" not in text and "\x1b" not in text and "Exit code 0" in text
    assert not any(line.strip().startswith("Exit code 0") for line in text.splitlines())


@pytest.mark.parametrize(
    "command",
    [
        ("compile", "-o", "{folder}/m.onnxla"),
        ("run",),
        ("run", "--profile"),
        ("run", "--input", DIGITS_INPUT),
        ("validate",),
        ("validate", "--layers"),
        ("inspect",),
        ("inspect", "--show", "kernels"),
        ("inspect", "--roofline"),
        ("profile", "--runs", "1"),
        ("explain",),
        ("compile", "--shape", "{name}=7"),
        ("debug",),
    ],
    ids=" ".join,
)
def test_names_stay_in_their_line(command: tuple[str, ...], tmp_path: Path) -> None:
    model = hostile_model(tmp_path / "m.onnx")
    arguments = (part.format(folder=tmp_path, name=HOSTILE) for part in command[1:])
    ended = onnxla(command[0], model, *arguments)
    if command[0] == "debug":  # which finds nothing and names nothing but random inputs
        assert ended.code == 0
    require_one_line(ended.out + ended.err)


def test_names_of_dimensions_and_operators_too(tmp_path: Path) -> None:
    opened = hostile_model(tmp_path / "open.onnx", size=f"dim{HOSTILE}")
    for command in ("run", "inspect", "profile", "explain"):
        ended = onnxla(command, opened)
        require_one_line(ended.out + ended.err)
    nodes = (helper.make_node(f"Op{HOSTILE}", [HOSTILE], [f"out{HOSTILE}"], f"node{HOSTILE}", domain="d"),)
    unknown = hostile_model(tmp_path / "unknown.onnx", *nodes)
    for arguments in (("compile",), ("explain",), ("explain", "--fallback", "onnxruntime")):
        ended = onnxla(arguments[0], unknown, *arguments[1:])
        require_one_line(ended.out + ended.err)


def test_names_in_an_artifact_too(tmp_path: Path) -> None:
    path = tmp_path / "m.onnxla"
    succeed("compile", hostile_model(tmp_path / "m.onnx"), "-o", path)
    for arguments in (("run",), ("inspect",), ("inspect", "--show", "kernels"), ("run", "--input", DIGITS_INPUT)):
        ended = onnxla(arguments[0], path, *arguments[1:])
        require_one_line(ended.out + ended.err)


def test_names_of_one_command_are_forgotten_by_the_next(tmp_path: Path) -> None:
    succeed("explain", hostile_model(tmp_path / "m.onnx"))
    onnx_model = save_model(tmp_path / "n.onnx", helper.make_node("Relu", ["x"], ["y"]))
    assert len(succeed("explain", onnx_model).out.splitlines()) > 3
