"""Tensors without elements, and scalars, through every operator: ONNX's node tests with dimensions of size 0.

Where onnxruntime gives a result it is ours too; where it refuses, we give a result or say why not, and never that the
fault is ours.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto

import onnxla
from onnxla.conformance.cases import case_index, operator_of, read_case
from onnxla.errors import CompileError, DynamicShapeError, InternalError, OnnxlaError
from onnxla.hlo.types import Array

PER_OPERATOR = 2
ABORTS = ("GRU", "LSTM", "RNN")
"""onnxruntime ends the process, or gives what was in memory, for sequences without steps."""
RANDOM = ("Bernoulli", "Dropout", "RandomNormalLike", "RandomUniformLike")
DIFFERS = {
    "test_squeeze_negative_axes": "an empty list of axes is no list to onnxruntime: it squeezes all",
    "test_split_variable_parts_2d_opset13": "onnxruntime takes an empty list of parts for any number of them",
}


def chosen() -> Iterator[str]:
    """A few tests of each operator, of those on arrays that numpy knows."""
    counts: dict[str, int] = {}
    for name, case in sorted(case_index().items()):
        if case.kind != "node" or "_expanded" in name:
            continue
        read = read_case(name)
        inputs = read.data_sets[0][0]
        plain = all(isinstance(a, np.ndarray) and a.dtype.isbuiltin == 1 and a.dtype != object for a in inputs)
        operator = operator_of(read)
        if plain and inputs and counts.get(operator, 0) < PER_OPERATOR:
            counts[operator] = counts.get(operator, 0) + 1
            yield name


def variants(arrays: list[Array]) -> Iterator[list[Array]]:
    """No elements along the first or last dimension, of the first input or of all that share its size; scalars."""
    ranked = [i for i, a in enumerate(arrays) if a.ndim]
    for axis in (0, -1) if ranked else ():
        size = arrays[ranked[0]].shape[axis]
        alike = [i for i in ranked if arrays[i].shape[axis] == size]
        for emptied in {tuple(alike), (ranked[0],)}:
            yield [_emptied(a, axis) if i in emptied else a for i, a in enumerate(arrays)]
    shapes = {a.shape for a in arrays}
    if len(ranked) == len(arrays) and len(shapes) == 1 and arrays[0].size:
        yield [a.reshape(-1)[0].reshape(()) for a in arrays]


def _emptied(array: Array, axis: int) -> Array:
    return array[:0] if axis == 0 else array[..., :0]


def model_for(model: ModelProto, arrays: list[Array]) -> ModelProto:
    """The model with inputs of the shapes of `arrays`, and outputs of any."""
    changed = ModelProto()
    changed.CopyFrom(model)
    for info, array in zip(changed.graph.input, arrays, strict=False):
        info.type.tensor_type.shape.ClearField("dim")
        for size in array.shape:
            info.type.tensor_type.shape.dim.add().dim_value = size
    for output in changed.graph.output:
        output.type.tensor_type.ClearField("shape")
    return changed


def by_onnxruntime(model: ModelProto, feeds: dict[str, Array]) -> list[Any] | None:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return list(session.run(None, feeds))
    except Exception:  # its errors have no common base
        return None


@pytest.mark.parametrize("name", list(chosen()))
@pytest.mark.filterwarnings("ignore")
def test_nothing(name: str) -> None:
    case = read_case(name)
    names = [i.name for i in case.model.graph.input]
    operator = operator_of(case)
    for arrays in variants(list(case.data_sets[0][0])):
        model, feeds = model_for(case.model, arrays), dict(zip(names, arrays, strict=False))
        expected = None if operator in ABORTS or name in DIFFERS else by_onnxruntime(model, feeds)
        shapes = [a.shape for a in arrays]
        try:
            results = onnxla.compile(model).run(None, feeds)
        except InternalError:
            raise
        except OnnxlaError as error:
            kinds = {p.kind for p in error.problems} if isinstance(error, CompileError) else set()
            assert expected is None or isinstance(error, DynamicShapeError), f"{shapes}: {error}"
            assert CompileError not in kinds or "onnxla's fault" not in str(error), f"{shapes}: {error}"
            continue
        for ours, theirs in zip(results, expected or (), strict=False):
            assert ours.shape == theirs.shape, shapes
            if operator not in RANDOM and ours.dtype.isbuiltin == 1:
                np.testing.assert_allclose(ours, theirs, 1e-3, 1e-4, err_msg=str(shapes))
