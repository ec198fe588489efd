"""TensorFlow 1's loops and conditionals."""

from collections.abc import Iterable

from onnxla.frontends.tensorflow.graph import Body


def with_functional_loops(body: Body, wanted: Iterable[str]) -> Body:
    return body
