"""Calls of functions, which are written out in place."""

from onnxla.frontends.tensorflow.node_view import NodeView
from onnxla.frontends.tensorflow.registry import tf_op
from onnxla.frontends.tensorflow.values import Value
from onnxla.hlo.builder import Builder


@tf_op("PartitionedCall", "StatefulPartitionedCall")
def call(node: NodeView, b: Builder) -> list[Value]:
    body, attributes = node.function("f")
    return node.host.import_body(body, node.arguments(), b, node.host.state, attributes)
