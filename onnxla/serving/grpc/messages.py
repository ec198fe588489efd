"""An inference request and its answer in gRPC: tensors as raw bytes, or typed contents."""

from collections.abc import Mapping
from typing import Any

from tritonclient.grpc import service_pb2 as pb

from onnxla.errors import harmless_line
from onnxla.serving.errors import InvalidRequestError
from onnxla.serving.parameters import Problems, check_output, deadline_of, in_shared_memory, waits
from onnxla.serving.requests import Array, InferRequest, InferResponse
from onnxla.serving.tensors import checked_type, datatype_of, from_numbers, from_raw, of_strings, to_raw

_CONTENTS: dict[str, str] = {
    "BOOL": "bool_contents",
    "INT8": "int_contents",
    "INT16": "int_contents",
    "INT32": "int_contents",
    "INT64": "int64_contents",
    "UINT8": "uint_contents",
    "UINT16": "uint_contents",
    "UINT32": "uint_contents",
    "UINT64": "uint64_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
    "BYTES": "bytes_contents",
}
"""Where the protocol has the elements of each datatype; FP16 and BF16 are raw bytes alone."""


def parameters_of(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Protobuf's parameters as Python's values."""
    return {name: getattr(value, kind) for name, value in parameters.items() if (kind := value.WhichOneof(_CHOICE))}


_CHOICE = "parameter_choice"


def decode(message: Any, deadline: float | None) -> InferRequest:
    """The request in a `ModelInferRequest`. `deadline`: gRPC's own; the earlier one holds.

    Raises InvalidRequestError with all that is wrong with it, or UnsupportedRequestError.
    """
    problems = Problems()
    wait = True
    if message.parameters:
        parameters = parameters_of(message.parameters)
        own = deadline_of(parameters, problems)
        if own is not None:
            deadline = own if deadline is None else min(own, deadline)
        wait = waits(parameters, problems)
    raw = message.raw_input_contents
    tensors = message.inputs
    if raw and len(raw) != len(tensors):
        problems.append(f"there are {len(tensors)} inputs and {len(raw)} raw_input_contents")
        raw = ()
    inputs: dict[str, Array] = {}
    for number, tensor in enumerate(tensors):
        name = tensor.name
        if name in inputs:
            problems.append(f"input '{harmless_line(name)}' is given twice")
            continue
        if tensor.parameters and in_shared_memory(
            parameters_of(tensor.parameters), f"input '{harmless_line(name)}'", problems
        ):
            inputs[name] = None  # type: ignore[assignment]  # as below
            continue
        try:
            if raw:
                if tensor.HasField("contents"):
                    problems.append(f"input '{harmless_line(name)}' has contents beside raw_input_contents")
                inputs[name] = from_raw(name, tensor.datatype, tuple(tensor.shape), raw[number])
            else:
                inputs[name] = _from_contents(name, tensor)
        except InvalidRequestError as error:
            problems.append(str(error))
            inputs[name] = None  # type: ignore[assignment]  # so that its second time is found; never handed on
    outputs = _outputs(message.outputs, problems) if message.outputs else None
    problems.require_none()
    return InferRequest(message.model_name, inputs, message.model_version, outputs, message.id, deadline, wait)


def _from_contents(name: str, tensor: Any) -> Array:
    datatype = tensor.datatype
    dtype, shape, count = checked_type(name, datatype, tuple(tensor.shape))
    field = _CONTENTS.get(datatype)
    if field is None:
        raise InvalidRequestError(f"input '{harmless_line(name)}': {datatype} is sent as raw_input_contents")
    filled = [descriptor.name for descriptor, _ in tensor.contents.ListFields()]
    if filled not in ([], [field]):
        raise InvalidRequestError(
            f"input '{harmless_line(name)}': {datatype} is sent in {field}, and {', '.join(filled)} was"
        )
    values = getattr(tensor.contents, field)
    if len(values) != count:
        raise InvalidRequestError(
            f"input '{harmless_line(name)}': shape {list(shape)} has {count} elements, and {field} has {len(values)}"
        )
    if datatype == "BYTES":
        return of_strings(list(values), shape)
    return from_numbers(name, datatype, dtype, list(values)).reshape(shape)


def _outputs(listed: Any, problems: Problems) -> tuple[str, ...]:
    names = [output.name for output in listed]
    for place, output in enumerate(listed):
        if output.name in names[:place]:
            problems.append(f"output '{harmless_line(output.name)}' is asked for twice")
        if output.parameters:
            check_output(parameters_of(output.parameters), f"output '{harmless_line(output.name)}'", problems)
    return tuple(names)


def encode(response: InferResponse) -> Any:
    """The `ModelInferResponse`, its tensors as raw bytes."""
    message = pb.ModelInferResponse(model_name=response.model, model_version=response.version, id=response.id)
    for name, array in response.outputs.items():
        message.outputs.add(name=name, datatype=datatype_of(array.dtype, name), shape=array.shape)
        message.raw_output_contents.append(bytes(to_raw(array)))
    return message
