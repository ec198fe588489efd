"""Why a value cannot be an input, in onnxruntime's words."""

from typing import Any

import numpy as np

from onnxla.compat.node_arg import NodeArg
from onnxla.compat.types import type_of_value
from onnxla.runtime.device_arrays import is_on_gpu


def misfit(arg: NodeArg, value: Any) -> str:
    """What is wrong with the value of an input; empty where nothing is known to be."""
    if arg.type.startswith("seq(tensor("):
        return _misfit_of_sequence(arg, value)
    if not arg.type.startswith("tensor("):
        return ""
    if value is None:
        return f"{arg.name} is None, and no optional"
    if not isinstance(value, np.ndarray) and not is_on_gpu(value):
        try:
            value = np.asarray(value)
        except Exception as error:  # objects may raise anything
            return f"{arg.name}: {type(value).__name__} is no tensor: {error}"
    shape, actual = tuple(value.shape), type_of_value(value)
    if actual != arg.type:
        return f"Unexpected input data type. Actual: ({actual}) , expected: ({arg.type})"
    end = "Please fix either the inputs/outputs or the model."
    if not arg.has_rank:
        return ""
    if len(shape) != len(arg.shape):
        return f"Invalid rank for input: {arg.name} Got: {len(shape)} Expected: {len(arg.shape)} {end}"
    wrong = "".join(
        f" index: {k} Got: {got} Expected: {expected}\n"
        for k, (got, expected) in enumerate(zip(shape, arg.shape, strict=True))
        if isinstance(expected, int) and got != expected
    )
    return f"Got invalid dimensions for input: {arg.name} for the following indices\n{wrong} {end}" if wrong else ""


def _misfit_of_sequence(arg: NodeArg, value: Any) -> str:
    if not isinstance(value, (list, tuple)):
        return f"input with name: '{arg.name}' expected to be of type: {arg.type} but received {type(value).__name__}"
    element = arg.type.removeprefix("seq(").removesuffix(")")
    for number, part in enumerate(value):
        actual = type_of_value(np.asarray(part))
        if actual != element:
            return f"element {number} of input {arg.name}: Actual: ({actual}) , expected: ({element})"
    return ""
