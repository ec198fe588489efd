"""Small GraphDefs for tests, without TensorFlow."""

from collections.abc import Mapping
from typing import Any

from onnxla.frontends.tensorflow.messages import DATA_TYPES, GraphDef

_FLOAT, _INT32 = DATA_TYPES.index("FLOAT"), DATA_TYPES.index("INT32")


def graph(*nodes: tuple[Any, ...], constants: Mapping[str, int] | None = None) -> Any:
    """Nodes as (name, op, inputs), placeholders with their data type behind where it is not float32.

    `constants` are scalars int32 by name.
    """
    g = GraphDef()
    for name, value in (constants or {}).items():
        node = g.node.add(name=name, op="Const")
        node.attr["dtype"].type = _INT32
        node.attr["value"].tensor.dtype = _INT32
        node.attr["value"].tensor.tensor_shape.SetInParent()
        node.attr["value"].tensor.int_val.append(value)
    for name, op, inputs, *rest in nodes:
        node = g.node.add(name=name, op=op, input=inputs)
        if op == "Placeholder":
            node.attr["dtype"].type = _INT32 if rest == ["int32"] else _FLOAT
    return g
