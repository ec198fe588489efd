"""A model's configuration as Triton's clients read it: ModelConfig in JSON, complete."""

from typing import Any

from google.protobuf import json_format
from tritonclient.grpc import model_config_pb2

from onnxla.serving.interface import Interface
from onnxla.serving.model_config import ModelConfig
from onnxla.serving.requests import TensorMetadata

_BYTES = "TYPE_STRING"


def config_json(config: ModelConfig, interface: Interface) -> dict[str, Any]:
    """What was configured, with name, platform and the model's own inputs and outputs."""
    message = model_config_pb2.ModelConfig()
    message.CopyFrom(config.message)
    message.name = config.name
    message.platform = message.platform or "onnxla"
    message.backend = message.backend or "onnxla"
    for field, tensors in (("input", interface.inputs), ("output", interface.outputs)):
        message.ClearField(field)
        for tensor in tensors:
            row = getattr(message, field).add()
            row.name, row.data_type = tensor.name, model_config_pb2.DataType.Value(_type(tensor))
            row.dims.extend(_without_rows(tensor, interface, config) if field == "input" else _tail(tensor, config))
    if not message.HasField("version_policy"):
        message.version_policy.latest.num_versions = 1
    if not message.instance_group:
        message.instance_group.add(name=config.name, count=config.instances or 1, kind="KIND_CPU")
    found: dict[str, Any] = _with_numbers(message, json_format.MessageToDict(message, preserving_proto_field_name=True))
    found.setdefault("max_batch_size", 0)
    return found


def _type(tensor: TensorMetadata) -> str:
    return _BYTES if tensor.datatype == "BYTES" else f"TYPE_{tensor.datatype}"


def _without_rows(tensor: TensorMetadata, interface: Interface, config: ModelConfig) -> list[int]:
    """Triton leaves the dimension of the rows out, which is the first, where there is `max_batch_size`."""
    rows = interface.rows_of(tensor.name) if config.max_batch_size else None
    return [n for k, n in enumerate(tensor.shape) if k != rows]


def _tail(tensor: TensorMetadata, config: ModelConfig) -> list[int]:
    is_batch = config.max_batch_size > 0 and len(tensor.shape) > 0 and tensor.shape[0] == -1
    return list(tensor.shape[1:] if is_batch else tensor.shape)


def _with_numbers(message: Any, document: dict[str, Any]) -> dict[str, Any]:
    """64-bit numbers as numbers: protobuf's JSON has them as texts, and Triton's has not."""
    for descriptor in message.DESCRIPTOR.fields:
        value = document.get(descriptor.name)
        if value is None:
            continue
        if descriptor.message_type is not None and not descriptor.message_type.GetOptions().map_entry:
            inner = getattr(message, descriptor.name)
            if isinstance(value, list):
                document[descriptor.name] = [_with_numbers(m, v) for m, v in zip(inner, value, strict=True)]
            else:
                document[descriptor.name] = _with_numbers(inner, value)
        elif descriptor.cpp_type in (descriptor.CPPTYPE_INT64, descriptor.CPPTYPE_UINT64):
            document[descriptor.name] = [int(n) for n in value] if isinstance(value, list) else int(value)
    return document
