"""From a model to programs: one `Compiler` for a model, which makes a program for each set of input shapes.

import -> (cache) -> passes -> codegen -> Program
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from onnxla.codegen.cpu.backend import CompiledCode, compile_cpu
from onnxla.codegen.cpu.compile_llvm import assembly
from onnxla.codegen.cpu.target import Target, named_target
from onnxla.codegen.plan import Launch, memory_table, slots_of
from onnxla.config import CompileOptions
from onnxla.errors import DeviceError
from onnxla.hlo.fingerprint import fingerprint
from onnxla.hlo.graphviz import module_to_dot
from onnxla.hlo.module import Module
from onnxla.hlo.printer import print_module
from onnxla.hlo.types import Array
from onnxla.passes.pipelines import optimize
from onnxla.runtime.artifact import FORMAT_VERSION
from onnxla.runtime.cache import CacheKey, CompileCache
from onnxla.runtime.digest import digest_of_all
from onnxla.runtime.program import Program, Step
from onnxla.runtime.report import CompileReport
from onnxla.runtime.thread_pool_code import assemble_thread_pool
from onnxla.sources import Imported, Shapes, Source
from onnxla.version import __version__

Progress: TypeAlias = Callable[[str, float], None]
"""Told the name of each stage when it begins, and the part of the whole work that is done, from 0 to 1."""

_STAGES = {"import": 0.0, "cache": 0.1, "passes": 0.15, "codegen": 0.3, "done": 1.0}


class Compiler:
    """Compiles one model for as many shapes as wanted."""

    def __init__(self, source: Source, target: str, options: CompileOptions, progress: Progress | None = None) -> None:
        """Raises DeviceError for a target that is not known, ArtifactError for an unfit cache folder."""
        if target != "cpu":
            raise DeviceError(f"no target {target!r}; this version compiles for 'cpu'")
        self.source = source
        self.target: Target = named_target(options.target_cpu)
        self.options = options
        self.progress = progress
        self.cache = None if options.cache_dir is None else CompileCache(options.cache_dir, options.cache_bytes)
        self._made = 0

    def program(
        self,
        shapes: Shapes | None = None,
        dims: Mapping[str, int] | None = None,
        values: Mapping[str, Array] | None = None,
    ) -> tuple[Program, CompileReport]:
        """Compile for input shapes; `values` as for `Source.load`, with the same errors."""
        clock = _Clock(self.progress)
        with clock.stage("import"):
            imported = self.source.load(shapes or {}, dims or {}, values or {})
        text = print_module(imported.module)
        program = None
        if self.cache is not None:
            with clock.stage("cache"):
                key = self.cache_key(imported, text)
                program = self.cache.get(key)
        cached = program is not None
        if program is None:
            program = self._make(imported, text, clock)
            if self.cache is not None:
                self.cache.put(key, program)
        if self.progress is not None:
            self.progress("done", _STAGES["done"])
        return program, self._report(program, clock.seconds, cached)

    def cache_key(self, imported: Imported, text: str) -> CacheKey:
        """Everything that decides the program. The text counts for the names in it, the fingerprint for the weights."""
        return CacheKey(
            {
                "model": digest_of_all([text, fingerprint(imported.module)]),
                "signature": "; ".join(map(str, (*imported.inputs, "->", *imported.outputs))),
                "constants": digest_of_all(
                    part for name, value in sorted(imported.constants.items()) for part in (name, value.tobytes())
                ),
                "options": str(self.options.code_key()),
                "target": str(self.target),
                "version": f"{__version__}, format {FORMAT_VERSION}",
            }
        )

    def _make(self, imported: Imported, text: str, clock: "_Clock") -> Program:
        module, options = imported.module, self._options_of_next()
        with clock.stage("passes"):
            optimize(module, "cpu", options, clock.pass_begins)
        with clock.stage("codegen"):
            code = compile_cpu(module, self.target, options)
        texts = {
            "hlo": text,
            "optimized_hlo": print_module(module),
            "optimized_hlo_dot": module_to_dot(module),
            "plan": str(code.plan),
            "memory": memory_table(code.plan),
        }
        if options.dump_to is not None:
            _dump(Path(options.dump_to), texts, code, options.opt_level)
        return Program(
            inputs=imported.inputs,
            outputs=imported.outputs,
            objects=tuple(code.objects),
            thread_pool=assemble_thread_pool(self.target.triple),
            weights=code.weights,
            arena_bytes=code.arena_bytes,
            steps=_steps(code),
            triple=self.target.triple,
            cpu=self.target.cpu,
            features=self.target.features,
            constants=imported.constants,
            intermediate_bytes=code.plan.intermediate_bytes,
            instruction_count=_instruction_count(module),
            kernel_count=code.code.kernel_count,
            texts=texts,
        )

    def _options_of_next(self) -> CompileOptions:
        """The options, dumps of each further specialisation in a folder of its own."""
        self._made += 1
        if self.options.dump_to is None or self._made == 1:
            return self.options
        return replace(self.options, dump_to=os.path.join(self.options.dump_to, f"specialisation-{self._made}"))

    def _report(self, program: Program, seconds: dict[str, float], cached: bool) -> CompileReport:
        return CompileReport(
            nodes=self.source.nodes,
            instructions=program.instruction_count,
            kernels=program.kernel_count,
            steps=len(program.steps),
            arena_bytes=program.arena_bytes,
            intermediate_bytes=program.intermediate_bytes,
            weights_bytes=program.weights.nbytes,
            code_bytes=sum(map(len, program.objects)),
            seconds=seconds,
            from_cache=cached,
        )


class _Clock:
    """Times the stages, and tells the caller about them."""

    def __init__(self, progress: Progress | None) -> None:
        self.seconds: dict[str, float] = {}
        self._progress = progress

    def pass_begins(self, name: str) -> None:
        if self._progress is not None:
            self._progress(f"passes: {name}", _STAGES["passes"])

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        if self._progress is not None:
            self._progress(name, _STAGES[name])
        start = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - start


def _steps(code: CompiledCode) -> tuple[Step, ...]:
    return tuple(
        Step(
            name=step.name,
            op=step.opcode if isinstance(step, Launch) else type(step).__name__.lower(),
            source=str(step.node) if step.node else "",
            bytes=sum(slot.buffer.bytes for slot in slots_of(step)),
            flops=int(step.kernel.flops) if isinstance(step, Launch) else 0,
        )
        for step in code.plan.steps
    )


def _instruction_count(module: Module) -> int:
    return len(module.entry.instructions())


def _dump(folder: Path, texts: Mapping[str, str], code: CompiledCode, opt_level: int) -> None:
    """Write the texts of the stages, and LLVM IR and assembly of each object."""
    folder.mkdir(parents=True, exist_ok=True)
    for stage, text in texts.items():
        (folder / f"{stage}.txt").write_text(text)
    for number, text in enumerate(code.code.texts):
        (folder / f"code-{number:02d}.ll").write_text(text)
        (folder / f"code-{number:02d}.s").write_text(assembly(text, code.target, opt_level))
