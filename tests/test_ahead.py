"""A compiled model as a C library: by our own linker, by a C compiler, two in one program, and for other machines."""

import ctypes
import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from typer.testing import CliRunner

import onnxla
from onnxla.ahead import cpu_check
from onnxla.ahead.header import c_header, c_identifier, library_name
from onnxla.ahead.library import write_library
from onnxla.ahead.reserved_names import DECLARED, KEYWORDS, MACROS
from onnxla.ahead.wasm import LINKER
from onnxla.cli.main import app
from onnxla.codegen.cpu.target import LEVELS
from onnxla.errors import ArtifactError, InputError
from onnxla.runtime.elf import AARCH64, X86_64, read_object
from onnxla.runtime.loader import NativeLibrary
from onnxla.runtime.model import CompiledModel
from onnxla.runtime.tensors import Array, TensorSignature

RISCV = 243
"""Of e_machine; our own linker knows no RISC-V, C's do."""

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler here")


def network(columns: int = 5, cpu: str = "host") -> CompiledModel:
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
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    return onnxla.compile(model, options={"target_cpu": cpu})


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


EXPECTED_INPUT = (np.arange(120) % 7 - 3).astype(np.float32).reshape(3, 40)


def check_printed(printed: str, model: CompiledModel, rtol: float) -> None:
    """What `MAIN` prints is what Python gives."""
    y, i = model.run(None, {"x": EXPECTED_INPUT})
    words = printed.split()
    np.testing.assert_allclose(np.array(words[:15], np.float32), y.ravel(), rtol=rtol, atol=1e-5)
    assert [int(n) for n in words[15:]] == i.tolist()


@pytest.mark.parametrize("architecture", ["aarch64", "riscv64"])
def test_a_program_for_another_machine_gives_pythons_numbers(tmp_path: Path, architecture: str) -> None:
    """Linked by Debian's cross compiler, run by QEMU, on two threads."""
    compiler, emulator = f"{architecture}-linux-gnu-gcc", f"qemu-{architecture}"
    if shutil.which(compiler) is None or shutil.which(emulator) is None:
        pytest.skip(f"no {compiler} or no {emulator} here")
    library = write_library(network(cpu=f"generic-{architecture}"), tmp_path, "network")
    assert tmp_path / "libnetwork.so" not in library.files
    (tmp_path / "main.c").write_text(MAIN)
    command = [compiler, "-static", "-Wall", "-Werror", "main.c", "libnetwork.a", "-lm", "-lpthread", "-o", "main"]
    subprocess.run(command, cwd=tmp_path, check=True)
    printed = subprocess.run([emulator, "./main"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    check_printed(printed, network(), 1e-5)


@needs_compiler
@pytest.mark.parametrize(
    ("cpu", "machine", "fits"),
    [
        ("x86-64", "Nehalem", True),
        ("x86-64-v3", "Nehalem", False),
        ("x86-64-v3", "Haswell", True),
        ("x86-64-v4", "Haswell", False),
    ],
)
def test_a_cpu_that_lacks_what_the_code_needs_is_told(tmp_path: Path, cpu: str, machine: str, fits: bool) -> None:
    """An error, where the first instruction of AVX would end the program."""
    if shutil.which("qemu-x86_64") is None:
        pytest.skip("no qemu-x86_64 here")
    write_library(network(cpu=cpu), tmp_path, "network")
    (tmp_path / "main.c").write_text(MAIN.replace("return 1;", "return 40 + network_cpu_fits();"))
    subprocess.run(["cc", "main.c", "libnetwork.a", "-lm", "-lpthread", "-o", "main"], cwd=tmp_path, check=True)
    done = subprocess.run(["qemu-x86_64", "-cpu", machine, "./main"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == (0 if fits else 40), done.stderr
    if fits:
        check_printed(done.stdout, network(), 1e-5)


def test_every_feature_of_the_levels_is_asked_for() -> None:
    """But those that all x86-64 CPUs have."""
    asked = {feature for bits in cpu_check._BITS.values() for feature in bits}
    for level in ("x86-64-v2", "x86-64-v3", "x86-64-v4"):
        assert set(LEVELS[level]) - set(LEVELS["x86-64"]) <= asked
    text = cpu_check.cpu_check("net", LEVELS["x86-64-v4"], True)
    assert text.count("xgetbv") == 1 and str(cpu_check._YMM | cpu_check._ZMM) in text


@needs_compiler
def test_cmake_finds_the_library(tmp_path: Path) -> None:
    if shutil.which("cmake") is None:
        pytest.skip("no cmake here")
    write_library(network(), tmp_path / "net with space", "network")
    (tmp_path / "main.c").write_text(MAIN)
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(user C)\nfind_package(network CONFIG REQUIRED)\n"
        "add_executable(main main.c)\ntarget_link_libraries(main network::network)\n"
    )
    folder = f"-Dnetwork_DIR={tmp_path / 'net with space'}"
    for command in (["cmake", "-S", ".", "-B", "build", folder], ["cmake", "--build", "build"]):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    printed = subprocess.run(["build/main"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    check_printed(printed, network(), 0)


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


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("int", "no C identifier"),
        ("co_await", "no C identifier"),
        ("errno", "no C identifier"),
        ("INT_MAX", "no C identifier"),
        ("printf", "a function or type of C or POSIX"),
        ("expf", "a function or type of C or POSIX"),
        ("size_t", "no C identifier"),
        ("pthread_t", "a function or type of C or POSIX"),
        ("math", r"math\.h of C or POSIX"),
        ("m", "libm of the C library"),
        ("pthread", "pthread"),
        ("onnxla_pool", "the thread pool of all libraries"),
        ("", "no C identifier"),
    ],
)
def test_names_that_c_has_are_refused(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        write_library(network(), tmp_path, name)
    assert not list(tmp_path.iterdir())
    assert name == "" or library_name(name) == f"v_{name}"


@pytest.mark.parametrize("language", ["c", "c++"])
@needs_compiler
def test_arrays_may_have_any_name_beside_the_headers_of_c(tmp_path: Path, language: str) -> None:
    """Words of the language, macros, functions and types, and the names of the header's own variables."""
    names = [*sorted(KEYWORDS | MACROS | DECLARED), "inputs", "threads", "network"]
    inputs = tuple(TensorSignature(name, "f32", (2,)) for name in names)
    program = replace(network().programs[0], inputs=inputs)
    headers = "assert complex errno fenv float inttypes iso646 limits math setjmp signal stdio stdlib string time"
    headers = headers if language == "c" else headers.replace("complex ", "")
    includes = "".join(f"#include <{name}.h>\n" for name in headers.split())
    (tmp_path / "main.c").write_text(f"{includes}{c_header('network', program)}")
    command = ["cc", "-x", language, "-fsyntax-only", str(tmp_path / "main.c")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]


def test_equal_models_give_equal_bytes(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        write_library(network(), tmp_path / folder, "network")
    for name in ("libnetwork.a", "network.h", "network.pc", "network-config.cmake"):
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
    assert sorted(os.listdir(tmp_path / "out")) == ["libnet.a", "net-config.cmake", "net.h", "net.pc"]


def test_the_command_names_machines_by_triples(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(open_model())
    arguments = ["aot", str(tmp_path / "model.onnx"), "--name", "net", "--dim", "n=9", "--triple"]
    for triple, machine in (("riscv64-linux-gnu", RISCV), ("aarch64-linux-gnu", AARCH64), ("x86_64-linux-gnu", X86_64)):
        result = CliRunner().invoke(app, [*arguments, triple, "-o", str(tmp_path / triple)])
        assert result.exit_code == 0, result.output
        parts = members(tmp_path / triple / "libnet.a")
        assert {read_object(data).machine for data in parts.values()} == {machine}
    if shutil.which(LINKER) is not None:
        result = CliRunner().invoke(app, [*arguments, "wasm32-unknown-unknown", "-o", str(tmp_path / "wasm")])
        assert result.exit_code == 0, result.output
        assert (tmp_path / "wasm" / "net.wasm").read_bytes().startswith(b"\0asm")
    for wrong in (["sparc64-linux-gnu"], ["riscv64-linux-gnu", "--cpu", "x86-64-v3"]):
        result = CliRunner().invoke(app, [*arguments, *wrong, "-o", str(tmp_path / "wrong")])
        assert result.exit_code and not (tmp_path / "wrong").exists()


def test_the_command_takes_an_artifact(tmp_path: Path) -> None:
    network().save(tmp_path / "network.onnxla")
    result = CliRunner().invoke(app, ["aot", str(tmp_path / "network.onnxla"), "-o", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "libnetwork.a" in result.output
    assert (tmp_path / "network.h").exists()


NODE = """
const fs = require("fs");
const { exports: net } = new WebAssembly.Instance(new WebAssembly.Module(fs.readFileSync("network.wasm")));
let top = Math.ceil(net.__heap_base.value / 64) * 64;
const take = (bytes) => { const place = top; top += Math.ceil(bytes / 64) * 64; return place; };
const x = take(4 * 120), y = take(4 * 15), i = take(8 * 3), inputs = take(4), outputs = take(8);
const arena = take(net.network_arena_bytes());
net.memory.grow(Math.max(0, Math.ceil((top - net.memory.buffer.byteLength) / 65536)));
const f32 = new Float32Array(net.memory.buffer), i32 = new Int32Array(net.memory.buffer);
for (let k = 0; k < 120; k++) f32[x / 4 + k] = (k % 7) - 3;
i32[inputs / 4] = x; i32[outputs / 4] = y; i32[outputs / 4 + 1] = i;
net.network_run_in(inputs, outputs, arena);
console.log(Array.from(f32.subarray(y / 4, y / 4 + 15)).join(" "));
console.log([0, 2, 4].map((k) => i32[i / 4 + k]).join(" "));
"""


def test_a_module_for_webassembly_gives_pythons_numbers_in_node(tmp_path: Path) -> None:
    """It imports nothing."""
    if shutil.which(LINKER) is None or shutil.which("node") is None:
        pytest.skip(f"no {LINKER} or no node here")
    library = write_library(network(cpu="wasm32"), tmp_path, "network")
    assert library.files == (tmp_path / "network.wasm",) and library.undefined == ()
    assert library.code_bytes < 20_000
    (tmp_path / "main.js").write_text(NODE)
    done = subprocess.run(["node", "main.js"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    check_printed(done.stdout, network(), 1e-5)


def test_webassembly_without_a_linker_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(ArtifactError, match="needs LLVM's linker wasm-ld"):
        write_library(network(cpu="wasm32"), tmp_path, "network")
    assert not list(tmp_path.iterdir())
