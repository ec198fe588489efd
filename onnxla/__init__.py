"""onnxla: compile ONNX models to native CPU and GPU code.

    import onnxla
    model = onnxla.compile("model.onnx")
    outputs = model.run(None, {"x": x})
    model.save("model.onnxla")
    model = onnxla.load_compiled("model.onnxla")

The public names are loaded when they are first used, so `load_compiled` needs neither onnx nor the compiler.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from onnxla.version import __version__

if TYPE_CHECKING:
    from onnxla.api import compile
    from onnxla.config import CompileOptions, Limits
    from onnxla.errors import (
        ArtifactError,
        CompileError,
        DeviceError,
        DynamicShapeError,
        HloError,
        InputError,
        InternalError,
        ModelFormatError,
        OnnxlaError,
        ResourceLimitError,
        ServiceError,
        ShapeError,
        UnboundDimensionsError,
        UnsupportedOpError,
    )
    from onnxla.runtime.loading import load_compiled
    from onnxla.runtime.mixed_model import MixedModel
    from onnxla.runtime.model import CompiledModel
    from onnxla.runtime.report import CompileReport

_HOMES = {
    "compile": "onnxla.api",
    "load_compiled": "onnxla.runtime.loading",
    "CompiledModel": "onnxla.runtime.model",
    "MixedModel": "onnxla.runtime.mixed_model",
    "CompileReport": "onnxla.runtime.report",
    "CompileOptions": "onnxla.config",
    "Limits": "onnxla.config",
}

__all__ = [
    "ArtifactError",
    "CompileError",
    "CompileOptions",
    "CompileReport",
    "CompiledModel",
    "DeviceError",
    "DynamicShapeError",
    "HloError",
    "InputError",
    "InternalError",
    "Limits",
    "MixedModel",
    "ModelFormatError",
    "OnnxlaError",
    "ResourceLimitError",
    "ServiceError",
    "ShapeError",
    "UnboundDimensionsError",
    "UnsupportedOpError",
    "__version__",
    "compile",
    "load_compiled",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'onnxla' has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, "onnxla.errors")), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
