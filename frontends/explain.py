"""`explain` for a model of any format."""

from collections.abc import Mapping, Sequence
from typing import Any

from onnxla.config import CompileOptions, Limits
from onnxla.frontends.hlo.model_file import is_hlo, read_hlo
from onnxla.frontends.model_report import ModelReport
from onnxla.frontends.onnx import report as onnx_report
from onnxla.frontends.tensorflow.model_file import is_tensorflow
from onnxla.hlo.types import Array


def explain(
    model: Any,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    dims: Mapping[str, int] | None = None,
    constants: Mapping[str, Array] | None = None,
    options: CompileOptions | None = None,
    limits: Limits | None = None,
    signature: str | None = None,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
) -> ModelReport:
    """Import a model, given as `onnxla.compile` takes it or as its frontend has read it, and report every problem.

    Raises ModelFormatError only where there is no valid model, InputError for names that there are not.
    """
    given: dict[str, Any] = {
        "shapes": shapes,
        "dims": dims,
        "constants": constants,
        "options": options,
        "limits": limits,
    }
    if is_tensorflow(model):  # rules of formats that come seldom are imported when they do
        from onnxla.frontends.tensorflow import report as tensorflow_report

        return tensorflow_report.explain(model, **given, signature=signature, inputs=inputs, outputs=outputs)
    if is_hlo(model):
        from onnxla.frontends.hlo import report as hlo_report

        return hlo_report.explain(read_hlo(model, limits), **given)
    return onnx_report.explain(model, **given)
