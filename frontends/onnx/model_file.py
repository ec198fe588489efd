"""Read a model: a path, bytes or a ModelProto. Large weights are views of what was read, never parsed or copied."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import onnx
from google.protobuf.message import DecodeError
from onnx import ModelProto, TensorProto

from onnxla.errors import InputError, ModelFormatError
from onnxla.frontends.onnx.external_data import ModelFolder, read_regular_file
from onnxla.frontends.onnx.names import require_names
from onnxla.frontends.onnx.operator_names import normal_domain
from onnxla.frontends.onnx.weights import tensor_array
from onnxla.frontends.onnx.wire import cut_weights
from onnxla.hlo.types import Array

ModelSource: TypeAlias = "str | os.PathLike[str] | bytes | bytearray | memoryview | ModelProto | OnnxModel"

NEWEST_OPSET = 28
_TEXT_FORMATS = {".textproto": "textproto", ".prototxt": "textproto", ".pbtxt": "textproto", ".json": "json"}


@dataclass
class OnnxModel:
    """A parsed model. Importing it again for other shapes does not read it again."""

    proto: ModelProto
    name: str
    folder: ModelFolder | None = None
    raw: dict[int, memoryview] = field(default_factory=dict)
    """raw_data of large initializers, by position, viewing the file or bytes the model came from."""
    data: memoryview | None = None
    """The whole of the file that it was read from."""

    @property
    def opsets(self) -> dict[str, int]:
        """The version of each operator domain that the model imports."""
        found = {normal_domain(o.domain): o.version for o in self.proto.opset_import}
        # IR versions 1 and 2 had no opset_import.
        return found or {"": 1}

    def initializer(self, position: int) -> Array:
        """The values of the main graph's initializer at `position`. Raises ModelFormatError."""
        return tensor_array(self.proto.graph.initializer[position], self.raw.get(position), self.folder)

    def tensor(self, tensor: TensorProto) -> Array:
        """The values of a tensor that stands anywhere else: in an attribute or a subgraph."""
        return tensor_array(tensor, folder=self.folder)


def read_model(source: ModelSource, *, folder: str | os.PathLike[str] | None = None) -> OnnxModel:
    """The model in `source`. `folder` is where external data of an in-memory model lies.

    Raises ModelFormatError for anything that is not an ONNX model, InputError for an object that could not be one.
    """
    if isinstance(source, OnnxModel):
        return source
    if isinstance(source, ModelProto):
        model = OnnxModel(source, source.graph.name or "model")
    elif isinstance(source, (bytes, bytearray, memoryview)):
        model = _from_bytes(memoryview(bytes(source) if isinstance(source, bytearray) else source), "model")
    elif not isinstance(source, (str, os.PathLike)):
        raise InputError(f"a model is a path, bytes or a ModelProto, not {type(source).__name__}")
    else:
        path = Path(source)
        model = _from_file(path)
        folder = folder if folder is not None else path.parent
    if folder is not None:
        model.folder = ModelFolder(Path(folder))
    if not model.proto.HasField("graph"):
        raise ModelFormatError(f"{model.name} is not an ONNX model: it has no graph")
    require_names(model.proto)
    return model


def _from_file(path: Path) -> OnnxModel:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise ModelFormatError(f"{path} cannot be opened: {getattr(error, 'strerror', error)}") from error
    try:
        data = read_regular_file(descriptor, str(path), links_allowed=True)
    finally:
        os.close(descriptor)
    text_format = _TEXT_FORMATS.get(path.suffix)
    if text_format is None:
        model = _from_bytes(data, path.name)
        model.data = data
        return model
    try:
        return OnnxModel(onnx.load_model_from_string(bytes(data), format=text_format), path.name)
    except Exception as error:  # the text parsers raise many kinds
        raise ModelFormatError(f"{path} is not an ONNX model in {text_format}: {error}") from error


def _from_bytes(data: memoryview, name: str) -> OnnxModel:
    if len(data) == 0:
        raise ModelFormatError(f"{name} is empty")
    rest, raw = cut_weights(data.cast("B"))
    proto = ModelProto()
    try:
        proto.ParseFromString(rest)
    except (DecodeError, RecursionError, ValueError) as error:
        raise ModelFormatError(f"{name} is not an ONNX model: {error}") from error
    return OnnxModel(proto, name, raw=raw)
