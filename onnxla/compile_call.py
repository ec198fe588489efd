"""From what `compile` is asked to a `CompiledModel`: the model is read, and compiled for each set of sizes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from onnxla import watch
from onnxla.call import Call, Cut
from onnxla.compiler.compiler import Compiled, Compiler
from onnxla.compiler.models import is_onnx, read_source
from onnxla.compiler.onnx_source import OnnxSource
from onnxla.compiler.padding import with_padding
from onnxla.compiler.sources import Source, may_compile_later
from onnxla.config import GPU_PRECISIONS, CompileOptions
from onnxla.errors import CompileError, InputError
from onnxla.files import taken_back
from onnxla.frontends.onnx.model_file import read_model
from onnxla.recollection import Recollection
from onnxla.runtime.model import CompiledModel
from onnxla.runtime.program import Program
from onnxla.runtime.signature import input_tensors, result_tensors
from onnxla.runtime.specialisations import Specialise
from onnxla.runtime.streams import gpu_number
from onnxla.runtime.tensors import Array
from onnxla.version import __version__
from onnxla.watch import watching


def compile_call(call: Call, recollection: Recollection | None) -> CompiledModel:
    """Compile; what came of a file is kept in `recollection`. Raises what `onnxla.compile` raises."""
    if call.fallback is not None:
        return _mixed(call)
    source = read_source(call.model, call.options, call.limits, call.constants, call.folder, call.cut)
    compilers = {
        t: Compiler(source, t, _options_of(t, call.targets, call.options), call.num_threads) for t in call.targets
    }
    made = _compiled(call, source, compilers)
    programs = [one.program for one in made]
    fixed = call.single_sizes()
    padded = {p.padding.name for p in programs if p.padding is not None}
    interface = source.signature({n: size for n, size in fixed.items() if n not in padded}, call.shapes)
    if len(programs) == len(call.targets) and not padded:
        interface = replace(
            interface, inputs=input_tensors(programs[0]), outputs=result_tensors(programs[0], interface.outputs)
        )
    about = _about(compilers.values())
    if recollection is not None and isinstance(source, OnnxSource):
        recollection.keep(source.content, interface, about, [(one.key, one.report) for one in made])
    return CompiledModel(
        interface,
        programs,
        specialise=None if programs else _specialise(compilers[_kind(call.device, call.targets)], fixed),
        constants=call.constants,
        num_threads=call.num_threads,
        about=about,
        reports=[one.report for one in made],
        state=source.state,
        device=call.device if programs or call.device is not None or call.targets == ("cpu",) else "cuda",
    )


def _compiled(call: Call, source: Source, compilers: Mapping[str, Compiler]) -> list[Compiled]:
    """Programs for each target and each combination of sizes; none where runs have to settle the sizes first."""
    made: list[Compiled] = []
    sizes_of_all = list(call.each_size())
    work = [(compiler, sizes) for compiler in compilers.values() for sizes in sizes_of_all]
    try:
        for k, (compiler, sizes) in enumerate(work):
            with watch.span("", k / len(work), (k + 1) / len(work)):
                one = compiler.program(call.shapes, sizes)
                if bucket := call.options.pad_to_bucket:
                    program = with_padding(source, one.program, call.shapes, call.dims, sizes, bucket)
                    one = one._replace(program=program)
            made.append(one)
    except CompileError as error:
        if made or len(sizes_of_all) > 1 or not may_compile_later(error):
            raise
        if len(compilers) > 1 and call.device is None:
            raise InputError(
                "sizes are still open, so the code is made when the model runs: give device= to say for which of "
                f"{' and '.join(compilers)}, or all sizes"
            ) from error
    return made


def _options_of(target: str, targets: Sequence[str], options: CompileOptions) -> CompileOptions:
    """With code for both, a precision of GPUs is that of the code for GPUs."""
    if target == "cpu" and len(targets) > 1 and options.precision in GPU_PRECISIONS:
        return replace(options, precision="default", keep_f32=())
    return options


def _kind(device: str | None, targets: Sequence[str]) -> str:
    """The target that `device` is of."""
    return targets[0] if device is None else ("cpu" if gpu_number(device) is None else "gpu")


def _mixed(call: Call) -> CompiledModel:
    """`compile` with a fallback."""
    from onnxla.fallback.compile import compile_mixed, require_fallback

    model, fallback = call.model, str(call.fallback)
    if call.cut != Cut() or not is_onnx(model):
        raise InputError("fallback= is for ONNX models")
    target = ",".join(call.targets)
    require_fallback(fallback, target, call.options)
    read = read_model(model, folder=call.folder)
    about = {"onnxla": __version__, "model": read.name, "target": target, "fallback": fallback}
    return compile_mixed(
        read,
        call.options,
        call.limits,
        call.constants,
        call.shapes,
        list(call.each_size()),
        call.single_sizes(),
        call.num_threads,
        about,
    )


def _specialise(compiler: Compiler, dims: Mapping[str, int]) -> Specialise:
    """Compiles for the arrays of a run."""

    def specialise(arrays: Mapping[str, Array]) -> Program:
        shapes = {name: array.shape for name, array in arrays.items()}
        with taken_back(compiler.options.dump_to), watching(None, compiler.options.compile_timeout):
            return compiler.program(shapes, dims, arrays).program

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
