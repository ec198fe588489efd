"""A part of a model in onnxruntime, from the nodes of a model that was read: what planning asks of it, and saving."""

import re
from collections.abc import Iterator, Mapping

import numpy as np
from google.protobuf.message import EncodeError, Message
from onnx import ModelProto, TensorProto, TypeProto, ValueInfoProto, helper

from onnxla.errors import ArtifactError, HloError, InputError, ResourceLimitError
from onnxla.fallback.parts import with_weights
from onnxla.frontends.onnx.element_types import element_of_code
from onnxla.frontends.onnx.model_file import OnnxModel
from onnxla.frontends.onnx.weights import tensor_array
from onnxla.hlo.types import Array, TensorType
from onnxla.runtime.onnxruntime_part import OnnxruntimePart
from onnxla.runtime.tensors import dtype_of_onnx_type

_SMALL = 1024
"""Bytes from which a weight is a section of an artifact, shared with others that are equal."""


class Session(OnnxruntimePart):
    """One session of onnxruntime on the CPU. Any number of threads may run it at once."""

    def __init__(self, model: OnnxModel, threads: int, *, optimize: bool = True) -> None:
        """Raises InputError where onnxruntime refuses the model, DeviceError where it is not installed."""
        try:
            data = with_weights(model).SerializeToString()
        except (EncodeError, ValueError) as error:
            text = f"the part of {model.name} for onnxruntime has more than 2 GiB of weights in the model's own file"
            raise ResourceLimitError(f"{text}: save the model with external data") from error
        folder = None if model.folder is None else str(model.folder.path)
        super().__init__(model.name, data, threads, folder=folder, optimize=optimize)
        self._model = model

    def stored(self) -> tuple[bytes, Mapping[str, Array]]:
        proto = ModelProto()
        proto.CopyFrom(self._model.proto)
        weights: dict[str, Array] = {}
        kept = []
        for place, tensor in enumerate(proto.graph.initializer):
            if tensor.data_type == TensorProto.STRING:
                kept.append(tensor)
                continue
            array = tensor_array(tensor, self._model.raw.get(place), self._model.folder)
            if array.nbytes < _SMALL:
                kept.append(helper.make_tensor(tensor.name, tensor.data_type, array.shape, array.tobytes(), raw=True))
                continue
            weights[tensor.name] = array
            kept.append(TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims))
            kept[-1].data_location = TensorProto.EXTERNAL
            kept[-1].external_data.add(key="location", value="in the artifact")
        del proto.graph.initializer[:]
        proto.graph.initializer.extend(kept)
        others = [t.name for t in _tensors(proto) if t.data_location == TensorProto.EXTERNAL and t.name not in weights]
        if others:
            raise ArtifactError(
                f"{others[0]}: a weight inside of a loop or branch that lies in another file is not saved"
            )
        return proto.SerializeToString(deterministic=True), weights

    def info(self, name: str) -> ValueInfoProto:
        """An output as another part's input: of its type, and any shape."""
        return ValueInfoProto(name=name, type=type_of_text(self._types[name]))

    def static_types(self) -> dict[str, TensorType | None]:
        """The types of its outputs; None where a size is not known."""
        found: dict[str, TensorType | None] = {}
        for output in self._session.get_outputs():
            dtype, shape = dtype_of_onnx_type(output.type), output.shape
            found[output.name] = None
            if dtype is not None and shape is not None and all(isinstance(n, int) and n >= 0 for n in shape):
                try:
                    element = element_of_code(helper.np_dtype_to_tensor_dtype(dtype))
                except (HloError, KeyError):
                    continue
                found[output.name] = TensorType(element, tuple(shape))
        return found


def _tensors(message: Message) -> Iterator[TensorProto]:
    """Every tensor in a message."""
    left: list[Message] = [message]
    while left:
        item = left.pop()
        if isinstance(item, TensorProto):
            yield item
            continue
        for field, value in item.ListFields():
            if field.message_type is not None:
                left.extend([value] if isinstance(value, Message) else value)


def type_of_text(text: str) -> TypeProto:
    """`tensor(float)` and `seq(tensor(int64))` as ONNX has them, of any shape. Raises InputError for others."""
    inner = re.fullmatch(r"(seq|optional|tensor)\((.*)\)", text)
    if inner is None:
        raise InputError(f"a value between two parts in onnxruntime is {text}, which cannot be an input of a model")
    if inner[1] == "tensor":
        if inner[2] == "string":
            return helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(np.dtype(object)), None)
        dtype = dtype_of_onnx_type(text)
        if dtype is None:
            raise InputError(f"a value between two parts in onnxruntime is {text}, which is not known here")
        return helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(dtype), None)
    make = helper.make_sequence_type_proto if inner[1] == "seq" else helper.make_optional_type_proto
    return make(type_of_text(inner[2]))
