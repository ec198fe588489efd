"""The door: `compile()` turns a model into a `CompiledModel`; `load_compiled()` (runtime/loading.py) reads one back."""

import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from onnxla import watch
from onnxla.compiler import Compiler
from onnxla.config import GPU_PRECISIONS, CompileOptions, Limits
from onnxla.errors import CompileError, DeviceError, InputError, ModelFormatError
from onnxla.files import taken_back
from onnxla.frontends.hlo.model_file import HloModel, is_hlo, is_text, read_hlo
from onnxla.frontends.onnx.model_file import ModelSource, read_model
from onnxla.frontends.tensorflow.model_file import TensorFlowModel, is_tensorflow, read_tensorflow
from onnxla.given import shapes_of, sizes_of, whole_number
from onnxla.hlo.types import Array
from onnxla.padding import with_padding
from onnxla.runtime.loading import load_compiled
from onnxla.runtime.model import CompiledModel
from onnxla.runtime.program import Program
from onnxla.runtime.report import CompileReport
from onnxla.runtime.signature import ModelSignature, input_tensors, result_tensors
from onnxla.runtime.specialisations import Specialise
from onnxla.runtime.streams import gpu_number
from onnxla.runtime.vocabulary import as_text
from onnxla.sources import OnnxSource, Shapes, Source, may_compile_later
from onnxla.stablehlo_source import source_of_hlo
from onnxla.tensorflow_source import TensorFlowSource
from onnxla.version import __version__
from onnxla.watch import Progress, watching

Model: TypeAlias = "ModelSource | TensorFlowModel | HloModel"
Dims: TypeAlias = Mapping[str, int | Sequence[int]]
Options: TypeAlias = CompileOptions | Mapping[str, Any] | None


def compile(
    model: Model,
    *,
    target: str = "cpu",
    shapes: Shapes | None = None,
    dims: Dims | None = None,
    constants: Mapping[str, npt.ArrayLike] | None = None,
    options: Options = None,
    limits: Limits | None = None,
    num_threads: int | None = None,
    input_shapes: Shapes | None = None,
    progress: Progress | None = None,
    folder: str | os.PathLike[str] | None = None,
    signature: str | None = None,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    state: Mapping[str, npt.ArrayLike] | None = None,
    fallback: str | None = None,
    tune: float | None = None,
    device: str | None = None,
) -> CompiledModel:
    """Compile an ONNX model (a path, bytes or a ModelProto), a TensorFlow model (a SavedModel's folder, or a frozen
    GraphDef), or HLO: XLA's text or StableHLO's, a file of it, or what `jax.export` gives (a function, or its bytes).

    `shapes` gives input shapes by name (`input_shapes` is the same), `dims` sizes of symbolic dimensions; a list of
    sizes compiles for each of them. Where dimensions stay open, or an input's value decides a shape, the model is
    compiled when it first runs. `constants` gives values of inputs that the code is made for. `limits` bounds what a
    model may ask for. `folder` is where the external data of an in-memory model lies. `progress(name, part)` is told
    what is being done and the part, from 0 to 1, of all the work that is done; what it raises ends the compiling.
    `signature` chooses one of a SavedModel; `inputs` and `outputs` name values of a GraphDef, by default its
    placeholders and what nobody reads. `state` gives variables other values than the checkpoint's, such as those that
    another compiled signature was trained to. `fallback="onnxruntime"` compiles what it can of an ONNX model and leaves
    the rest to onnxruntime, which must be installed: see `MixedModel` for what is returned then. `tune` measures
    ways to compute the kernels on this machine, with `num_threads` threads, for about so many seconds.

    `target` is `cpu`, `gpu`, or `cpu,gpu` for code for both in one model. `device` is where the model runs, as for
    `load_compiled`: `cpu`, `cuda`, `cuda:1`; a GPU is looked for when the model first runs.

    Raises ModelFormatError for what is not a model, a CompileError that lists every problem of the model, InputError
    for wrong arguments, ResourceLimitError beyond a documented limit (`compile_timeout` among them), DeviceError for a
    target that is not there.
    """
    if shapes is not None and input_shapes is not None:
        raise InputError("shapes and input_shapes are one argument under two names; give one of them")
    _require_model(model)
    shapes = shapes_of(shapes if shapes is not None else input_shapes)
    given_sizes = sizes_of(dims)
    num_threads = None if num_threads is None else whole_number(num_threads, "num_threads", 1)
    values = {name: _constant(name, np.asarray(value)) for name, value in (constants or {}).items()}
    settings = _options(options)
    if tune is not None:
        settings = replace(settings, tune_seconds=tune)
    cut = _Cut(signature, inputs, outputs, state)
    choices = list(_each_size(given_sizes))
    targets = _targets(target)
    if device is not None and (gpu_number(device) is not None) != ("gpu" in targets) and len(targets) == 1:
        raise DeviceError(f"device={device!r} does not go with target={target!r}")
    if fallback is not None:
        if (
            cut != _Cut()
            or is_text(model)
            or isinstance(model, TensorFlowModel)
            or is_tensorflow(model)
            or is_hlo(model)
        ):
            raise InputError("fallback= is for ONNX models")
        onnx = cast(ModelSource, model)
        return _mixed(
            onnx, fallback, target, shapes, given_sizes, values, settings, limits, folder, num_threads, progress
        )
    programs: list[Program] = []
    reports: list[CompileReport] = []
    with taken_back(settings.dump_to), watching(progress, settings.compile_timeout):
        source = _source(model, settings, limits or Limits.from_environment(), values, folder, cut)
        compilers = {t: Compiler(source, t, _options_of(t, targets, settings), num_threads) for t in targets}
        work = [(compiler, sizes) for compiler in compilers.values() for sizes in choices]
        try:
            for k, (compiler, sizes) in enumerate(work):
                with watch.span("", k / len(work), (k + 1) / len(work)):
                    program, report = compiler.program(shapes, sizes)
                    if settings.pad_to_bucket:
                        program = with_padding(source, program, shapes, given_sizes, sizes, settings.pad_to_bucket)
                programs.append(program)
                reports.append(report)
        except CompileError as error:
            if programs or len(choices) > 1 or not may_compile_later(error):
                raise
            if len(targets) > 1 and device is None:
                raise InputError(
                    "sizes are still open, so the code is made when the model runs: give device= to say for which of "
                    f"{' and '.join(targets)}, or all sizes"
                ) from error
    fixed = _single_sizes(given_sizes)
    padded = {p.padding.name for p in programs if p.padding is not None}
    interface = source.signature({n: size for n, size in fixed.items() if n not in padded}, shapes)
    if len(programs) == len(targets) and not padded:
        interface = replace(
            interface, inputs=input_tensors(programs[0]), outputs=result_tensors(programs[0], interface.outputs)
        )
    return CompiledModel(
        interface,
        programs,
        specialise=None if programs else _specialise(compilers[_kind(device, targets)], fixed),
        constants=values,
        num_threads=num_threads,
        about=_about(compilers.values()),
        reports=reports,
        state=source.state,
        device=device if programs or device is not None or targets == ["cpu"] else "cuda",
    )


@dataclass(frozen=True)
class Declaration:
    """What a model says of itself."""

    signature: ModelSignature
    """Open dimensions by name."""
    has_state: bool
    """Whether running changes variables."""


def read_declaration(
    model: Model,
    *,
    limits: Limits | None = None,
    folder: str | os.PathLike[str] | None = None,
    signature: str | None = None,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
) -> Declaration:
    """The inputs and outputs that a model declares: it is read, and not compiled. Arguments and errors as `compile`."""
    _require_model(model)
    cut = _Cut(signature, inputs, outputs)
    source = _source(model, _options(None), limits or Limits.from_environment(), {}, folder, cut)
    return Declaration(source.signature({}, {}), bool(source.state))


def _constant(name: str, array: Array) -> Array:
    return as_text(name, array) if array.dtype.kind in "OSU" else array


def _require_model(model: object) -> None:
    """Raise InputError for what cannot be a model of any kind."""
    if isinstance(model, str) and not model:
        raise InputError("the model's name is empty")
    if model is None or isinstance(model, (bool, int, float, complex, list, tuple, set, dict, np.ndarray)):
        raise InputError(f"a model is a path, bytes, or what the docstring lists, not {type(model).__name__}")


def _targets(target: str) -> list[str]:
    """`cpu,gpu` -> ["cpu", "gpu"]. Raises DeviceError for what is no target."""
    targets = list(dict.fromkeys(part.strip() for part in target.split(",")))
    unknown = [part for part in targets if part not in ("cpu", "gpu")]
    if unknown:
        raise DeviceError(f"no target {unknown[0]!r}; there are 'cpu' and 'gpu', and 'cpu,gpu' for code for both")
    return targets


def _options_of(target: str, targets: Sequence[str], options: CompileOptions) -> CompileOptions:
    """With code for both, a precision of GPUs is that of the code for GPUs."""
    if target == "cpu" and len(targets) > 1 and options.precision in GPU_PRECISIONS:
        return replace(options, precision="default", keep_f32=())
    return options


def _kind(device: str | None, targets: Sequence[str]) -> str:
    """The target that `device` is of."""
    return targets[0] if device is None else ("cpu" if gpu_number(device) is None else "gpu")


def _mixed(
    model: ModelSource,
    fallback: str,
    target: str,
    shapes: Shapes,
    dims: Mapping[str, Sequence[int]],
    constants: Mapping[str, Array],
    options: CompileOptions,
    limits: Limits | None,
    folder: str | os.PathLike[str] | None,
    num_threads: int | None,
    progress: Progress | None,
) -> CompiledModel:
    """`compile` with a fallback."""
    from onnxla.fallback.compile import compile_mixed, require_fallback

    require_fallback(fallback, target, options)
    limits = limits or Limits.from_environment()
    with taken_back(options.dump_to), watching(progress, options.compile_timeout):
        read = read_model(model, folder=folder)
        about = {"onnxla": __version__, "model": read.name, "target": target, "fallback": fallback}
        sizes = list(_each_size(dims))
        return compile_mixed(read, options, limits, constants, shapes, sizes, _single_sizes(dims), num_threads, about)


@dataclass(frozen=True)
class _Cut:
    """Which part of a TensorFlow model is meant, and values of its variables."""

    signature: str | None = None
    inputs: Sequence[str] | None = None
    outputs: Sequence[str] | None = None
    state: Mapping[str, npt.ArrayLike] | None = None


def _source(
    model: Model,
    options: CompileOptions,
    limits: Limits,
    constants: Mapping[str, Array],
    folder: str | os.PathLike[str] | None,
    cut: _Cut,
) -> Source:
    if not is_text(model) and (isinstance(model, TensorFlowModel) or is_tensorflow(model)):
        tensorflow = read_tensorflow(model)
        variables = {name: np.asarray(value) for name, value in (cut.state or {}).items()}
        return TensorFlowSource(
            tensorflow, options, limits, constants, cut.signature, cut.inputs, cut.outputs, variables
        )
    if cut != _Cut():
        raise InputError("signature=, inputs=, outputs= and state= are for TensorFlow models")
    if not is_hlo(model):
        if is_text(model):
            raise ModelFormatError("the text given as a model is neither XLA's HLO nor StableHLO")
        return OnnxSource(read_model(cast(ModelSource, model), folder=folder), options, limits, constants)
    return source_of_hlo(read_hlo(model, limits), options, limits, constants)


def _options(options: Options) -> CompileOptions:
    """The options with the environment's values for what is not given. Raises InputError for names there are not."""
    if isinstance(options, CompileOptions):
        return options
    if options is not None and not isinstance(options, Mapping):
        raise InputError(f"options are CompileOptions or a dict, not {type(options).__name__}")
    known = {f.name for f in fields(CompileOptions)}
    unknown = sorted(set(options or {}) - known)
    if unknown:
        raise InputError(f"no option {', '.join(unknown)}; the options are {', '.join(sorted(known))}")
    return CompileOptions.from_environment(**(options or {}))


def _each_size(sizes: Mapping[str, Sequence[int]]) -> Iterator[dict[str, int]]:
    """Every combination of the sizes of the dimensions."""
    for combination in itertools.product(*sizes.values()):
        yield dict(zip(sizes, combination, strict=True))


def _single_sizes(sizes: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """The dimensions that have one size."""
    return {name: given[0] for name, given in sizes.items() if len(given) == 1}


def _specialise(compiler: Compiler, dims: Mapping[str, int]) -> Specialise:
    """Compiles for the arrays of a run."""

    def specialise(arrays: Mapping[str, Array]) -> Program:
        shapes = {name: array.shape for name, array in arrays.items()}
        with taken_back(compiler.options.dump_to), watching(None, compiler.options.compile_timeout):
            program, _ = compiler.program(shapes, dims, arrays)
        return program

    return specialise


def _about(compilers: Iterable[Compiler]) -> dict[str, Any]:
    """What an artifact says about how it was made. Nothing in it depends on time or place."""
    made = list(compilers)
    return {
        "onnxla": __version__,
        "model": made[0].source.name,
        "target": str(made[0].target),
        **({"targets": [str(compiler.target) for compiler in made]} if len(made) > 1 else {}),
        "options": {name: _plain(getattr(made[-1].options, name)) for name in _ABOUT},
    }


def _plain(value: object) -> object:
    """As JSON gives it back."""
    return list(value) if isinstance(value, tuple) else value


_ABOUT = (
    "fast_math",
    "precision",
    "keep_f32",
    "opt_level",
    "target_cpu",
    "target_gpu",
    "gpu_library",
    "disabled_passes",
    "stop_after",
)

__all__ = ["CompileOptions", "Limits", "CompileReport", "CompiledModel", "Progress", "compile", "load_compiled"]
