"""What goes in and comes out: of a SavedModel's signature, or of a graph between the values that are named."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from onnxla.errors import HloError, InputError
from onnxla.frontends.signature import TensorSpec
from onnxla.frontends.tensorflow.element_types import code_name, element_of_code
from onnxla.frontends.tensorflow.graph import CHECKS, Edge, Node, ordered, parse_edge
from onnxla.frontends.tensorflow.model_file import TensorFlowModel, require_signature
from onnxla.frontends.tensorflow.tensors import shape_of

PLACEHOLDERS = ("Placeholder", "PlaceholderWithDefault", "PlaceholderV2")
_REQUIRED_INPUTS = ("Placeholder", "PlaceholderV2")
_NO_OUTPUT = ("NoOp", "Const", *CHECKS)


@dataclass(frozen=True)
class Port:
    """An input or output: its name for the user, the value of the graph, and what the graph says of it."""

    spec: TensorSpec
    edge: Edge


@dataclass(frozen=True)
class Interface:
    """The ports of a model, by position."""

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]


def interface_of(
    model: TensorFlowModel,
    signature: str | None = None,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
) -> Interface:
    """The interface that is meant. A SavedModel has signatures, whose names are taken in alphabetical order; of a
    graph, `inputs` and `outputs` name values, and by default are its placeholders and what nobody reads.

    Raises InputError for names that there are not.
    """
    if model.signatures and inputs is None and outputs is None:
        definition = model.signatures[require_signature(model, signature)]
        return Interface(_ports(model, definition.inputs), _ports(model, definition.outputs))
    if signature is not None:
        raise InputError(f"{model.name} is a graph without signatures; inputs= and outputs= name its values")
    ends = [_edge(model, name) for name in outputs] if outputs is not None else _ends(model)
    needed = ordered(model.body, [e.node for e in ends])
    if inputs is not None:
        starts = [_edge(model, name) for name in inputs]
    else:
        starts = [Edge(n.name) for n in sorted(needed, key=lambda n: n.index) if n.op in _REQUIRED_INPUTS]
    return Interface(tuple(_input(model, e) for e in starts), tuple(Port(_unknown(e), e) for e in ends))


def _ports(model: TensorFlowModel, infos: Any) -> tuple[Port, ...]:
    """The entries of a SignatureDef by name."""
    found = []
    for name in sorted(infos):
        info = infos[name]
        if not info.name:
            raise InputError(f"{name} is no plain tensor, and so cannot be compiled")
        found.append(Port(_spec(name, info.dtype, shape_of(info.tensor_shape)), _edge(model, info.name)))
    return tuple(found)


def _edge(model: TensorFlowModel, name: str) -> Edge:
    edge = parse_edge(name)
    if edge.node not in model.body.nodes:
        raise InputError(f"{model.name} has no value {name!r}")
    return edge


def _ends(model: TensorFlowModel) -> list[Edge]:
    """The values of nodes that no other node reads."""
    read = {name for node in model.body.nodes.values() for name in model.body.edges_from(node)}
    found = [n for n in model.body.nodes.values() if n.name not in read and n.op not in (*_NO_OUTPUT, *PLACEHOLDERS)]
    if not found:
        raise InputError(f"{model.name} has no value that nobody reads; name its outputs with outputs=")
    return [Edge(n.name) for n in found]


def _input(model: TensorFlowModel, edge: Edge) -> Port:
    node: Node = model.body.nodes[edge.node]
    if node.op not in PLACEHOLDERS:
        raise InputError(f"{edge} is computed by {node.op}; only placeholders can be inputs")
    shape = shape_of(node.attributes["shape"].shape) if "shape" in node.attributes else None
    return Port(_spec(_plain_name(edge), node.attributes["dtype"].type, shape), edge)


def _unknown(edge: Edge) -> TensorSpec:
    return TensorSpec(_plain_name(edge), None, None, "tensor")


def _plain_name(edge: Edge) -> str:
    """`x` for `x:0`."""
    return edge.node if edge.index == 0 else str(edge)


def _spec(name: str, code: int, shape: tuple[int | None, ...] | None) -> TensorSpec:
    """A declared tensor; dimensions without a size are called `NAME.0`, `NAME.1`, ..."""
    try:
        element = element_of_code(code)
    except HloError:
        element = None
    sizes = None if shape is None else tuple(f"{name}.{d}" if n is None else n for d, n in enumerate(shape))
    return TensorSpec(name, element, sizes, f"tensor({code_name(code)})")
