"""The other name of `onnxruntime_pybind11_state`."""

from onnxla.compat.capi.onnxruntime_pybind11_state import *  # noqa: F403
from onnxla.compat.capi.onnxruntime_pybind11_state import __all__ as __all__
