"""onnxruntime's interface over compiled code: `import onnxla.compat as ort`, and the rest of a server stays as it is.

docs/onnxruntime-drop-in.md lists what is honoured, accepted and refused.
"""

from onnxla.compat import capi as capi
from onnxla.compat.enums import ExecutionMode, ExecutionOrder, GraphOptimizationLevel, OrtAllocatorType, OrtMemType
from onnxla.compat.io_binding import IOBinding
from onnxla.compat.logging import (
    disable_telemetry_events,
    enable_telemetry_events,
    set_default_logger_severity,
    set_default_logger_verbosity,
)
from onnxla.compat.node_arg import ModelMetadata, NodeArg
from onnxla.compat.options import RunOptions, SessionOptions
from onnxla.compat.ort_value import OrtDevice, OrtValue
from onnxla.compat.providers import get_all_providers, get_available_providers, get_device
from onnxla.compat.session import InferenceSession

__version__ = "1.32.0"
"""The onnxruntime whose interface this is; programs compare it."""


def get_version_string() -> str:
    """`__version__`."""
    return __version__


__all__ = [
    "ExecutionMode",
    "ExecutionOrder",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "ModelMetadata",
    "NodeArg",
    "OrtAllocatorType",
    "OrtDevice",
    "OrtMemType",
    "OrtValue",
    "RunOptions",
    "SessionOptions",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_all_providers",
    "get_available_providers",
    "get_device",
    "get_version_string",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
]
