"""From a model to programs: one `Compiler` for a model, which makes a program for each set of input shapes.

import -> (cache) -> passes -> codegen -> Program
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from onnxla import watch
from onnxla.codegen.choices import Decision, read_decisions
from onnxla.codegen.cpu.target import Target, host_target, named_target
from onnxla.codegen.gpu.compile_nvrtc import nvrtc_version
from onnxla.codegen.gpu.target import GpuTarget
from onnxla.codegen.plan import memory_table
from onnxla.compiler.cache_key import cache_key
from onnxla.compiler.clock import STAGES, TUNING_STAGES, Clock
from onnxla.compiler.dump import write_dump
from onnxla.compiler.made import made_for_cpu, made_for_gpu
from onnxla.compiler.sources import Imported, Shapes, Source
from onnxla.compiler.steps import profile_steps
from onnxla.config import GPU_PRECISIONS, CompileOptions
from onnxla.errors import DeviceError, InputError
from onnxla.hlo.graphviz import module_to_dot
from onnxla.hlo.module import Module
from onnxla.hlo.ops.structural import Constant
from onnxla.hlo.printer import print_module
from onnxla.hlo.types import Array
from onnxla.inside.inside import DECISIONS_STAGE
from onnxla.makers import compiler_digest, libraries
from onnxla.passes.pipelines import optimize
from onnxla.runtime.cache import CacheKey, CompileCache
from onnxla.runtime.program import Program
from onnxla.runtime.report import CompileReport, PassReport
from onnxla.runtime.thread_pool import default_threads

if TYPE_CHECKING:
    from onnxla.tuning.tuner import Tuned


class Compiled(NamedTuple):
    """What was made for one set of shapes."""

    program: Program
    report: CompileReport
    key: CacheKey | None
    """Under which the cache has it; None where it has not."""


class Compiler:
    """Compiles one model for as many shapes as wanted."""

    def __init__(self, source: Source, target: str, options: CompileOptions, threads: int | None = None) -> None:
        """`threads` are those that tuning measures with, by default all that a run would use.

        Raises DeviceError for a target that is not known, ArtifactError for an unfit cache folder.
        """
        if target not in ("cpu", "gpu"):
            raise DeviceError(f"no target {target!r}; there are 'cpu' and 'gpu'")
        if options.dump_to is not None:
            try:
                Path(options.dump_to).mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise InputError(f"dump_to: {options.dump_to} is no folder to write to: {error.strerror}") from error
        if target == "cpu" and options.precision in GPU_PRECISIONS:
            raise InputError(f"precision={options.precision!r} is for target='gpu'; leave it out for target='cpu'")
        if options.keep_f32 and options.precision not in GPU_PRECISIONS:
            raise InputError(
                f"keep_f32 is for precision {', '.join(GPU_PRECISIONS)}: precision={options.precision!r} rounds nothing"
            )
        if options.gpu_library not in ("", "cublaslt"):
            raise InputError(f"no library gpu_library={options.gpu_library!r}; there is 'cublaslt'")
        self.source = source
        self.target: Target | GpuTarget = (
            named_target(options.target_cpu)
            if target == "cpu"
            else GpuTarget.named(options.target_gpu, options.precision == "tf32", options.keep_f32)
        )
        self.options = options
        self.threads = threads or default_threads()
        if options.tune_seconds and self.target != host_target():
            raise InputError("tuning measures on this machine's CPU: leave out target='gpu' and target_cpu")
        self.cache = None if options.cache_dir is None else CompileCache(options.cache_dir, options.cache_bytes)
        self._made = 0

    def program(
        self,
        shapes: Shapes | None = None,
        dims: Mapping[str, int] | None = None,
        values: Mapping[str, Array] | None = None,
    ) -> Compiled:
        """Compile for input shapes; `values` as for `Source.load`, with the same errors."""
        clock = Clock(TUNING_STAGES if self.options.tune_seconds else STAGES)
        with clock.stage("import"):
            imported = self.source.load(shapes or {}, dims or {}, values or {})
        text = print_module(imported.module)
        program, key = None, None
        if self.cache is not None:
            with clock.stage("cache"):
                key = self.cache_key(imported, text)
                program = self.cache.get(key, lambda program: _is_made_of(program, imported))
        cached = program is not None
        if program is None:
            program = self._make(imported, text, clock)
            key = key if clock.is_final else None
            if self.cache is not None and key is not None:
                self.cache.put(key, program, self.source.name)
        return Compiled(program, self._report(program, clock, cached), key)

    def cache_key(self, imported: Imported, text: str) -> CacheKey:
        """Everything that decides the program that is made of `imported`, whose text is `text`."""
        tuned = f", tuned for {self.threads} threads" if self.options.tune_seconds else ""
        return cache_key(imported, text, self.options, f"{self.target}{_compiler_of(self.target)}{tuned}")

    def _make(self, imported: Imported, text: str, clock: Clock) -> Program:
        module, options = imported.module, self._options_of_next()
        with clock.stage("passes"):
            clock.passes = optimize(module, self.target.kind, options).records
        known: Mapping[str, Decision] = {}
        if options.tune_seconds:
            with clock.stage("tuning"):
                tuned = self._tuned(module)
            known, clock.is_final = tuned.decisions, tuned.is_complete
        with clock.stage("codegen"):
            made = (
                made_for_cpu(module, self.target, options, known)
                if isinstance(self.target, Target)
                else made_for_gpu(module, self.target)
            )
        texts = {
            "hlo": text,
            "optimized_hlo": print_module(module),
            "optimized_hlo_dot": module_to_dot(module),
            "plan": str(made.plan),
            "memory": memory_table(made.plan),
            **made.texts,
        }
        program = Program(
            inputs=imported.inputs,
            outputs=imported.outputs,
            state=imported.state,
            results=imported.results,
            vocabularies=imported.vocabularies,
            objects=made.objects,
            thread_pool=made.thread_pool,
            weights=made.weights,
            arena_bytes=made.plan.arena_bytes,
            steps=tuple(profile_steps(made.plan, made.symbols, self.target)),
            triple=made.triple,
            cpu=made.cpu,
            features=made.features,
            constants=imported.constants,
            intermediate_bytes=made.plan.intermediate_bytes,
            instruction_count=_instruction_count(module),
            kernel_count=len(set(made.symbols.values())),
            texts=texts,
        )
        if options.dump_to is not None:
            write_dump(Path(options.dump_to), program, made, module, self.source.name)
        return program

    def _tuned(self, module: Module) -> "Tuned":
        """Measure the ways there are to compute the kernels of a module, as long as the options say."""
        from onnxla.tuning.bench import measure
        from onnxla.tuning.memory import TuningMemory
        from onnxla.tuning.tuner import Tuner

        assert isinstance(self.target, Target)
        target, threads, level = self.target, self.threads, self.options.opt_level
        weights = _bytes_of_constants(module)
        cold = weights > target.l3_bytes
        memory = None
        if self.options.cache_dir is not None:
            where = f"{target}, {threads} threads, level {level}, weights {'cold' if cold else 'warm'}"
            memory = TuningMemory(Path(self.options.cache_dir), f"{where}, {compiler_digest()}, {libraries()}")
        tuner = Tuner(
            target, self.options.tune_seconds, lambda sites: measure(sites, target, threads, cold, level), memory
        )
        return tuner.tune(module, direct_only=self.options.precision == "highest")

    def _options_of_next(self) -> CompileOptions:
        """The options, dumps of each further specialisation in a folder of its own."""
        self._made += 1
        if self.options.dump_to is None or self._made == 1:
            return self.options
        return replace(self.options, dump_to=os.path.join(self.options.dump_to, f"specialisation-{self._made}"))

    def _report(self, program: Program, clock: Clock, cached: bool) -> CompileReport:
        decisions = read_decisions(program.texts.get(DECISIONS_STAGE, "")).values()
        return CompileReport(
            nodes=self.source.nodes,
            instructions=program.instruction_count,
            kernels=program.kernel_count,
            steps=sum(step.depth == 0 for step in program.steps),
            arena_bytes=program.arena_bytes,
            intermediate_bytes=program.intermediate_bytes,
            weights_bytes=program.weights.nbytes,
            code_bytes=sum(map(len, program.objects)),
            seconds=clock.seconds,
            from_cache=cached,
            memory_bytes=clock.memory_bytes,
            peak_memory_bytes=watch.peak_memory(),
            choices=len(decisions),
            measured=sum(d.is_measured for d in decisions),
            changed=sum(d.chosen != d.candidates[0].name for d in decisions),
            is_final=clock.is_final,
            passes=tuple(
                PassReport(r.name, r.seconds, r.memory_bytes, r.changed, r.instructions) for r in clock.passes
            ),
        )


def _compiler_of(target: Target | GpuTarget) -> str:
    """The compiler outside of onnxla that makes the code, where there is one."""
    if isinstance(target, Target):
        return ""
    try:
        return f", NVRTC {nvrtc_version()}"
    except DeviceError:
        return ", without NVRTC"


def _is_made_of(program: Program, imported: Imported) -> bool:
    """Whether a program has the interface that one made of `imported` has."""
    return (
        program.inputs == imported.inputs
        and program.outputs == imported.outputs
        and program.state == imported.state
        and program.results == imported.results
    )


def _bytes_of_constants(module: Module) -> int:
    return sum(
        i.op.literal.array.nbytes for c in module.computations() for i in c.instructions() if isinstance(i.op, Constant)
    )


def _instruction_count(module: Module) -> int:
    return len(module.entry.instructions())
