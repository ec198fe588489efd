"""The types of what failed nodes give: where they are static, the compiler may begin again behind them.

Asked in this order: ONNX's shape inference over the whole graph, with all sizes of inputs; what the model declares; for
operators that ONNX does not know, onnxruntime, about the node alone. None of them is believed blindly: a run compares
what it gets with the type, and plans again without it where they differ (`mixed_model.py`).
"""

from collections.abc import Mapping, Sequence

import onnx
from onnx import ModelProto, NodeProto, TypeProto, ValueInfoProto

from onnxla.errors import HloError, InputError
from onnxla.fallback.clusters import may_be_handed_over
from onnxla.fallback.parts import part_of, tensor_info
from onnxla.fallback.session import Session
from onnxla.fallback.wiring import names_read_by
from onnxla.frontends.onnx.element_types import element_of_code
from onnxla.frontends.onnx.model_file import OnnxModel
from onnxla.frontends.onnx.operator_names import normal_domain
from onnxla.frontends.onnx.survey import Survey
from onnxla.frontends.signature import TensorSpec
from onnxla.hlo.types import Array, TensorType

_LARGEST_KNOWN = 1 << 16
"""Most elements of a value that onnxruntime is asked with; larger ones do not decide shapes."""


class KnownTypes:
    """Called with a node that failed, gives the static types of its results, as far as somebody knows them."""

    def __init__(
        self,
        model: OnnxModel,
        inputs: Sequence[TensorSpec],
        dims: Mapping[str, int],
        constants: Mapping[str, Array],
        doubted: frozenset[str],
    ) -> None:
        """`inputs` have their sizes; `doubted` are values whose types turned out to be wrong in a run."""
        self._model = model
        self._doubted = doubted
        self._types = _declared(model, dims) | _inferred(model, inputs, constants)

    def __call__(self, node: NodeProto, survey: Survey) -> dict[str, TensorType]:
        names = [name for name in node.output if name]
        found = {name: self._types[name] for name in names if name in self._types}
        if len(found) < len(names) and normal_domain(node.domain):
            found |= self._asked(node, survey)
        return {name: t for name, t in found.items() if name not in self._doubted and t.size and may_be_handed_over(t)}

    def _asked(self, node: NodeProto, survey: Survey) -> dict[str, TensorType]:
        """What onnxruntime says of the results of one node whose inputs are known."""
        known: dict[str, Array] = {}
        inputs = []
        for name in names_read_by(node):
            kind = survey.type(name)
            value = survey.known_value(name) if kind is None or kind.size <= _LARGEST_KNOWN else None
            if value is not None:
                known[name] = value
            elif kind is not None:
                inputs.append(tensor_info(name, kind))
            else:
                return {}
        outputs = [name for name in node.output if name]
        try:
            session = Session(part_of(self._model, [node], inputs, outputs, known), threads=1, optimize=False)
        except InputError:
            return {}  # It says so again, to the user, when the part is made that has to run.
        return {name: kind for name, kind in session.static_types().items() if kind is not None}


def _declared(model: OnnxModel, dims: Mapping[str, int]) -> dict[str, TensorType]:
    """The static types that the model writes beside its values."""
    return _static_types(model.proto.graph.value_info, dims)


def _inferred(model: OnnxModel, inputs: Sequence[TensorSpec], constants: Mapping[str, Array]) -> dict[str, TensorType]:
    """The static types that ONNX finds from the sizes of the inputs alone."""
    proto = ModelProto()
    proto.CopyFrom(model.proto)
    graph = proto.graph
    del graph.value_info[:]
    kinds = {spec.name: spec.type for spec in inputs if spec.element is not None and spec.is_static}
    for info in graph.input:
        value = constants.get(info.name)
        if info.name in kinds:
            info.CopyFrom(tensor_info(info.name, kinds[info.name]))
        elif value is not None and value.dtype.kind not in "OSU":
            graph.initializer.append(onnx.numpy_helper.from_array(value, info.name))
    for info in graph.output:
        # A declared shape would be taken for granted; the element type is not lost.
        if info.type.WhichOneof("value") == "tensor_type":
            info.type.tensor_type.ClearField("shape")
    try:
        graph = onnx.shape_inference.infer_shapes(proto, data_prop=True).graph
    except Exception:  # it raises many kinds, for models that run too: then nothing is known from here
        return {}
    return _static_types((*graph.value_info, *graph.output), {})


def _static_types(infos: Sequence[ValueInfoProto], dims: Mapping[str, int]) -> dict[str, TensorType]:
    found = {}
    for info in infos:
        kind = _static_type(info.type, dims)
        if kind is not None:
            found[info.name] = kind
    return found


def _static_type(proto: TypeProto, dims: Mapping[str, int]) -> TensorType | None:
    if proto.WhichOneof("value") != "tensor_type" or not proto.tensor_type.HasField("shape"):
        return None
    sizes = [d.dim_value if d.HasField("dim_value") else dims.get(d.dim_param, -1) for d in proto.tensor_type.shape.dim]
    if any(size < 0 for size in sizes):
        return None
    try:
        return TensorType(element_of_code(proto.tensor_type.elem_type), tuple(sizes))
    except HloError:
        return None
