"""A compiled model as a library for C and C++: archive, header, and a shared library where a C compiler is found.

The objects are those of the artifact. Their symbols get the library's name in front, so that several models fit in one
program; the thread pool keeps its names and is shared. Beside libc, libm and libpthread nothing is needed.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from onnxla.ahead.archive import archive
from onnxla.ahead.build_files import cmake_config, pkg_config
from onnxla.ahead.cpu_check import cpu_check
from onnxla.ahead.header import c_header, c_identifier, taken_by
from onnxla.ahead.objects import data_object, flags_of, rename_symbols
from onnxla.ahead.wasm import is_wasm, wasm_module
from onnxla.codegen.cpu.compile_llvm import compile_module
from onnxla.codegen.cpu.target import Target, named_target
from onnxla.errors import ArtifactError, DeviceError, FileError, InputError
from onnxla.files import write_file
from onnxla.runtime.elf import read_object
from onnxla.runtime.model import CompiledModel
from onnxla.runtime.program import GPU_TRIPLE, Program
from onnxla.runtime.results import TensorResult

_PREFIX = "onnxla_"
_POOL = ("onnxla_parallel_for", "onnxla_pool_")
_MOST_WEIGHTS = 1900 << 20
"""Code reaches its weights by a distance of 32 bits."""
_GLUE = """
@{name}_weights = external hidden global i8
declare void @{name}_program(ptr, ptr, ptr, ptr, ptr)
declare ptr @aligned_alloc(i64, i64)
declare void @free(ptr)

define i64 @{name}_arena_bytes() {{
  ret i64 {arena}
}}

define i32 @{name}_run_in(ptr %inputs, ptr %outputs, ptr %arena, i64 %threads) {{
  %fits = call i32 @{name}_cpu_fits()
  %foreign = icmp eq i32 %fits, 0
  br i1 %foreign, label %refused, label %go
refused:
  ret i32 2
go:
  %context = alloca {{ i64, ptr }}, align 8
  store i64 %threads, ptr %context
  %profile = getelementptr i8, ptr %context, i64 8
  store ptr null, ptr %profile
  call void @{name}_program(ptr %inputs, ptr %outputs, ptr @{name}_weights, ptr %arena, ptr %context)
  ret i32 0
}}

define i32 @{name}_run(ptr %inputs, ptr %outputs, i64 %threads) {{
  %arena = call ptr @aligned_alloc(i64 64, i64 {arena})
  %none = icmp eq ptr %arena, null
  br i1 %none, label %failed, label %go
go:
  %status = call i32 @{name}_run_in(ptr %inputs, ptr %outputs, ptr %arena, i64 %threads)
  call void @free(ptr %arena)
  ret i32 %status
failed:
  ret i32 1
}}
"""


@dataclass(frozen=True)
class Library:
    """What was written."""

    files: tuple[Path, ...]
    undefined: tuple[str, ...]
    """Symbols that the linker finds elsewhere: libc, libm, libpthread."""
    code_bytes: int
    weights_bytes: int
    arena_bytes: int


def write_library(model: CompiledModel, folder: str | os.PathLike[str], name: str) -> Library:
    """Write `lib<name>.a`, `<name>.h`, `<name>.pc`, `<name>-config.cmake` and, where there is a C compiler for the
    machine, `lib<name>.so` to `folder`.

    The model must be compiled for one set of shapes. Raises InputError for a name that is no C identifier or that C
    has already, or a model without code, DeviceError for one of a GPU, ArtifactError where its results are no plain
    arrays or a file cannot be written.
    """
    if not name or c_identifier(name) != name:
        raise InputError(f"{name!r} is no C identifier: choose letters, digits and underscores, no keyword")
    if taken := taken_by(name):
        raise InputError(f"{name!r} is {taken}: choose another name")
    program = _only_program(model)
    if is_wasm(program):
        return _write_wasm(Path(folder), name, program)
    machine = read_object(program.objects[0]).machine
    target = Target(program.triple, program.cpu, program.features)
    objects = {f"code{k}.o": _renamed(data, name) for k, data in enumerate(program.objects)}
    glue = _GLUE.format(name=name, arena=max(-(-program.arena_bytes // 64) * 64, 64))
    glue += cpu_check(name, program.features, target.is_x86)
    objects["entry.o"] = compile_module(glue, _any_cpu_like(target))
    flags = flags_of(program.objects[0])
    objects["weights.o"] = data_object(machine, flags, f"{name}_weights", program.weights.data.cast("B") or b"\0")
    objects["pool.o"] = program.thread_pool
    try:
        files = _write_files(Path(folder), name, program, archive(objects))
    except OSError as error:
        raise FileError(f"cannot write {error.filename or folder}: {error.strerror or error}") from error
    return Library(
        files,
        _undefined(list(objects.values())),
        sum(len(data) for member, data in objects.items() if member != "weights.o"),
        program.weights.nbytes,
        program.arena_bytes,
    )


def _write_wasm(folder: Path, name: str, program: Program) -> Library:
    """`<name>.wasm`."""
    module = wasm_module(name, program, Target(program.triple, program.cpu, program.features))
    path = folder / f"{name}.wasm"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_file(path, module)
    except OSError as error:
        raise FileError(f"cannot write {error.filename or folder}: {error.strerror or error}") from error
    code_bytes = len(module) - program.weights.nbytes
    return Library((path,), (), code_bytes, program.weights.nbytes, program.arena_bytes)


def _any_cpu_like(target: Target) -> Target:
    """A target of the same architecture whose code every CPU of it runs: what asks for features must not need them."""
    return named_target("x86-64") if target.is_x86 else target


def _only_program(model: CompiledModel) -> Program:
    if len(model.programs) != 1:
        raise InputError(
            f"the model has code for {len(model.programs)} sets of shapes, a library holds one; give every open "
            "dimension one size (--dim, --shape)"
        )
    (program,) = model.programs
    if program.triple == GPU_TRIPLE:
        raise DeviceError("a library for C holds CPU code; compile with target cpu")
    if program.state or program.vocabularies or not all(isinstance(r, TensorResult) for r in program.results):
        raise ArtifactError("a library for C has arrays only: no variables, maps, sequences or strings")
    if program.weights.nbytes > _MOST_WEIGHTS:
        raise ArtifactError(f"weights of {program.weights.nbytes} bytes; a library holds up to {_MOST_WEIGHTS}")
    return program


def _renamed(data: bytes, name: str) -> bytes:
    def new_name(symbol: str) -> str:
        if not symbol.startswith(_PREFIX) or symbol.startswith(_POOL):
            return symbol
        # the program's own entry makes way for the one that C calls
        return f"{name}_program" if symbol == "onnxla_run" else f"{name}_{symbol.removeprefix(_PREFIX)}"

    return rename_symbols(data, new_name)


def _undefined(objects: Sequence[bytes]) -> tuple[str, ...]:
    symbols = [s for data in objects for s in read_object(data).symbols if s.is_global]
    defined = {s.name for s in symbols if s.section is not None}
    return tuple(sorted({s.name for s in symbols if s.section is None} - defined))


def _write_files(folder: Path, name: str, program: Program, library: bytes) -> tuple[Path, ...]:
    folder.mkdir(parents=True, exist_ok=True)
    static, header = folder / f"lib{name}.a", folder / f"{name}.h"
    package, config = folder / f"{name}.pc", folder / f"{name}-config.cmake"
    write_file(static, library)
    write_file(header, c_header(name, program))
    write_file(package, pkg_config(name))
    write_file(config, cmake_config(name))
    shared = _link_shared(static, folder / f"lib{name}.so", program.triple)
    return (static, header, package, config, *shared)


def _link_shared(static: Path, shared: Path, triple: str) -> tuple[Path, ...]:
    """The shared library, where the compiler at hand is one for the machine; else nothing."""
    compiler = shutil.which("cc")
    if compiler is None:
        return ()
    with tempfile.TemporaryDirectory() as scratch:
        made = Path(scratch) / shared.name
        whole = ["-Wl,--whole-archive", str(static), "-Wl,--no-whole-archive"]
        command = [compiler, "-shared", "-o", str(made), *whole, "-lm", "-lpthread"]
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode or not made.exists():
            return ()
        write_file(shared, made.read_bytes())
    return (shared,)
