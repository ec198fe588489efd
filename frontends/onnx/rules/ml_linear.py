"""LinearRegressor and LinearClassifier: a product with the coefficients, then what scores become."""

import numpy as np

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.ml_scores import (
    ML,
    class_labels,
    label_at,
    label_if,
    largest_column,
    pair_of,
    read_post_transform,
    transformed,
)
from onnxla.frontends.onnx.values import Value
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import F32


def rows_of_numbers(node: NodeView, b: Builder) -> Instruction:
    """X [rows, features] in f32; a vector is one row."""
    x = b.convert(node.input(0), F32)
    if len(x.shape) == 1:
        x = b.reshape(x, (1, *x.shape))
    if len(x.shape) != 2:
        node.shape_error(f"X must be [rows, features], it is {x.tensor_type}")
    return x


def _scores(node: NodeView, b: Builder, targets: int) -> Instruction:
    """X C' + intercepts, with C [targets, features]. Coefficients beyond those are ignored, as in onnxruntime."""
    x = rows_of_numbers(node, b)
    coefficients = np.array(node.floats("coefficients"), np.float32)
    intercepts = np.array(node.floats("intercepts", ()), np.float32)
    if targets < 1 or coefficients.size < targets * x.shape[1] or intercepts.size not in (0, targets):
        node.shape_error(
            f"{coefficients.size} coefficients and {intercepts.size} intercepts do not fit {targets} targets"
        )
    scores = b.dot(x, b.constant(coefficients[: targets * x.shape[1]].reshape(targets, x.shape[1])), [1], [1])
    if not intercepts.size:
        return scores
    return b.add(scores, b.broadcast(b.constant(intercepts), scores.shape, [1]))


@onnx_op("LinearRegressor", domain=ML)
def linear_regressor(node: NodeView, b: Builder) -> Instruction:
    transform = read_post_transform(node)
    return transformed(b, _scores(node, b, node.int("targets", 1)), transform)


@onnx_op("LinearClassifier", domain=ML)
def linear_classifier(node: NodeView, b: Builder) -> list[Value]:
    """One row of coefficients for each class; two labels may share one row, whose score is the second's."""
    labels, transform = class_labels(node, "classlabels_ints"), read_post_transform(node)
    features = max(rows_of_numbers(node, b).shape[1], 1)
    targets = len(node.floats("intercepts", ())) or len(node.floats("coefficients")) // features
    scores = _scores(node, b, targets)
    if targets == 1 and len(labels) == 2:
        return _two_classes(node, b, scores, labels[0], labels[1], transform)
    if targets != len(labels):
        node.shape_error(f"{targets} intercepts do not fit {len(labels)} class labels")
    label = label_at(b, labels, largest_column(b, scores))
    return [label, transformed(b, scores, transform)]


def _two_classes(
    node: NodeView, b: Builder, p: Instruction, first: int | str, second: int | str, transform: str
) -> list[Value]:
    is_second = b.compare(p, b.full_like(p, 0), "GT")
    label = label_if(b, b.reshape(is_second, p.shape[:1]), second, first)
    if transform == "PROBIT":
        node.unsupported("PROBIT of one score for two classes is not defined", "use NONE or LOGISTIC")
    if transform == "LOGISTIC":
        return [label, transformed(b, pair_of(b, b.negate(p), p), transform)]
    return [label, pair_of(b, b.subtract(b.full_like(p, 1), p), p)]
