"""A compiled model as one WebAssembly module, which imports nothing: code, weights, and a memory of its own.

LLVM's objects for WebAssembly are not ELF, so its linker (`wasm-ld`, of Debian's package lld) puts them together. There
are no threads: the module brings a pool that runs all tasks one after the other.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path

from onnxla.codegen.cpu.compile_llvm import compile_module
from onnxla.codegen.cpu.target import Target
from onnxla.errors import ArtifactError
from onnxla.files import write_file
from onnxla.runtime.pool_jobs import one_by_one
from onnxla.runtime.program import Program

LINKER = "wasm-ld"
_STACK_BYTES = 4 << 20
_MOST_WEIGHTS = 256 << 20
"""They pass through text on their way into an object."""
_GLUE = """
@weights = internal constant [{size} x i8] c"{bytes}", align 64
declare void @onnxla_run(ptr, ptr, ptr, ptr, ptr)

define i32 @clock_gettime(i32 %clock, ptr %time) {{
  ret i32 -1
}}

define i32 @{name}_arena_bytes() {{
  ret i32 {arena}
}}

define void @{name}_run_in(ptr %inputs, ptr %outputs, ptr %arena) {{
  %context = alloca {{ i64, ptr }}, align 8
  store i64 1, ptr %context
  %profile = getelementptr i8, ptr %context, i32 8
  store ptr null, ptr %profile
  call void @onnxla_run(ptr %inputs, ptr %outputs, ptr @weights, ptr %arena, ptr %context)
  ret void
}}
"""


def is_wasm(program: Program) -> bool:
    return program.triple.startswith("wasm32")


def wasm_module(name: str, program: Program, target: Target) -> bytes:
    """The module, which exports `memory`, `__heap_base`, `NAME_run_in` and `NAME_arena_bytes`. Raises ArtifactError."""
    if program.weights.nbytes > _MOST_WEIGHTS:
        raise ArtifactError(f"weights of {program.weights.nbytes} bytes; a module holds up to {_MOST_WEIGHTS}")
    linker = shutil.which(LINKER)
    if linker is None:
        raise ArtifactError(f"a module for WebAssembly needs LLVM's linker {LINKER} (Debian's package lld)")
    content = program.weights.tobytes() or b"\0"
    text = "".join(f"\\{byte:02x}" for byte in content)
    glue = one_by_one("onnxla_parallel_for", linkage="", more=", i64 %threads") + _GLUE.format(
        name=name, size=len(content), bytes=text, arena=max(-(-program.arena_bytes // 64) * 64, 64)
    )
    exports = [f"--export={symbol}" for symbol in (f"{name}_run_in", f"{name}_arena_bytes", "__heap_base")]
    with tempfile.TemporaryDirectory() as scratch:
        files = []
        for k, data in enumerate([compile_module(glue, target), *program.objects]):
            files.append(str(Path(scratch) / f"{k}.o"))
            write_file(files[-1], data)
        made = Path(scratch) / "module.wasm"
        options = ["--no-entry", "--gc-sections", "--strip-all", "--stack-first", "-z", f"stack-size={_STACK_BYTES}"]
        command = [linker, *options, *exports, "-o", str(made), *files]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ArtifactError(f"{LINKER} cannot link the module: {done.stderr.strip()}")
        return made.read_bytes()
