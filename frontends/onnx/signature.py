"""The inputs and outputs that an ONNX model declares."""

from onnx import TensorProto, TypeProto, ValueInfoProto

from onnxla.errors import HloError
from onnxla.frontends.onnx.element_types import code_of_element, element_of_code
from onnxla.frontends.onnx.model_file import ModelSource, OnnxModel, read_model
from onnxla.frontends.signature import Dimension, Signature, TensorSpec
from onnxla.hlo.types import S64, ElementType, TensorType

STRINGS = "tensor(string)"
MOST_DIMENSIONS = 64
"""What numpy's arrays may have."""


def model_signature(source: ModelSource) -> Signature:
    """The signature as the model declares it. Cheap: weights are not touched and nothing is imported."""
    return signature_of(read_model(source))


def signature_of(model: OnnxModel) -> Signature:
    """As `model_signature`, of a model that is read already."""
    graph = model.proto.graph
    initialized = {t.name for t in graph.initializer} | {t.values.name for t in graph.sparse_initializer}
    specs = [declared_spec(i) for i in graph.input]
    return Signature(
        tuple(s for s in specs if s.name not in initialized),
        tuple(declared_spec(o) for o in graph.output),
        tuple(s for s in specs if s.name in initialized),
    )


def declared_spec(info: ValueInfoProto) -> TensorSpec:
    """A ValueInfoProto as a spec; a negative size counts as unknown."""
    kind = info.type.WhichOneof("value")
    if kind != "tensor_type":
        return TensorSpec(info.name, None, None, onnx_type_name(info.type))
    tensor = info.type.tensor_type
    try:
        element: ElementType | None = element_of_code(tensor.elem_type)
    except HloError:
        element = None
    shape: tuple[Dimension, ...] | None = None
    if tensor.HasField("shape"):
        shape = tuple(
            d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else d.dim_param or None
            for d in tensor.shape.dim
        )
    return TensorSpec(info.name, element, shape, onnx_type_name(info.type))


def code_name(code: int) -> str:
    """`float`, `int64`, `bfloat16`: an element type as onnxruntime spells it inside `tensor(...)`."""
    return TensorProto.DataType.Name(code).lower() if code in TensorProto.DataType.values() else f"type {code}"


def onnx_type_name(proto: TypeProto, depth: int = 0) -> str:
    """`tensor(float)`, `seq(tensor(int64))`, `optional(...)`, `map(...)`: as onnxruntime spells it."""
    kind = proto.WhichOneof("value")
    if kind == "tensor_type":
        return f"tensor({code_name(proto.tensor_type.elem_type)})"
    if kind == "sparse_tensor_type":
        return f"sparse_tensor({code_name(proto.sparse_tensor_type.elem_type)})"
    if depth > 8:
        return "..."
    if kind == "sequence_type":
        return f"seq({onnx_type_name(proto.sequence_type.elem_type, depth + 1)})"
    if kind == "optional_type":
        return f"optional({onnx_type_name(proto.optional_type.elem_type, depth + 1)})"
    if kind == "map_type":
        key = code_name(proto.map_type.key_type)
        return f"map({key},{onnx_type_name(proto.map_type.value_type, depth + 1)})"
    return "unknown"


def tensor_spec(name: str, type: TensorType) -> TensorSpec:
    """A tensor of known shape."""
    return TensorSpec(name, type.element, type.shape, f"tensor({code_name(code_of_element(type.element))})")


def places_of(spec: TensorSpec) -> TensorSpec:
    """What code takes for an input of strings: their places in a list."""
    return TensorSpec(spec.name, S64, spec.shape, spec.onnx_type)
