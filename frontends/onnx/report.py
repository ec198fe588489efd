"""`explain`: what an import would say about a model, as data and without raising."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy.typing as npt

from onnxla.config import CompileOptions, Limits
from onnxla.errors import CompileError
from onnxla.frontends.model_report import ModelReport
from onnxla.frontends.onnx.importer import try_import
from onnxla.frontends.onnx.model_file import ModelSource, OnnxModel, read_model
from onnxla.frontends.onnx.operator_names import normal_domain, qualified_name
from onnxla.frontends.onnx.signature import signature_of
from onnxla.frontends.onnx.structure import subgraphs


@dataclass(frozen=True)
class Report(ModelReport):
    """An ONNX model; its operators include those of subgraphs."""

    opsets: Mapping[str, int]

    def heading(self) -> str:
        opsets = ", ".join(f"{domain or 'ai.onnx'} {version}" for domain, version in self.opsets.items())
        return f"{self.name}: {self.total} nodes, {len(self.operators)} operators, opset {opsets}"

    def facts(self) -> Mapping[str, object]:
        return {"opsets": {domain or "ai.onnx": version for domain, version in self.opsets.items()}}


def explain(
    source: ModelSource,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    dims: Mapping[str, int] | None = None,
    constants: Mapping[str, npt.ArrayLike] | None = None,
    folder: str | os.PathLike[str] | None = None,
    options: CompileOptions | None = None,
    limits: Limits | None = None,
) -> Report:
    """Import the model and report every problem. Raises ModelFormatError only where there is no valid model."""
    model = read_model(source, folder=folder)
    try:
        result = try_import(model, shapes=shapes, dims=dims, constants=constants, options=options, limits=limits)
        problems = result.problems
    except CompileError as error:
        problems = error.problems
    return Report(model.name, signature_of(model), count_operators(model), problems, model.opsets)


def count_operators(model: OnnxModel) -> dict[str, int]:
    """How often each operator occurs in the graph and its subgraphs, the most frequent first."""
    counts: Counter[str] = Counter()
    graphs = [model.proto.graph]
    while graphs:
        for node in graphs.pop().node:
            counts[qualified_name(node.op_type, normal_domain(node.domain))] += 1
            graphs += [subgraph for _, subgraph in subgraphs(node)]
    return dict(counts.most_common())
