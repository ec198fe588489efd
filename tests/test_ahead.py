"""A compiled model as a C library: by our own linker, by a C compiler, two in one program, and for other machines."""

import ctypes
import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from typer.testing import CliRunner

import onnxla
from onnxla.ahead.header import c_header, c_identifier
from onnxla.ahead.library import write_library
from onnxla.cli.main import app
from onnxla.errors import InputError
from onnxla.runtime.elf import AARCH64, read_object
from onnxla.runtime.loader import NativeLibrary
from onnxla.runtime.model import CompiledModel
from onnxla.runtime.program import Array

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler here")


def network(columns: int = 5) -> CompiledModel:
    """y = relu(x @ w), i = argmax(y), for x of [3, 40]."""
    weights = np.random.default_rng(columns).standard_normal((40, columns)).astype(np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["product"]),
        helper.make_node("Relu", ["product"], ["y"]),
        helper.make_node("ArgMax", ["y"], ["i"], axis=1, keepdims=0),
    ]
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 40])],
        [
            helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, columns]),
            helper.make_tensor_value_info("i", TensorProto.INT64, [3]),
        ],
        [numpy_helper.from_array(weights, "w")],
    )
    return onnxla.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))


def members(library: Path) -> dict[str, bytes]:
    """The object files of an archive."""
    data = library.read_bytes()
    assert data.startswith(b"!<arch>\n")
    found, at = {}, 8
    while at < len(data):
        name, size = data[at : at + 16].decode().strip(), int(data[at + 48 : at + 58])
        found[name] = data[at + 60 : at + 60 + size]
        at += 60 + size + size % 2
    return {name.removesuffix("/"): content for name, content in found.items() if name != "/"}


def call(library: NativeLibrary, name: str, x: Array, columns: int) -> tuple[Array, Array]:
    y, i = np.zeros((3, columns), np.float32), np.zeros(3, np.int64)
    inputs = (ctypes.c_void_p * 1)(x.ctypes.data)
    outputs = (ctypes.c_void_p * 2)(y.ctypes.data, i.ctypes.data)
    entry = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(library[f"{name}_run"])
    assert entry(inputs, outputs, 2) == 0
    return y, i


def test_two_libraries_in_one_program_give_what_the_models_give(tmp_path: Path) -> None:
    x = np.random.default_rng(0).standard_normal((3, 40)).astype(np.float32)
    objects: dict[str, bytes] = {}
    models = {"first": network(5), "second": network(7)}
    for name, model in models.items():
        write_library(model, tmp_path, name)
        parts = members(tmp_path / f"lib{name}.a")
        assert "pool.o" in parts
        objects |= {part if part == "pool.o" else f"{name}/{part}": data for part, data in parts.items()}
    library = NativeLibrary(objects.values(), {})
    for (name, model), columns in zip(models.items(), (5, 7), strict=True):
        for ours, expected in zip(call(library, name, x, columns), model.run(None, {"x": x}), strict=True):
            np.testing.assert_array_equal(ours, expected)


def test_nothing_but_libc_and_threads_is_needed(tmp_path: Path) -> None:
    undefined = write_library(network(), tmp_path, "network").undefined
    libc = {"aligned_alloc", "free", "memcpy", "memset", "memmove", "clock_gettime", "getpid"}
    assert {s for s in undefined if not s.startswith(("pthread_", "sched_"))} <= libc


MAIN = r"""
#include <stdio.h>
#include <stdlib.h>
#include "network.h"
int main(void) {
  float x[3 * 40], y[15];
  int64_t i[3];
  for (int k = 0; k < 120; k++) x[k] = (float)(k % 7) - 3;
  if (network(x, y, i, 2)) return 1;
  void *arena = aligned_alloc(64, network_arena_bytes());
  const void *const inputs[] = {x};
  float again[15];
  void *const outputs[] = {again, i};
  network_run_in(inputs, outputs, arena, 1);
  for (int k = 0; k < 15; k++) {
    if (y[k] != again[k]) return 2;
    printf("%.9g ", y[k]);
  }
  printf("%d %d %d\n", (int)i[0], (int)i[1], (int)i[2]);
  free(arena);
  return 0;
}
"""


@needs_compiler
@pytest.mark.parametrize("language", ["c", "c++"])
@pytest.mark.parametrize("shared", [False, True])
def test_a_program_in_c_gives_pythons_numbers(tmp_path: Path, language: str, shared: bool) -> None:
    if language == "c++" and shutil.which("c++") is None:
        pytest.skip("no C++ compiler here")
    model = network()
    library = write_library(model, tmp_path, "network")
    assert tmp_path / "libnetwork.so" in library.files
    (tmp_path / "main.c").write_text(MAIN)
    kept = ["-L.", "-lnetwork", "-Wl,-rpath,."] if shared else ["-x", "none", "libnetwork.a"]
    compiler = "cc" if language == "c" else "c++"
    command = [
        compiler,
        "-Wall",
        "-Wextra",
        "-Werror",
        "-x",
        language,
        "main.c",
        *kept,
        "-lm",
        "-lpthread",
        "-o",
        "main",
    ]
    subprocess.run(command, cwd=tmp_path, check=True)
    printed = subprocess.run(["./main"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout.split()
    x = (np.arange(120) % 7 - 3).astype(np.float32).reshape(3, 40)
    y, i = model.run(None, {"x": x})
    np.testing.assert_array_equal(np.array(printed[:15], np.float32), y.ravel())
    assert [int(n) for n in printed[15:]] == i.tolist()


def test_the_header_names_every_array() -> None:
    program = network().programs[0]
    text = c_header("network", program)
    assert "static inline int network(const float *x, float *y, int64_t *v_i, int64_t threads)" not in text
    assert "static inline int network(const float *x, float *y, int64_t *i, int64_t threads)" in text
    assert "x: f32[3, 40]" in text


@pytest.mark.parametrize(
    ("name", "identifier"),
    [("x", "x"), ("input:0", "input_0"), ("2nd", "v_2nd"), ("float", "v_float"), ("", "v_"), ("größe", "gr__e")],
)
def test_names_become_identifiers(name: str, identifier: str) -> None:
    assert c_identifier(name) == identifier


def test_equal_models_give_equal_bytes(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        write_library(network(), tmp_path / folder, "network")
    for name in ("libnetwork.a", "network.h", "network.pc"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_what_is_no_library_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'my-net' is no C identifier"):
        write_library(network(), tmp_path, "my-net")
    with pytest.raises(InputError, match="'int' is no C identifier"):
        write_library(network(), tmp_path, "int")
    several = onnxla.compile(open_model(), dims={"n": [1, 2]})
    with pytest.raises(InputError, match="code for 2 sets of shapes, a library holds one"):
        write_library(several, tmp_path, "several")
    assert not list(tmp_path.iterdir())


def open_model() -> bytes:
    graph = helper.make_graph(
        [helper.make_node("Neg", ["x"], ["y"])],
        "open",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"])],
    )
    content: bytes = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()
    return content


def test_the_command_writes_a_library_for_another_machine(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(open_model())
    arguments = ["aot", str(tmp_path / "model.onnx"), "-o", str(tmp_path / "out"), "--name", "net", "--dim", "n=100"]
    result = CliRunner().invoke(app, [*arguments, "--option", "target_cpu=generic-aarch64", "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["weights_bytes"] >= 0
    parts = members(tmp_path / "out" / "libnet.a")
    assert {read_object(data).machine for data in parts.values()} == {AARCH64}
    assert sorted(os.listdir(tmp_path / "out")) == ["libnet.a", "net.h", "net.pc"]


def test_the_command_takes_an_artifact(tmp_path: Path) -> None:
    network().save(tmp_path / "network.onnxla")
    result = CliRunner().invoke(app, ["aot", str(tmp_path / "network.onnxla"), "-o", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "libnetwork.a" in result.output
    assert (tmp_path / "network.h").exists()
