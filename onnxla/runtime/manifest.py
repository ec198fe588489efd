"""What the manifest of an artifact says of tensors, signatures, steps and results, in JSON and back.

Whatever is read back raises ArtifactError where it is not of the type that it was written with.
"""

import json
from collections.abc import Sequence
from typing import Any, TypeAlias

from onnxla.errors import ArtifactError
from onnxla.runtime.program import Step
from onnxla.runtime.results import Result, indices_of, result_of_json
from onnxla.runtime.signature import ModelSignature, ModelTensor
from onnxla.runtime.tensors import Array, TensorSignature, element_of_dtype

Json: TypeAlias = Any
STRING = "string"
"""The element type of constants that are strings."""


def typed(value: Json, kind: type) -> Any:
    """`value`, which must be of exactly this type: a bool is no number."""
    if type(value) is not kind:
        raise ArtifactError(f"the manifest is malformed: {str(value)[:60]!r} is not of type {kind.__name__}")
    return value


def count(value: Json) -> int:
    """A size."""
    number: int = typed(value, int)
    if not 0 <= number < 1 << 63:
        raise ArtifactError(f"the manifest is malformed: {number} is not a size")
    return number


def names_of_json(values: Json) -> tuple[str, ...]:
    return tuple(typed(value, str) for value in typed(values, list))


def shape_of_json(value: Json) -> tuple[int, ...]:
    return tuple(count(n) for n in typed(value, list))


def tensors_json(tensors: Sequence[TensorSignature]) -> Json:
    """Tensors as rows of name, element type and shape."""
    return [[t.name, t.element, list(t.shape)] for t in tensors]


def tensors_of_json(rows: Json) -> tuple[TensorSignature, ...]:
    return tuple(TensorSignature(typed(n, str), typed(e, str), shape_of_json(s)) for n, e, s in typed(rows, list))


def signature_json(signature: ModelSignature) -> Json:
    """The inputs and outputs of a model."""
    return {
        "inputs": [[t.name, t.type, t.shape] for t in signature.inputs],
        "outputs": [[t.name, t.type, t.shape] for t in signature.outputs],
        "defaults": list(signature.defaults),
    }


def signature_of_json(stored: Json) -> ModelSignature:
    rows = typed(stored, dict)
    return ModelSignature(
        _model_tensors(rows["inputs"]),
        _model_tensors(rows["outputs"]),
        names_of_json(rows["defaults"]),
    )


def _model_tensors(rows: Json) -> tuple[ModelTensor, ...]:
    tensors = []
    for name, kind, shape in typed(rows, list):
        sizes: Sequence[Json] | None = None if shape is None else typed(shape, list)
        if sizes is not None and not all(n is None or type(n) in (int, str) for n in sizes):
            raise ArtifactError(f"the manifest is malformed: shape {sizes}")
        tensors.append(ModelTensor(typed(name, str), typed(kind, str), None if sizes is None else list(sizes)))
    return tuple(tensors)


def step_json(step: Step) -> Json:
    """A step as a row."""
    plain = (step.name, step.op, step.source, step.bytes, step.flops, step.depth, step.kernel, step.tasks, step.effort)
    return [*plain, step.weight_bytes, list(step.also)]


def step_of_json(row: Json) -> Step:
    name, op, source, size, flops, depth, kernel, tasks, effort, weight_bytes, also = row
    return Step(
        typed(name, str),
        typed(op, str),
        typed(source, str),
        count(size),
        count(flops),
        count(depth),
        typed(kernel, str),
        count(tasks),
        count(effort),
        count(weight_bytes),
        names_of_json(also),
    )


def results_of_json(rows: Json, outputs: Sequence[TensorSignature]) -> tuple[Result, ...]:
    """How a model's outputs are made of `outputs`, each of which must be taken once, in order."""
    results = tuple(map(result_of_json, typed(rows, list)))
    if results and [i for r in results for i in indices_of(r)] != list(range(len(outputs))):
        raise ArtifactError("the manifest is malformed: its results are not made of its outputs")
    return results


def vocabularies_of_json(rows: Json) -> dict[str, tuple[str, ...]]:
    """The words of inputs of strings."""
    return {typed(name, str): names_of_json(words) for name, words in typed(rows, list)}


def constant_data(value: Array) -> tuple[str, bytes]:
    """The element type of a constant, and its bytes in an artifact: of strings a list in JSON."""
    if value.dtype.kind in "OSU":
        return STRING, json.dumps(value.astype(str).reshape(-1).tolist()).encode()
    return element_of_dtype(value.dtype), value.tobytes()
