"""`compile(model, fallback="onnxruntime")`: a `MixedModel` of an ONNX model, and its report without compiling."""

from collections.abc import Mapping, Sequence
from typing import Any

from onnxla import watch
from onnxla.compiler.onnx_source import OnnxSource
from onnxla.compiler.sources import Shapes, may_compile_later
from onnxla.config import CompileOptions, Limits
from onnxla.errors import CompileError, DeviceError, InputError
from onnxla.fallback.planning import build, partition
from onnxla.frontends.onnx.model_file import OnnxModel
from onnxla.hlo.types import Array
from onnxla.runtime.mixed_model import MixedModel, MixedPlan
from onnxla.runtime.mixed_report import FallbackReport
from onnxla.runtime.onnxruntime_part import require_onnxruntime
from onnxla.runtime.thread_pool import default_threads
from onnxla.watch import watching

FALLBACKS = ("onnxruntime",)


def require_fallback(name: str, target: str, options: CompileOptions) -> None:
    """Raise InputError for a fallback there is not, or options that it does not go with; DeviceError without it."""
    if name not in FALLBACKS:
        raise InputError(f"fallback={name!r}: there is 'onnxruntime'")
    if target != "cpu":
        raise DeviceError("fallback='onnxruntime' is for target='cpu'")
    if options.pad_to_bucket:
        raise InputError("pad_to_bucket proves something of the whole model; it does not go with fallback=")
    require_onnxruntime()


def compile_mixed(
    model: OnnxModel,
    options: CompileOptions,
    limits: Limits,
    constants: Mapping[str, Array],
    shapes: Shapes,
    sizes: Sequence[Mapping[str, int]],
    fixed: Mapping[str, int],
    num_threads: int | None,
    about: Mapping[str, Any],
) -> MixedModel:
    """Compile what can be compiled, for each of `sizes`: sizes of symbolic dimensions, `fixed` where all have the same.

    Where sizes stay open, or the value of an input decides a shape, it is done when the model first runs.
    """
    threads = num_threads or default_threads()

    def plan(arrays: Mapping[str, Array], doubted: frozenset[str]) -> MixedPlan:
        """For the arrays of a run."""
        shapes = {name: array.shape for name, array in arrays.items()}
        with watching(None, options.compile_timeout):
            cut = partition(model, options, limits, constants, shapes, fixed, arrays, doubted)
            return build(cut, options, limits, threads)

    plans = []
    may_plan_later = False
    for k, dims in enumerate(sizes):
        try:
            with watch.span("", k / len(sizes), (k + 1) / len(sizes)):
                cut = partition(model, options, limits, constants, shapes, dims, None)
                plans.append(build(cut, options, limits, threads))
        except CompileError as error:
            if plans or len(sizes) > 1 or not may_compile_later(error):
                raise
            may_plan_later = True
    signature = OnnxSource(model, options, limits, constants).signature(fixed, shapes if len(plans) == 1 else {})
    return MixedModel(
        signature,
        plans,
        plan,
        constants=constants,
        num_threads=num_threads,
        about=about,
        may_plan_later=may_plan_later,
    )


def explain_mixed(
    model: OnnxModel,
    *,
    options: CompileOptions,
    limits: Limits | None = None,
    constants: Mapping[str, Array] | None = None,
    shapes: Shapes | None = None,
    dims: Mapping[str, int] | None = None,
) -> FallbackReport:
    """What would run where, without compiling. Nodes that need the value of an input count for onnxruntime.

    Raises as `partition` does.
    """
    return partition(model, options, limits or Limits(), constants or {}, shapes or {}, dims or {}, {}).report()
