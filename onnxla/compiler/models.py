"""Which kind a model is of, and the source that hides it."""

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from onnxla.call import Cut
from onnxla.compiler.onnx_source import OnnxSource
from onnxla.compiler.sources import Source
from onnxla.config import CompileOptions, Limits
from onnxla.errors import InputError, ModelFormatError
from onnxla.frontends.hlo.model_file import is_hlo, is_text, read_hlo
from onnxla.frontends.onnx.model_file import ModelSource, read_model
from onnxla.frontends.tensorflow.model_file import TensorFlowModel, is_tensorflow, read_tensorflow
from onnxla.hlo.types import Array


def is_onnx(model: Any) -> bool:
    """Whether a model is of none of the other kinds: what it is, reading it tells."""
    return not (is_text(model) or isinstance(model, TensorFlowModel) or is_tensorflow(model) or is_hlo(model))


def read_source(
    model: Any,
    options: CompileOptions,
    limits: Limits,
    constants: Mapping[str, Array],
    folder: Any,
    cut: Cut,
) -> Source:
    """The model, read, whatever its format. Raises ModelFormatError, InputError.

    The rules of the less frequent formats are imported when they are needed.
    """
    if not is_text(model) and (isinstance(model, TensorFlowModel) or is_tensorflow(model)):
        from onnxla.compiler.tensorflow_source import TensorFlowSource

        tensorflow = read_tensorflow(model)
        variables = {name: np.asarray(value) for name, value in (cut.state or {}).items()}
        return TensorFlowSource(
            tensorflow, options, limits, constants, cut.signature, cut.inputs, cut.outputs, variables
        )
    if cut != Cut():
        raise InputError("signature=, inputs=, outputs= and state= are for TensorFlow models")
    if not is_hlo(model):
        if is_text(model):
            raise ModelFormatError("the text given as a model is neither XLA's HLO nor StableHLO")
        return OnnxSource(read_model(cast(ModelSource, model), folder=folder), options, limits, constants)
    from onnxla.compiler.hlo_source import source_of_hlo

    return source_of_hlo(read_hlo(model, limits), options, limits, constants)
