"""The door: `compile()` turns a model into a `CompiledModel`; `load_compiled()` (runtime/loading.py) reads one back.

The compiler is imported where a model has to be compiled: what the cache knows of a file needs only the runtime.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from onnxla.call import Call, Cut
from onnxla.config import CompileOptions, Limits
from onnxla.errors import DeviceError, InputError
from onnxla.files import taken_back
from onnxla.given import shapes_of, sizes_of, whole_number
from onnxla.recollection import recollection_of
from onnxla.runtime.loading import load_compiled
from onnxla.runtime.model import CompiledModel
from onnxla.runtime.report import CompileReport
from onnxla.runtime.signature import ModelSignature
from onnxla.runtime.streams import gpu_number
from onnxla.runtime.tensors import Array
from onnxla.runtime.vocabulary import as_text
from onnxla.watch import Progress, watching

if TYPE_CHECKING:
    from onnxla.frontends.hlo.model_file import HloModel
    from onnxla.frontends.onnx.model_file import ModelSource
    from onnxla.frontends.tensorflow.model_file import TensorFlowModel

Model: TypeAlias = "ModelSource | TensorFlowModel | HloModel"
Dims: TypeAlias = Mapping[str, int | Sequence[int]]
Shapes: TypeAlias = Mapping[str, Sequence[int]]
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
    targets = _targets(target)
    if device is not None and (gpu_number(device) is not None) != ("gpu" in targets) and len(targets) == 1:
        raise DeviceError(f"device={device!r} does not go with target={target!r}")
    call = Call(
        model=model,
        targets=tuple(targets),
        shapes=shapes,
        dims=given_sizes,
        constants=values,
        options=settings,
        limits=limits or Limits.from_environment(),
        num_threads=num_threads,
        folder=folder,
        cut=Cut(signature, inputs, outputs, state),
        fallback=fallback,
        device=device,
    )
    with taken_back(settings.dump_to), watching(progress, settings.compile_timeout):
        recollection = recollection_of(call)
        known = None if recollection is None else recollection.recall()
        if known is not None:
            return known
        from onnxla.compile_call import compile_call

        return compile_call(call, recollection)


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
    from onnxla.compiler.models import read_source

    cut = Cut(signature, inputs, outputs)
    source = read_source(model, _options(None), limits or Limits.from_environment(), {}, folder, cut)
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


__all__ = ["CompileOptions", "Limits", "CompileReport", "CompiledModel", "Progress", "compile", "load_compiled"]
