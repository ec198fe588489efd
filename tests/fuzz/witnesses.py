"""Does the compiled code say what the interpreter and onnxruntime say?"""

import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

import onnxla
from onnxla.config import CompileOptions
from onnxla.frontends.onnx.importer import import_model
from onnxla.passes.pipelines import optimize
from tests.fuzz.graph import Array, Case
from tests.fuzz.guard import guarded_copy

_NO_KERNEL = (
    "NOT_IMPLEMENTED",
    "No corresponding Numpy type",
    "can't be converted to MLDataType",
    "Type 'tensor(bfloat16)'",
)
"""What onnxruntime says of models that are valid but none of its kernels computes, or whose arrays it cannot take."""


_EITHER_ZERO = ("Max", "Min", "Relu", "Clip", "LeakyRelu", "Celu", "ReduceMax", "ReduceMin")
"""Operators for which zeros of both signs are equal: which of them comes out is not said."""


_PRODUCTS_OF_BYTES = (
    "MatMulInteger",
    "ConvInteger",
    "QLinearMatMul",
    "QLinearConv",
    "DynamicQuantizeMatMul",
    "DynamicQuantizeLSTM",
    "QAttention",
    "QGemm",
)
"""How the names begin of operators whose sums are wrong in onnxruntime where `saturates`."""


class Mismatch(AssertionError):
    """Two witnesses disagree."""


def output_names(case: Case) -> list[str]:
    return [o.name for o in case.model.graph.output]


def compiled(case: Case, options: Mapping[str, Any] | None = None) -> list[Array]:
    """The outputs of the compiled code, from and into memory that ends at a forbidden page.

    Raises Mismatch unless the interpreter agrees, and two threads give the bits of one.
    """
    expected = interpreted(case)
    model = onnxla.compile(case.model.SerializeToString(), options=options)
    feeds = {name: guarded_copy(a) for name, a in case.feeds.items()}
    runs = []
    for model.num_threads in (1, 2):
        runs.append(model.run(None, feeds, out=[guarded_copy(np.zeros_like(a)) for a in expected]))
    for name, one, two in zip(output_names(case), *runs, strict=True):
        if one.tobytes() != two.tobytes():
            raise Mismatch(f"{name}: two threads differ from one")
    compare(case, runs[0], expected, "interpreter")
    return runs[0]


def saved_and_loaded(case: Case) -> list[Array]:
    """The outputs of the code after it went through a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/model.artifact"
        onnxla.compile(case.model.SerializeToString(), options={"opt_level": 0}).save(path)
        return onnxla.load_compiled(path).run(None, case.feeds)


def interpreted(case: Case, options: Mapping[str, Any] | None = None, *, optimized: bool = False) -> list[Array]:
    """The outputs by the interpreter, of the module as imported or after the passes."""
    module = import_model(case.model, shapes={name: a.shape for name, a in case.feeds.items()}).module
    if optimized:
        optimize(module, "cpu", CompileOptions(**(options or {})))
    with np.errstate(all="ignore"):
        return list(module.entry.evaluate(*[case.feeds[i.name] for i in case.model.graph.input]))


@cache
def saturates() -> bool:
    """Whether onnxruntime adds products of u8 and s8 in pairs of 16 bits on this machine, as it does without VNNI."""
    node = helper.make_node("MatMulInteger", ["a", "b"], ["y"])
    infos = [
        helper.make_tensor_value_info(n, t, [64, 64]) for n, t in (("a", TensorProto.UINT8), ("b", TensorProto.INT8))
    ]
    result = helper.make_tensor_value_info("y", TensorProto.INT32, [64, 64])
    opsets = [helper.make_opsetid("", 21)]
    model = helper.make_model(helper.make_graph([node], "pairs", infos, [result]), opset_imports=opsets, ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (sums,) = session.run(None, {"a": np.full((64, 64), 255, np.uint8), "b": np.full((64, 64), 127, np.int8)})
    return bool((sums != 64 * 255 * 127).any())


def by_onnxruntime(case: Case) -> list[Array] | None:
    """None where onnxruntime has no kernel for the model, or one that is wrong on this machine."""
    serialized = case.model.SerializeToString()
    if any(name.encode() in serialized for name in _PRODUCTS_OF_BYTES) and saturates():
        return None
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 4
    settings.intra_op_num_threads = 1
    settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(serialized, settings)
        return list(session.run(None, case.feeds))
    except Exception as error:
        if any(words in f"{type(error).__name__} {error}" for words in _NO_KERNEL):
            return None
        raise


def compare(case: Case, got: Sequence[Array], want: Sequence[Array], witness: str) -> None:
    """Raise Mismatch where two lists of outputs are further apart than the case's tolerances."""
    for name, ours, theirs in zip(output_names(case), got, want, strict=False):
        if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
            shapes = f"{ours.dtype}{ours.shape}, not {theirs.dtype}{theirs.shape}"
            raise Mismatch(f"{name}: {shapes} as {witness} has it")
        if not ours.size or ours.tobytes() == theirs.tobytes():
            continue
        a, b = ours.astype(np.float64), theirs.astype(np.float64)
        with np.errstate(all="ignore"):
            near = np.abs(a - b) <= case.tolerances.get(name, 0.0) * 2 + (1e-7 if ours.dtype.kind not in "iub" else 0)
        far = ~near & ~(np.isnan(a) & np.isnan(b)) & (a != b)
        if case.special and not any(node.op_type in _EITHER_ZERO for node in case.model.graph.node):
            far |= (a == 0) & (b == 0) & (np.signbit(a) != np.signbit(b))
        if ours.dtype.kind in "iu":
            far |= (ours != theirs) & (case.tolerances.get(name, 0.0) == 0)
        if far.any():
            at = tuple(int(i) for i in np.argwhere(far)[0])
            count = f"{int(far.sum())} of {far.size} values differ"
            raise Mismatch(f"{name}: {count}; at {at} compiled {ours[at]}, {witness} {theirs[at]}")
