"""What all graphs of one TensorFlow model share."""

from onnxla.config import CompileOptions, Limits
from onnxla.frontends.session import ImportSession
from onnxla.frontends.tensorflow.model_file import TensorFlowModel


class Session(ImportSession):
    """The state of one import."""

    def __init__(self, model: TensorFlowModel, options: CompileOptions, limits: Limits) -> None:
        super().__init__(options, limits)
        self.model = model
