"""The inputs and outputs of a compiled model as its user sees them, with symbolic dimensions by name."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from onnxla.runtime.program import Program
from onnxla.runtime.results import ChosenTextResult, MapsResult, TensorResult, TextResult
from onnxla.runtime.tensors import TensorSignature, dtype_of_onnx_type

STRINGS = "tensor(string)"
Dimension: TypeAlias = int | str | None
"""A size, the name of a symbolic dimension, or None where the model says nothing."""


@dataclass(frozen=True)
class ModelTensor:
    """An input or output, with the attributes that onnxruntime's `get_inputs()` gives."""

    name: str
    type: str
    """`tensor(float)`, as onnxruntime spells it."""
    shape: list[Dimension] | None
    """None where the model does not give the rank."""

    @property
    def dtype(self) -> np.dtype[Any] | None:
        """The dtype of its arrays; None for strings and for what is not a tensor."""
        return dtype_of_onnx_type(self.type)

    @property
    def is_static(self) -> bool:
        return self.shape is not None and all(isinstance(n, int) for n in self.shape)

    def mismatch(self, shape: tuple[int, ...]) -> str:
        """Why an array of `shape` cannot be this value; empty where it can."""
        fits = self.shape is None or (
            len(shape) == len(self.shape)
            and all(size == n or not isinstance(n, int) for size, n in zip(shape, self.shape, strict=True))
        )
        return "" if fits else f"{self.name}: shape {list(shape)}, the model takes {self}"

    def __str__(self) -> str:
        dimensions = "..." if self.shape is None else ",".join("?" if n is None else str(n) for n in self.shape)
        return f"{self.name} {self.type}[{dimensions}]"


@dataclass(frozen=True)
class ModelSignature:
    """Inputs and outputs in the model's order."""

    inputs: tuple[ModelTensor, ...]
    outputs: tuple[ModelTensor, ...]
    defaults: tuple[str, ...] = ()
    """Inputs that have a value in the model, which the code was made for: they are no inputs any more."""


def model_tensor(signature: TensorSignature) -> ModelTensor:
    """An input or output of one program as part of a model's signature."""
    return ModelTensor(signature.name, signature.type, list(signature.shape))


def input_tensors(program: Program) -> tuple[ModelTensor, ...]:
    """The inputs of one program as part of a model's signature."""
    return tuple(
        ModelTensor(s.name, STRINGS, list(s.shape)) if s.name in program.vocabularies else model_tensor(s)
        for s in program.inputs
    )


def result_tensors(program: Program, declared: Sequence[ModelTensor]) -> tuple[ModelTensor, ...]:
    """The outputs of one program as part of a model's signature; types of sequences are those declared."""
    if not program.results:
        return tuple(map(model_tensor, program.outputs))
    found = []
    for tensor, result in zip(declared, program.results, strict=True):
        match result:
            case TensorResult(index):
                made = program.outputs[index]
                found.append(ModelTensor(tensor.name, made.type, list(made.shape)))
            case ChosenTextResult(index):
                found.append(ModelTensor(tensor.name, STRINGS, list(program.outputs[index].shape)))
            case TextResult(shape):
                found.append(ModelTensor(tensor.name, STRINGS, list(shape)))
            case MapsResult(keys=keys):
                key = "string" if keys and isinstance(keys[0], str) else "int64"
                found.append(ModelTensor(tensor.name, f"seq(map({key},tensor(float)))", None))
            case _:
                found.append(ModelTensor(tensor.name, tensor.type, None))
    return tuple(found)
