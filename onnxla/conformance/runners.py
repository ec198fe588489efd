"""One case through our backend, and through onnxruntime."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnxruntime
from onnx import ModelProto, TensorProto, helper, numpy_helper

from onnxla.backend import OnnxlaBackend
from onnxla.conformance.cases import Case
from onnxla.conformance.judge import compare
from onnxla.errors import OnnxlaError


@dataclass(frozen=True)
class Outcome:
    """What came of a case."""

    status: str
    """`pass`, `reject` (an error says why it cannot be done) or `fail`."""
    kind: str = ""
    """The class of the error, or `mismatch`."""
    message: str = ""


def run_onnxla(case: Case, device: str = "CPU") -> Outcome:
    """Through our backend: each data set twice, the second result the same bit for bit, the inputs untouched."""
    try:
        prepared = OnnxlaBackend.prepare(case.model, device)
        for inputs, expected in case.data_sets:
            before = _bits(inputs)
            results = prepared.run(inputs)
            if _bits(results) != _bits(prepared.run(inputs)):
                return Outcome("fail", "unstable", "a second run gave other bits")
            if _bits(inputs) != before:
                return Outcome("fail", "inputs changed", "running wrote to an input")
            difference = compare(case, expected, results)
            if difference:
                return Outcome("fail", "mismatch", difference)
    except OnnxlaError as error:
        return Outcome("reject", type(error).__name__, str(error))
    except Exception as error:  # the table is about all cases, also where we are wrong
        return Outcome("fail", type(error).__name__, str(error))
    return Outcome("pass")


def run_onnxruntime(case: Case) -> Outcome:
    """Through onnxruntime's CPU provider, as it is by default.

    Its Python interface has no bfloat16, float8 or 4-bit arrays: inputs of these types become initializers, and
    outputs of them are cast, so that it is judged by what it computes.
    """
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    for inputs, expected in case.data_sets:
        try:
            model, feeds = _for_onnxruntime(case.model, inputs, expected)
            session = onnxruntime.InferenceSession(
                model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # its errors have no common base
            return Outcome("reject", type(error).__name__, str(error))
        try:
            results = session.run(None, feeds)
        except Exception as error:
            return Outcome("fail", type(error).__name__, str(error))
        narrow = [r.astype(e.dtype) if _is_narrow(e) else r for e, r in zip(expected, results, strict=True)]
        difference = compare(case, expected, narrow)
        if difference:
            return Outcome("fail", "mismatch", difference)
    return Outcome("pass")


def _for_onnxruntime(
    model: ModelProto, inputs: Sequence[Any], expected: Sequence[Any]
) -> tuple[ModelProto, Mapping[str, Any]]:
    """The model without narrow types at its edges, and the inputs that are left."""
    initialized = {tensor.name for tensor in model.graph.initializer}
    names = [i.name for i in model.graph.input if i.name not in initialized]
    fed = dict(zip(names, inputs, strict=False))
    feeds = {n: v if v is None or isinstance(v, list) else np.asarray(v) for n, v in fed.items() if not _is_narrow(v)}
    narrow = {n: v for n, v in fed.items() if _is_narrow(v)}
    if not narrow and not any(map(_is_narrow, expected)):
        return model, feeds
    changed = ModelProto()
    changed.CopyFrom(model)
    graph = changed.graph
    kept = [i for i in graph.input if i.name not in narrow]
    del graph.input[:]
    graph.input.extend(kept)
    graph.initializer.extend(numpy_helper.from_array(v, n) for n, v in narrow.items())
    for output, value in zip(graph.output, expected, strict=True):
        if _is_narrow(value):
            code = TensorProto.INT32 if value.dtype.name.startswith(("int", "uint")) else TensorProto.FLOAT
            graph.node.append(helper.make_node("Cast", [output.name], [f"{output.name}/wide"], to=code))
            output.name, output.type.tensor_type.elem_type = f"{output.name}/wide", code
    return changed, feeds


def _is_narrow(value: Any) -> bool:
    """Whether it is an array of a type that is not numpy's own."""
    return isinstance(value, np.ndarray) and value.dtype.isbuiltin != 1


def _bits(value: Any) -> Any:
    """What two runs must have in common."""
    if value is None:
        return None
    if isinstance(value, (list, tuple)):
        return [_bits(v) for v in value]
    array = np.asarray(value)
    return (array.shape, str(array.dtype), array.tolist() if array.dtype == object else array.tobytes())
