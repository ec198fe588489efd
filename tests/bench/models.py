"""The models of a folder, for tables over all of them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx
from onnx import TensorProto

_QUANTISED = {
    "ConvInteger",
    "DequantizeLinear",
    "DynamicQuantizeLSTM",
    "DynamicQuantizeLinear",
    "DynamicQuantizeMatMul",
    "MatMulInteger",
    "MatMulNBits",
    "QGemm",
    "QLinearConv",
    "QLinearMatMul",
}
_HALF = {TensorProto.FLOAT16, TensorProto.BFLOAT16}


@dataclass(frozen=True)
class Model:
    """One of them: `NAME.onnx`, or `NAME/model.onnx`."""

    name: str
    path: Path

    @property
    def inputs(self) -> Path | None:
        """The arrays to run it on, in an .npz file beside it; None where they are to be random."""
        path = self.path.with_suffix(".npz")
        return path if path.exists() else None

    def arithmetic(self) -> str:
        """What it computes in: `int8` where anything is quantised, `f16` where weights are of half precision, `f32`."""
        graph = onnx.load(self.path, load_external_data=False).graph
        nodes = list(_nodes(graph.node))
        if any(node.op_type in _QUANTISED for node in nodes):
            return "int8"
        weights = [*graph.initializer, *(attribute.t for node in nodes for attribute in node.attribute)]
        return "f16" if any(weight.data_type in _HALF for weight in weights) else "f32"


def models_of(folder: Path, only: Sequence[str] | None = None) -> list[Model]:
    """The ONNX models of a folder, by name, or some of them. Raises SystemExit where there are none, or not those."""
    paths = [*folder.glob("*.onnx"), *folder.glob("*/model.onnx")]
    if not paths:
        raise SystemExit(f"{folder} holds no NAME.onnx and no NAME/model.onnx")
    found = [Model(path.parent.name if path.parent != folder else path.stem, path) for path in paths]
    if missing := set(only or ()) - {model.name for model in found}:
        raise SystemExit(f"{folder} holds no model {', '.join(sorted(missing))}")
    return sorted((m for m in found if only is None or m.name in only), key=lambda model: model.name)


def _nodes(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """With those of branches and bodies."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            yield from _nodes(attribute.g.node)
