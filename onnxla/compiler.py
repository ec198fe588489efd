"""From a model to programs: one `Compiler` for a model, which makes a program for each set of input shapes.

read -> import -> passes -> codegen -> Program
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from onnxla.codegen.cpu.backend import CompiledCode, compile_cpu
from onnxla.codegen.cpu.target import Target, named_target
from onnxla.codegen.plan import memory_table, slots_of
from onnxla.config import CompileOptions
from onnxla.errors import CompileError, DeviceError, UnboundDimensionsError
from onnxla.frontends.onnx.importer import ImportedModel, import_model
from onnxla.frontends.onnx.model_file import ModelSource, OnnxModel, read_model
from onnxla.frontends.onnx.signature import Dimension, TensorSpec, signature_of
from onnxla.hlo.module import Module
from onnxla.hlo.printer import print_module
from onnxla.hlo.types import Array
from onnxla.passes.pipelines import optimize
from onnxla.runtime.program import Program, Step, TensorSignature, onnx_type
from onnxla.runtime.report import CompileReport
from onnxla.runtime.signature import ModelSignature, ModelTensor
from onnxla.runtime.thread_pool_code import assemble_thread_pool

Progress: TypeAlias = Callable[[str, float], None]
"""Told the name of each stage when it begins, and the part of the whole work that is done, from 0 to 1."""
Shapes: TypeAlias = Mapping[str, Sequence[int]]

_STAGES = {"import": 0.0, "passes": 0.15, "codegen": 0.3, "done": 1.0}


class Compiler:
    """A model that is read once and compiled for as many shapes as wanted."""

    def __init__(
        self,
        source: ModelSource,
        *,
        target: str,
        options: CompileOptions,
        constants: Mapping[str, Array],
        progress: Progress | None = None,
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        """Raises ModelFormatError for what is not a model, DeviceError for a target that is not known."""
        if target != "cpu":
            raise DeviceError(f"no target {target!r}; this version compiles for 'cpu'")
        self.target: Target = named_target(options.target_cpu)
        self.options = options
        self.model: OnnxModel = read_model(source, folder=folder)
        self.constants = dict(constants)
        self.progress = progress
        self._made = 0

    def signature(self, dims: Mapping[str, int] | None = None, shapes: Shapes | None = None) -> ModelSignature:
        """Inputs and outputs as the model declares them, with the sizes that are known."""
        declared = signature_of(self.model)
        sizes = dims or {}
        return ModelSignature(
            tuple(_model_tensor(s, sizes, shapes or {}) for s in declared.inputs if s.name not in self.constants),
            tuple(_model_tensor(s, sizes, {}) for s in declared.outputs),
        )

    def program(
        self,
        shapes: Shapes | None = None,
        dims: Mapping[str, int] | None = None,
        values: Mapping[str, Array] | None = None,
    ) -> tuple[Program, CompileReport]:
        """Compile for input shapes. `values` offers values of inputs: those that decide shapes become constants.

        Raises CompileError, or UnboundDimensionsError while a dimension has no size.
        """
        clock = _Clock(self.progress)
        with clock.stage("import"):
            imported, constants = self._import(shapes or {}, dims or {}, values or {})
        module = imported.module
        texts = {"hlo": print_module(module)}
        options = self._options_of_next()
        with clock.stage("passes"):
            optimize(module, "cpu", options)
        texts["optimized_hlo"] = print_module(module)
        with clock.stage("codegen"):
            code = compile_cpu(module, self.target, options)
        texts["plan"] = str(code.plan)
        texts["memory"] = memory_table(code.plan)
        if options.dump_to is not None:
            _dump(Path(options.dump_to), texts, code)
        if self.progress is not None:
            self.progress("done", _STAGES["done"])
        program = self._program(imported, code, constants, texts)
        return program, self._report(module, program, code, clock.seconds)

    def _import(
        self, shapes: Shapes, dims: Mapping[str, int], values: Mapping[str, Array]
    ) -> tuple[ImportedModel, dict[str, Array]]:
        """Import; where the model needs values of inputs that `values` has, import again with them as constants."""
        constants = dict(self.constants)
        while True:
            open_shapes = {name: shape for name, shape in shapes.items() if name not in constants}
            try:
                imported = import_model(
                    self.model, shapes=open_shapes, dims=dims, constants=constants, options=self.options
                )
                return imported, constants
            except CompileError as error:
                needed = needed_values(error)
                if not needed or not needed <= values.keys() or needed <= constants.keys():
                    raise
                constants |= {name: values[name].copy() for name in needed}

    def _options_of_next(self) -> CompileOptions:
        """The options, dumps of each further specialisation in a folder of its own."""
        self._made += 1
        if self.options.dump_to is None or self._made == 1:
            return self.options
        return replace(self.options, dump_to=os.path.join(self.options.dump_to, f"specialisation-{self._made}"))

    def _program(
        self, imported: ImportedModel, code: CompiledCode, constants: Mapping[str, Array], texts: Mapping[str, str]
    ) -> Program:
        return Program(
            inputs=tuple(_tensor_signature(s) for s in imported.inputs),
            outputs=tuple(_tensor_signature(s) for s in imported.outputs),
            objects=tuple(code.objects),
            thread_pool=assemble_thread_pool(self.target.triple),
            weights=code.weights,
            arena_bytes=code.arena_bytes,
            steps=_steps(code),
            triple=self.target.triple,
            cpu=self.target.cpu,
            features=self.target.features,
            constants=constants,
            intermediate_bytes=code.plan.intermediate_bytes,
            kernel_count=code.code.kernel_count,
            texts=texts,
        )

    def _report(self, module: Module, program: Program, code: CompiledCode, seconds: dict[str, float]) -> CompileReport:
        return CompileReport(
            nodes=len(self.model.proto.graph.node),
            instructions=len(module.entry.instructions()),
            kernels=program.kernel_count,
            steps=len(program.steps),
            arena_bytes=program.arena_bytes,
            intermediate_bytes=program.intermediate_bytes,
            weights_bytes=program.weights.nbytes,
            code_bytes=sum(map(len, program.objects)),
            seconds=seconds,
        )


def needed_values(error: CompileError) -> set[str]:
    """The inputs whose values would solve every problem of `error`; empty where values do not help."""
    if not all(problem.needs_constants for problem in error.problems):
        return set()
    return {name for problem in error.problems for name in problem.needs_constants}


def may_compile_later(error: CompileError) -> bool:
    """Whether the arrays of a run can settle what `error` complains of: sizes, or values, of inputs."""
    return isinstance(error, UnboundDimensionsError) or bool(needed_values(error))


class _Clock:
    """Times the stages, and tells the caller about them."""

    def __init__(self, progress: Progress | None) -> None:
        self.seconds: dict[str, float] = {}
        self._progress = progress

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
            op=getattr(step, "opcode", type(step).__name__.lower()),
            source=str(step.node) if step.node else "",
            bytes=sum(slot.buffer.bytes for slot in slots_of(step)),
        )
        for step in code.plan.steps
    )


def _tensor_signature(spec: TensorSpec) -> TensorSignature:
    return TensorSignature(spec.name, str(spec.type.element), spec.type.shape)


def _model_tensor(spec: TensorSpec, dims: Mapping[str, int], shapes: Shapes) -> ModelTensor:
    shape: list[Dimension] | None = None if spec.shape is None else list(spec.shape)
    if spec.name in shapes:
        shape = [int(n) for n in shapes[spec.name]]
    elif shape is not None:
        shape = [dims.get(n, n) if isinstance(n, str) else n for n in shape]
    return ModelTensor(spec.name, onnx_type(str(spec.element)) if spec.element else spec.onnx_type, shape)


def _dump(folder: Path, texts: Mapping[str, str], code: CompiledCode) -> None:
    """Write the texts of the stages and the LLVM IR of each object."""
    folder.mkdir(parents=True, exist_ok=True)
    for stage, text in texts.items():
        (folder / f"{stage}.txt").write_text(text)
    for number, text in enumerate(code.code.texts):
        (folder / f"code-{number:02d}.ll").write_text(text)
