"""What all graphs of one ONNX model share."""

from collections.abc import Mapping

from onnx import FunctionProto

from onnxla.config import CompileOptions, Limits
from onnxla.frontends.onnx.model_file import OnnxModel
from onnxla.frontends.onnx.structure import FunctionKey, functions_of
from onnxla.frontends.session import ImportSession


class Session(ImportSession):
    """The state of one import."""

    def __init__(self, model: OnnxModel, options: CompileOptions, limits: Limits) -> None:
        super().__init__(options, limits)
        self.model = model
        self.options = options
        self.functions: Mapping[FunctionKey, FunctionProto] = functions_of(model)
