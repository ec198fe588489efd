"""What a session says of its model: inputs, outputs, initializers that a run may replace, and metadata."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import onnx
from onnx import ModelProto, TypeProto, ValueInfoProto
from onnx.shape_inference import InferenceError

from onnxla.frontends.onnx.signature import onnx_type_name

_NO_VERSION = 2**63 - 1
"""What onnxruntime gives for a model that states none."""


@dataclass(frozen=True)
class NodeArg:
    """An input or output: `shape` has sizes, names of symbolic dimensions, and None where nothing is known. It is empty
    for scalars, for tensors of unknown rank, and for what is no tensor, as onnxruntime's is."""

    name: str
    type: str
    shape: list[int | str | None]
    has_rank: bool = field(default=True, compare=False, repr=False)
    """Whether an empty `shape` means that there are no dimensions."""

    def __str__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"


@dataclass(frozen=True)
class ModelMetadata:
    """The facts that a model states about itself."""

    custom_metadata_map: Mapping[str, str]
    description: str
    domain: str
    graph_description: str
    graph_name: str
    producer_name: str
    version: int


def metadata_of(model: ModelProto) -> ModelMetadata:
    """As onnxruntime reads it."""
    return ModelMetadata(
        {entry.key: entry.value for entry in model.metadata_props},
        model.doc_string,
        model.domain,
        model.graph.doc_string,
        model.graph.name,
        model.producer_name,
        model.model_version if model.HasField("model_version") else _NO_VERSION,
    )


def node_arg(info: ValueInfoProto) -> NodeArg:
    return NodeArg(info.name, onnx_type_name(info.type), _shape(info.type), info.type.tensor_type.HasField("shape"))


def output_args(model: ModelProto) -> list[NodeArg]:
    """The outputs, with the sizes that shape inference finds where the model leaves them open."""
    declared = [node_arg(output) for output in model.graph.output]
    if all(_is_static(output.type) for output in model.graph.output):
        return declared
    try:
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    except (InferenceError, RuntimeError, ValueError):  # of a model that is wrong; compiling says what is
        return declared
    names = {d.dim_param for i in (*model.graph.input, *model.graph.output) for d in i.type.tensor_type.shape.dim}
    found = {output.name: node_arg(output) for output in inferred.graph.output}
    return [_merged(arg, found[arg.name], names) for arg in declared]


def _merged(declared: NodeArg, inferred: NodeArg, names: set[str]) -> NodeArg:
    """Inferred sizes win over declared names; declared names win over inferred ones; names that shape inference makes
    up are none."""
    known = [n if isinstance(n, int) or n in names else None for n in inferred.shape]
    if len(declared.shape) != len(known):
        return declared if declared.has_rank else replace(declared, shape=known, has_rank=inferred.has_rank)
    shape = [
        size if isinstance(size, int) and not isinstance(said, int) else (size if said is None else said)
        for said, size in zip(declared.shape, known, strict=True)
    ]
    return replace(declared, shape=shape)


def _shape(type: TypeProto) -> list[int | str | None]:
    if type.HasField("optional_type"):
        return _shape(type.optional_type.elem_type)
    return [
        d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else d.dim_param or None
        for d in type.tensor_type.shape.dim
    ]


def _is_static(type: TypeProto) -> bool:
    return not type.HasField("tensor_type") or (
        type.tensor_type.HasField("shape") and all(isinstance(n, int) for n in _shape(type))
    )
