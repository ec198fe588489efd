"""The modules of `onnxruntime.capi` that programs import from, loaded with it as there."""

from onnxla.compat.capi import _pybind_state as _pybind_state
from onnxla.compat.capi import onnxruntime_inference_collection as onnxruntime_inference_collection
from onnxla.compat.capi import onnxruntime_pybind11_state as onnxruntime_pybind11_state
