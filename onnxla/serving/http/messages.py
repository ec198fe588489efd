"""An inference request and its answer in HTTP: JSON, and behind it tensors as bytes (the binary extension).

    body = JSON (of Inference-Header-Content-Length bytes) + the tensors that have binary_data_size, in their order

KServe's "Open Inference Protocol", with Triton's "binary tensor data" and "schedule policy" extensions.
"""

import json
from dataclasses import dataclass
from typing import Any

from onnxla.errors import harmless_line
from onnxla.serving.errors import InvalidRequestError, ServingError
from onnxla.serving.parameters import Problems, check_output, check_parameters, deadline_of, in_shared_memory, waits
from onnxla.serving.requests import Array, InferRequest, InferResponse
from onnxla.serving.tensors import datatype_of, from_json, from_raw, to_json, to_raw

_loads = json.JSONDecoder().decode
_dumps = json.JSONEncoder(separators=(",", ":"), ensure_ascii=True).encode


@dataclass(frozen=True, slots=True)
class Form:
    """Which outputs a client reads as bytes."""

    default: bool = False
    by_name: dict[str, bool] | None = None

    def binary(self, name: str) -> bool:
        return self.default if self.by_name is None else self.by_name.get(name, self.default)


_JSON = Form()


def read_json(text: bytes | memoryview, what: str) -> dict[str, Any]:
    """The JSON object in `text`. Raises InvalidRequestError."""
    try:
        value = _loads(str(text, "utf-8"))
    except RecursionError:
        raise InvalidRequestError(f"{what} is JSON that is nested too deeply") from None
    except ValueError as error:
        raise InvalidRequestError(f"{what} is not JSON: {harmless_line(str(error))}") from None
    if type(value) is not dict:
        raise InvalidRequestError(f"{what} is not a JSON object")
    return value


def decode(model: str, version: str, body: bytes, json_length: bytes | None) -> tuple[InferRequest, Form]:
    """The request in `body`. Raises InvalidRequestError with all that is wrong with it, or UnsupportedRequestError."""
    size = len(body)
    if json_length is None:
        text: bytes | memoryview = body
        place = size
    else:
        place = _header_length(json_length, size)
        text = body[:place]
    message = read_json(text, "the request")
    problems = Problems()
    identity = message.get("id", "")
    if type(identity) is not str:
        problems.append("id is not a string")
    parameters = check_parameters(message.get("parameters"), "the request's parameters", problems)
    inputs = _inputs(message.get("inputs"), body, place, problems)
    outputs, form = _outputs(message.get("outputs"), parameters.get("binary_data_output") is True, problems)
    deadline, wait = deadline_of(parameters, problems), waits(parameters, problems)
    problems.require_none()
    return InferRequest(model, inputs, version, outputs, identity, deadline, wait), form


def _header_length(text: bytes, size: int) -> int:
    if not text.isdigit() or len(text) > 18:
        raise InvalidRequestError("Inference-Header-Content-Length is not a number of bytes")
    length = int(text)
    if length > size:
        raise InvalidRequestError(f"Inference-Header-Content-Length is {length}, and the body has {size} bytes")
    return length


def _inputs(listed: object, body: bytes, place: int, problems: Problems) -> dict[str, Array]:
    inputs: dict[str, Array] = {}
    if type(listed) is not list:
        problems.append("inputs is not a list of tensors")
        return inputs
    end = len(body)
    for number, tensor in enumerate(listed):
        name = tensor.get("name") if type(tensor) is dict else None
        if type(name) is not str:
            problems.append(f"input number {number} has no name")
            continue
        if name in inputs:
            problems.append(f"input '{harmless_line(name)}' is given twice")
            continue
        parameters = check_parameters(tensor.get("parameters"), f"input '{harmless_line(name)}': parameters", problems)
        if in_shared_memory(parameters, f"input '{harmless_line(name)}'", problems):
            inputs[name] = None  # type: ignore[assignment]  # as below
            continue
        length = parameters.get("binary_data_size")
        try:
            if length is None:
                inputs[name] = from_json(name, tensor.get("datatype"), tensor.get("shape"), tensor.get("data"))
                continue
            if type(length) is not int or length < 0:
                problems.append(f"input '{harmless_line(name)}': binary_data_size is not a number of bytes")
                return inputs
            if "data" in tensor:
                problems.append(f"input '{harmless_line(name)}' has both data and binary_data_size")
            if place + length > end:
                problems.append(
                    f"input '{harmless_line(name)}': binary_data_size is {length}, and {end - place} bytes are left"
                )
                return inputs
            raw = memoryview(body)[place : place + length]
            place += length
            inputs[name] = from_raw(name, tensor.get("datatype"), tensor.get("shape"), raw)
        except InvalidRequestError as error:
            problems.append(str(error))
            inputs[name] = None  # type: ignore[assignment]  # so that its second time is found; never handed on
    if place != end:
        problems.append(f"{end - place} bytes behind the request belong to no input")
    return inputs


def _outputs(listed: object, binary: bool, problems: Problems) -> tuple[tuple[str, ...] | None, Form]:
    if listed is None:
        return None, Form(True) if binary else _JSON
    if type(listed) is not list:
        problems.append("outputs is not a list")
        return None, _JSON
    by_name: dict[str, bool] = {}
    for number, output in enumerate(listed):
        name = output.get("name") if type(output) is dict else None
        if type(name) is not str:
            problems.append(f"output number {number} has no name")
            continue
        if name in by_name:
            problems.append(f"output '{harmless_line(name)}' is asked for twice")
        parameters = check_parameters(output.get("parameters"), f"output '{harmless_line(name)}': parameters", problems)
        check_output(parameters, f"output '{harmless_line(name)}'", problems)
        wanted = parameters.get("binary_data", binary)
        if type(wanted) is not bool:
            problems.append(f"output '{harmless_line(name)}': binary_data is neither true nor false")
        by_name[name] = wanted is True
    return (tuple(by_name) if by_name else None), Form(binary, by_name)


def encode(response: InferResponse, form: Form) -> tuple[int | None, list[bytes | memoryview]]:
    """(bytes of the JSON, or None where that is all; the body in pieces)."""
    outputs: list[dict[str, Any]] = []
    raw: list[bytes | memoryview] = []
    for name, array in response.outputs.items():
        tensor: dict[str, Any] = {
            "name": name,
            "datatype": datatype_of(array.dtype, name),
            "shape": array.shape,
        }
        if form.binary(name):
            data = to_raw(array)
            raw.append(data)
            tensor["parameters"] = {"binary_data_size": len(data)}
        else:
            tensor["data"] = to_json(name, array)
        outputs.append(tensor)
    message: dict[str, Any] = {"model_name": response.model, "model_version": response.version, "outputs": outputs}
    if response.id:
        message["id"] = response.id
    text = _dumps(message).encode()
    return (len(text) if raw else None), [text, *raw]


def encode_error(error: ServingError) -> bytes:
    return _dumps({"error": str(error)}).encode()
