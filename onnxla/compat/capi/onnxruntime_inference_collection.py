"""Where programs find the session's class."""

from onnxla.compat.io_binding import IOBinding
from onnxla.compat.ort_value import OrtDevice, OrtValue
from onnxla.compat.session import InferenceSession

__all__ = ["IOBinding", "InferenceSession", "OrtDevice", "OrtValue"]
