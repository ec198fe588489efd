"""From a model to programs: one `Compiler` for a model, which makes a program for each set of input shapes.

import -> (cache) -> passes -> codegen -> Program
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from onnxla import watch
from onnxla.cache_key import cache_key
from onnxla.codegen.choices import Decision, print_decisions, read_decisions
from onnxla.codegen.cpu.backend import compile_cpu
from onnxla.codegen.cpu.compile_llvm import assembly
from onnxla.codegen.cpu.target import Target, host_target, named_target
from onnxla.codegen.gpu.backend import compile_gpu
from onnxla.codegen.gpu.compile_nvrtc import nvrtc_version
from onnxla.codegen.gpu.target import GpuTarget
from onnxla.codegen.kernels.ir import Kernel
from onnxla.codegen.kernels.work import effort_of
from onnxla.codegen.plan import Branch, Copy, Launch, Plan, Space, Steps, WhileLoop, memory_table, nested, slots_of
from onnxla.codegen.traffic import bytes_moved
from onnxla.config import GPU_PRECISIONS, CompileOptions
from onnxla.errors import DeviceError, InputError
from onnxla.files import write_file
from onnxla.hlo.graphviz import module_to_dot
from onnxla.hlo.module import Module, sources_of
from onnxla.hlo.ops.structural import Constant
from onnxla.hlo.printer import print_module
from onnxla.hlo.types import Array
from onnxla.makers import compiler_digest, libraries
from onnxla.page.inside import CODE_STAGE, DECISIONS_STAGE, RESOURCES_STAGE, Inside, code_index, listed
from onnxla.page.kernel_code import KernelCode, gpu_code, lasting_log, resource_report
from onnxla.passes.pipeline import PassRecord
from onnxla.passes.pipelines import optimize
from onnxla.runtime.cache import CacheKey, CompileCache
from onnxla.runtime.program import GPU_TRIPLE, Program, Step
from onnxla.runtime.report import CompileReport, PassReport
from onnxla.runtime.thread_pool import default_threads
from onnxla.runtime.thread_pool_code import assemble_thread_pool
from onnxla.sources import Imported, Shapes, Source
from onnxla.version import __version__

if TYPE_CHECKING:
    from onnxla.tuning.tuner import Tuned

_STAGES = {"import": (0.0, 0.04), "cache": (0.04, 0.05), "passes": (0.05, 0.12), "codegen": (0.12, 1.0)}
"""Which part of the time each stage takes, about."""
_TUNING_STAGES = {"import": (0.0, 0.01), "cache": (0.01, 0.01), "passes": (0.01, 0.03), "tuning": (0.03, 0.85)}
_TUNING_STAGES["codegen"] = (0.85, 1.0)


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
        clock = _Clock(_TUNING_STAGES if self.options.tune_seconds else _STAGES)
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

    def _make(self, imported: Imported, text: str, clock: "_Clock") -> Program:
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
                self._made_for_cpu(module, options, known)
                if isinstance(self.target, Target)
                else self._made_for_gpu(module)
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
            steps=tuple(_steps(made.plan, made.symbols, self.target)),
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
            self._dump(Path(options.dump_to), program, made, module)
        return program

    def _dump(self, folder: Path, program: Program, made: "_Made", module: Module) -> None:
        """The stages behind the passes, which have written their own: plan, memory, code, graph and page."""
        from onnxla.page.model_page import model_page

        code = made.code()
        inside = Inside(module, made.plan, made.symbols, code)
        files = {
            "plan.txt": program.texts["plan"],
            "memory.txt": program.texts["memory"],
            "graph.dot": program.texts["optimized_hlo_dot"],
            "resources.txt": resource_report(code),
            "page.html": model_page(program, {"onnxla": __version__}, self.source.name, inside=inside),
            **made.dumps(),
        }
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            write_file(folder / name, text)

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

    def _made_for_cpu(self, module: Module, options: CompileOptions, known: "Mapping[str, Decision]") -> "_Made":
        assert isinstance(self.target, Target)
        code, target, level = compile_cpu(module, self.target, options, known), self.target, options.opt_level

        def dumps() -> dict[str, str]:
            """LLVM IR and assembly of each object."""
            files = {f"code-{k:02d}.ll": text for k, text in enumerate(code.code.texts)}
            return files | {f"code-{k:02d}.s": assembly(text, target, level) for k, text in enumerate(code.code.texts)}

        return _Made(
            plan=code.plan,
            objects=tuple(code.objects),
            thread_pool=assemble_thread_pool(target.triple),
            weights=code.weights,
            triple=target.triple,
            cpu=target.cpu,
            features=target.features,
            symbols=code.code.symbols,
            code=lambda: listed(code.code.functions, target, level),
            dumps=dumps,
            texts={
                CODE_STAGE: code_index(code.code.functions),
                DECISIONS_STAGE: print_decisions(code.decisions),
            },
        )

    def _made_for_gpu(self, module: Module) -> "_Made":
        assert isinstance(self.target, GpuTarget)
        code = compile_gpu(module, self.target)
        return _Made(
            plan=code.plan,
            objects=code.objects,
            thread_pool=b"",
            weights=code.weights,
            triple=GPU_TRIPLE,
            cpu=self.target.architecture,
            features=(),
            symbols=code.symbols,
            code=lambda: gpu_code(code.functions, code.ptx, code.log),
            texts={
                "cuda": code.source,
                CODE_STAGE: code_index(code.functions),
                RESOURCES_STAGE: lasting_log(code.log),
            },
            dumps=lambda: {"code.cu": code.source, "code.ptx": code.ptx, "ptxas.log": code.log},
        )

    def _options_of_next(self) -> CompileOptions:
        """The options, dumps of each further specialisation in a folder of its own."""
        self._made += 1
        if self.options.dump_to is None or self._made == 1:
            return self.options
        return replace(self.options, dump_to=os.path.join(self.options.dump_to, f"specialisation-{self._made}"))

    def _report(self, program: Program, clock: "_Clock", cached: bool) -> CompileReport:
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


@dataclass(frozen=True)
class _Made:
    """What a target made of a module."""

    plan: Plan
    objects: tuple[bytes, ...]
    thread_pool: bytes
    weights: Array
    triple: str
    cpu: str
    features: tuple[str, ...]
    symbols: Mapping[Kernel, str]
    code: Callable[[], Mapping[str, KernelCode]]
    """The code of each kernel, by symbol."""
    dumps: Callable[[], dict[str, str]]
    """Further texts for a dump, by file name."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Further stages."""


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


class _Clock:
    """What the stages take."""

    def __init__(self, parts: Mapping[str, tuple[float, float]]) -> None:
        self.parts = parts
        self.is_final = True
        """Whether compiling again would make the same program: not where tuning ran out of time."""
        self.seconds: dict[str, float] = {}
        self.memory_bytes: dict[str, int] = {}
        self.passes: Sequence[PassRecord] = ()

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        peak, start = watch.peak_memory(), time.perf_counter()
        with watch.span(name, *self.parts[name]):
            yield
        self.seconds[name] = time.perf_counter() - start
        self.memory_bytes[name] = watch.peak_memory() - peak


_OPERATIONS = {Copy: "copy", WhileLoop: "while", Branch: "conditional"}
"""What a step without a kernel does, in HLO's words."""


def _steps(plan: Plan, symbols: Mapping[Kernel, str], target: Target | GpuTarget) -> Iterator[Step]:
    """The rows of a profile: every step, and those inside it behind it, in the order of `walk_steps`."""
    efforts = {k: int(effort_of(k, target)) if isinstance(target, Target) else 0 for k in set(plan.kernels())}

    def rows(steps: Steps, depth: int) -> Iterator[Step]:
        for step in steps:
            kernel = step.kernel if isinstance(step, Launch) else None
            instruction = plan.instructions.get(step.name)
            nodes = sources_of(instruction) if kernel and instruction else []
            weights = {
                s.buffer: s.buffer.bytes
                for s in (() if nested(step) else slots_of(step))
                if s.buffer.space is Space.WEIGHTS
            }
            whole = 0 if nested(step) else sum(slot.buffer.bytes for slot in slots_of(step))
            moved = bytes_moved(step, instruction) if isinstance(step, Launch) else whole
            yield Step(
                name=step.name,
                op=step.opcode if isinstance(step, Launch) else _OPERATIONS[type(step)],
                source=str(step.node) if step.node else "",
                bytes=moved,
                flops=int(kernel.flops) if kernel else 0,
                depth=depth,
                kernel=symbols[kernel] if kernel else "",
                tasks=kernel.tasks if kernel else 0,
                effort=efforts[kernel] if kernel else 0,
                weight_bytes=min(sum(weights.values()), moved),
                also=tuple(str(node) for node in nodes if node != step.node),
            )
            for inner in nested(step):
                yield from rows(inner, depth + 1)

    return rows(plan.steps, 0)


def _bytes_of_constants(module: Module) -> int:
    return sum(
        i.op.literal.array.nbytes for c in module.computations() for i in c.instructions() if isinstance(i.op, Constant)
    )


def _instruction_count(module: Module) -> int:
    return len(module.entry.instructions())
