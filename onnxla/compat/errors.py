"""onnxruntime's exceptions by name, with the texts it gives them; each is an OnnxlaError too.

Where a process has loaded onnxruntime besides, what is raised is also of onnxruntime's class of that name, so that
`except` clauses written for it catch ours. onnxruntime is never imported for that.
"""

import os
import sys
from pathlib import Path
from typing import Any

import onnx
from onnx import ModelProto

from onnxla.errors import (
    CompileError,
    DeviceError,
    InputError,
    InternalError,
    ModelFormatError,
    OnnxlaError,
    UnsupportedOpError,
)
from onnxla.frontends.onnx.operator_names import normal_domain

_STATE = "onnxruntime.capi.onnxruntime_pybind11_state"


class CompatError(OnnxlaError):
    """The base of the exceptions that have a counterpart in onnxruntime; what onnxla says of it is `__cause__`."""

    code = 0
    label = ""
    text = ""
    """The message without the prefix."""


class Fail(CompatError):
    """A model that is refused for other reasons than those below, or a run that was ended."""

    code, label = 1, "FAIL"


class InvalidArgument(CompatError):
    """What `run` was given does not fit the model."""

    code, label = 2, "INVALID_ARGUMENT"


class NoSuchFile(CompatError):
    """There is no file at the path of the model."""

    code, label = 3, "NO_SUCHFILE"


class NoModel(CompatError):
    """Never raised here; there for `except` clauses."""

    code, label = 4, "NO_MODEL"


class EngineError(CompatError):
    """Never raised here; there for `except` clauses."""

    code, label = 5, "ENGINE_ERROR"


class RuntimeException(CompatError):
    """A fault of onnxla itself, or a device that failed in a run."""

    code, label = 6, "RUNTIME_EXCEPTION"


class InvalidProtobuf(CompatError):
    """The file or bytes are no ONNX model."""

    code, label = 7, "INVALID_PROTOBUF"


class ModelLoaded(CompatError):
    """Never raised here; there for `except` clauses."""

    code, label = 8, "MODEL_LOADED"


class NotImplemented(CompatError):  # noqa: A001 (onnxruntime's name)
    """An operator that cannot be compiled, or an option that has no meaning here and may not be passed over."""

    code, label = 9, "NOT_IMPLEMENTED"


class InvalidGraph(CompatError):
    """The model breaks the rules of ONNX."""

    code, label = 10, "INVALID_GRAPH"


class EPFail(CompatError):
    """The device that was asked for cannot be used, and nothing may stand in for it."""

    code, label = 11, "EP_FAIL"


def compat_error(kind: type[CompatError], message: str) -> CompatError:
    """The exception to raise, with onnxruntime's prefix."""
    theirs = getattr(sys.modules.get(_STATE), kind.__name__, None)
    made = kind if theirs is None or issubclass(kind, theirs) else _both(kind, theirs)
    error = made(f"[ONNXRuntimeError] : {kind.code} : {kind.label} : {message}")
    error.text = message
    return error


def _both(ours: type[CompatError], theirs: Any) -> type[CompatError]:
    made = _BOTH.get((ours.__name__, theirs))
    if made is None:
        made = type(ours.__name__, (ours, theirs), {"__module__": ours.__module__, "__doc__": ours.__doc__})
        _BOTH[ours.__name__, theirs] = made
    return made


_BOTH: dict[tuple[str, Any], type[CompatError]] = {}


def of_onnxla(error: OnnxlaError) -> CompatError:
    """What onnxruntime would have raised for `error`, with onnxla's text."""
    if isinstance(error, CompatError):
        return error
    kind: type[CompatError] = Fail
    if isinstance(error, UnsupportedOpError):
        kind = _kind_of_unsupported(error)
    elif isinstance(error, ModelFormatError):
        kind = InvalidGraph
    elif isinstance(error, InputError):
        kind = InvalidArgument
    elif isinstance(error, (InternalError, DeviceError)):
        kind = RuntimeException
    return compat_error(kind, str(error))


def _kind_of_unsupported(error: CompileError) -> type[CompatError]:
    """As onnxruntime tells them apart: no such operator in ONNX, none that anybody registered, none for this case."""
    node = error.problems[0].node
    if node is None:
        return NotImplemented
    domain, _, name = node.op_type.rpartition(".")
    domain = normal_domain(domain)
    if onnx.defs.has(name, domain):
        return NotImplemented
    return InvalidGraph if domain == "" else Fail


def unreadable(source: str | bytes, error: OnnxlaError) -> CompatError:
    """What onnxruntime would have raised for a path or bytes that are no model."""
    if isinstance(source, str) and not os.path.exists(source):
        return compat_error(NoSuchFile, f"Load model from {source} failed:Load model {source} failed. {error}")
    try:
        data = source if isinstance(source, bytes) else Path(source).read_bytes() if os.path.isfile(source) else b"?"
        ModelProto.FromString(data)
    except Exception:  # protobuf's implementations raise different kinds
        return compat_error(InvalidProtobuf, f"Failed to load model because protobuf parsing failed. {error}")
    return compat_error(InvalidArgument, f"No graph was found in the protobuf. {error}")
