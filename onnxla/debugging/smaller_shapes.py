"""Smaller arrays on which a case still fails: every axis of one size cut short, of inputs alone or of weights too."""

from collections.abc import Callable, Iterator

import numpy as np
from onnx import ModelProto, TensorProto, numpy_helper

from onnxla.debugging.budget import Budget
from onnxla.debugging.case import Case, judged
from onnxla.debugging.model_part import tensor_of, value_info
from onnxla.errors import InputError
from onnxla.frontends.onnx.model_file import OnnxModel
from onnxla.runtime.tensors import Array

_MOST_BYTES = 64 << 20
"""Models beyond this are left as they are: each try writes one."""
_MOST_TRIES = 60
_SIZES_LIST = 16
"""Longest list of integers that may be a shape."""


def with_smaller_shapes(case: Case, fails: Callable[[Case], bool], threads: int | None, budget: Budget) -> Case:
    """`case`, or a case with shorter axes for which `fails` holds. Weights must be inside."""
    if case.model.raw or case.model.folder is not None or case.model.proto.ByteSize() > _MOST_BYTES:
        return case
    tries = 0
    smaller = True
    while smaller and tries < _MOST_TRIES and not budget.is_over:
        smaller = False
        for proto, feeds in _candidates(case):
            tries += 1
            if tries > _MOST_TRIES or budget.is_over:
                break
            budget.says("trying smaller shapes")
            try:
                candidate = judged(proto, feeds, threads)
            except InputError:  # sizes that do not go together
                continue
            if fails(candidate):
                case, smaller = candidate, True
                break
    return case


def _candidates(case: Case) -> Iterator[tuple[ModelProto, dict[str, Array]]]:
    """Each size of an input's axis, the largest first, made 1, 2, 3 or half."""
    sizes = sorted({n for array in case.feeds.values() for n in array.shape if n > 1}, reverse=True)
    for old in sizes:
        for new in sorted({n for n in (1, 2, 3, old // 2) if n < old}):
            for weights_too in (False, True):
                proto = _cut_model(case.model, old, new, weights_too)
                feeds = {name: _cut(array, old, new) for name, array in case.feeds.items()}
                del proto.graph.input[:]
                proto.graph.input.extend(value_info(name, array) for name, array in feeds.items())
                yield proto, feeds


def _cut_model(model: OnnxModel, old: int, new: int, weights_too: bool) -> ModelProto:
    """A copy, outputs of open shape: lists of sizes have `new` for `old`, and weights are cut where that is asked."""
    proto = ModelProto()
    proto.CopyFrom(model.proto)
    for output in proto.graph.output:
        output.type.tensor_type.ClearField("shape")
    for tensor in proto.graph.initializer:
        if tensor.data_type == TensorProto.STRING:
            continue
        array = np.asarray(numpy_helper.to_array(tensor))
        changed = array
        if array.dtype == np.int64 and array.ndim == 1 and array.size <= _SIZES_LIST:
            changed = np.where(array == old, new, array)
        elif weights_too:
            changed = _cut(array, old, new)
        if changed is not array:
            tensor.CopyFrom(tensor_of(tensor.name, changed))
    return proto


def _cut(array: Array, old: int, new: int) -> Array:
    if old not in array.shape:
        return array
    return np.ascontiguousarray(array[tuple(slice(new if n == old else n) for n in array.shape)])
