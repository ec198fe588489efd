"""The passes of each target in order, a reason beside each line, and the constraints between them."""

from collections.abc import Callable

from onnxla.config import CompileOptions
from onnxla.errors import InputError
from onnxla.hlo.module import Module
from onnxla.passes.fusion import FuseInstructions
from onnxla.passes.pass_base import Pass
from onnxla.passes.pipeline import Pipeline, PipelineReport


def pipeline_for(target_kind: str, options: CompileOptions) -> Pipeline:
    """The passes for `cpu` or `gpu`."""
    if target_kind not in ("cpu", "gpu"):
        raise InputError(f"no passes for the target {target_kind!r}; there are cpu and gpu")
    passes: list[Pass] = [
        FuseInstructions(),  # last: every pass before it sees plain instructions
    ]
    return Pipeline(passes, options, f"{target_kind} pipeline")


def optimize(
    module: Module,
    target_kind: str = "cpu",
    options: CompileOptions | None = None,
    progress: Callable[[str], None] | None = None,
) -> PipelineReport:
    """Rewrite `module` in place into kernels for `cpu` or `gpu`. It computes what it computed before."""
    return pipeline_for(target_kind, options or CompileOptions()).run(module, progress)
