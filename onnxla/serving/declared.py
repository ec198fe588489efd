"""The inputs and outputs that a configuration lists, compared with the model's; sizes it gives make open ones known."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from onnxla.errors import harmless_line
from onnxla.runtime.signature import ModelSignature, ModelTensor
from onnxla.serving.errors import InvalidRequestError, UnsupportedRequestError
from onnxla.serving.model_config import ModelConfig
from onnxla.serving.tensors import datatype_of

_TRITON = {"TYPE_STRING": "BYTES"}


def narrowed(signature: ModelSignature, config: ModelConfig, rows: Mapping[str, int]) -> ModelSignature:
    """`signature` with the sizes of the inputs that the configuration gives; `rows` is where inputs have their rows,
    which the configuration leaves out.

    Raises InvalidRequestError with everything in which the two differ.
    """
    problems: list[str] = []
    inputs = _compared(config.message.input, signature.inputs, "input", rows, config, problems)
    _compared(config.message.output, signature.outputs, "output", {}, config, problems)
    if problems:
        raise InvalidRequestError("\n".join(map(harmless_line, problems)))
    return replace(signature, inputs=inputs)


def _compared(
    listed: Sequence[Any],
    tensors: Sequence[ModelTensor],
    kind: str,
    rows: Mapping[str, int],
    config: ModelConfig,
    problems: list[str],
) -> tuple[ModelTensor, ...]:
    found = {t.name: t for t in tensors}
    for row in listed:
        tensor = found.get(row.name)
        if tensor is None:
            problems.append(f"{kind} {row.name}: the model has {', '.join(found) or 'none'}")
            continue
        name = type(row).DESCRIPTOR.fields_by_name["data_type"].enum_type.values_by_number[row.data_type].name
        wanted = _TRITON.get(name, name.removeprefix("TYPE_"))
        if row.data_type and wanted != _datatype(tensor):
            problems.append(f"{kind} {row.name}: data_type is {name}, and the model has {tensor}")
        shape = tensor.shape
        if shape is None or not row.dims:
            continue
        place = rows.get(row.name, 0 if kind == "output" and config.max_batch_size else None)
        dims: list[int | None] = [None if n == -1 else int(n) for n in row.dims]
        if place is not None:
            dims.insert(place, None)
        fits = len(dims) == len(shape) and all(
            n is None or not isinstance(m, int) or n == m for n, m in zip(dims, shape, strict=True)
        )
        if not fits:
            problems.append(f"{kind} {row.name}: dims are {list(row.dims)}, and the model has {tensor}")
            continue
        sizes = [m if n is None else n for n, m in zip(dims, shape, strict=True)]
        found[row.name] = ModelTensor(tensor.name, tensor.type, sizes)
    return tuple(found[t.name] for t in tensors)


def _datatype(tensor: ModelTensor) -> str:
    if tensor.dtype is None:
        return "BYTES" if tensor.type == "tensor(string)" else tensor.type
    try:
        return datatype_of(tensor.dtype)
    except UnsupportedRequestError:
        return tensor.type
