"""SVMRegressor and SVMClassifier: kernel machines, with libsvm's one-against-one votes and probabilities."""

import itertools
from dataclasses import dataclass

import numpy as np

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.ml_linear import rows_of_numbers
from onnxla.frontends.onnx.rules.ml_probabilities import pairwise_to_class_probabilities
from onnxla.frontends.onnx.rules.ml_scores import (
    ML,
    Labels,
    class_labels,
    label_at,
    largest_column,
    pair_of,
    read_post_transform,
    transformed,
)
from onnxla.frontends.onnx.values import Value
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import F32, Array

SMALLEST_PROBABILITY = 1e-7


@dataclass(frozen=True)
class Kernel:
    """A kernel function of pairs of rows."""

    kind: str
    gamma: float
    coefficient: float
    degree: float

    def matrix(self, b: Builder, x: Instruction, vectors: Array) -> Instruction:
        """The kernel of every row of `x` [rows, features] with every vector [count, features]: [rows, count]."""
        if self.kind == "RBF":
            shape = (x.shape[0], *vectors.shape)
            left = b.broadcast(x, shape, [0, 2])
            difference = b.subtract(left, b.broadcast(b.constant(vectors), shape, [1, 2]))
            distance = b.reduce_by("add", b.multiply(difference, difference), [2])
            return b.exponential(b.multiply(distance, b.full_like(distance, -self.gamma)))
        products = b.dot(x, b.constant(vectors), [1], [1])
        if self.kind == "LINEAR":
            return products
        scaled = b.multiply(products, b.full_like(products, self.gamma))
        shifted = b.add(scaled, b.full_like(products, self.coefficient))
        if self.kind == "SIGMOID":
            return b.unary("tanh", shifted)
        return b.power(shifted, b.full_like(shifted, self.degree))


def _read_kernel(node: NodeView) -> Kernel:
    kind = node.word("kernel_type", ("LINEAR", "POLY", "RBF", "SIGMOID"), "LINEAR")
    parameters = node.floats("kernel_params", ()) or (0.0, 0.0, 0.0)
    if len(parameters) != 3:
        node.shape_error(f"kernel_params must be gamma, coef0 and degree; {len(parameters)} numbers are given")
    return Kernel(kind, *parameters)


def _vectors(node: NodeView, name: str, features: int) -> Array:
    """An attribute as rows of `features`."""
    values = np.array(node.floats(name, ()), np.float32)
    if features < 1 or values.size % features:
        node.shape_error(f"{values.size} {name} do not divide into rows of {features}")
    return values.reshape(-1, features)


@onnx_op("SVMRegressor", domain=ML)
def svm_regressor(node: NodeView, b: Builder) -> Instruction:
    """coefficients * kernel(x, support vectors) + rho; without support vectors kernel(x, coefficients) + rho."""
    kernel, rho = _read_kernel(node), node.floats("rho")
    x = rows_of_numbers(node, b)
    if node.int("n_supports", 0) > 0:
        matrix = kernel.matrix(b, x, _vectors(node, "support_vectors", x.shape[1]))
        weights = _vectors(node, "coefficients", matrix.shape[1])[:1]
        scores = b.dot(matrix, b.constant(weights), [1], [1])
    else:
        scores = kernel.matrix(b, x, _vectors(node, "coefficients", x.shape[1])[:1])
    scores = b.add(scores, b.full_like(scores, rho[0]))
    if node.int("one_class", 0):
        inside = b.compare(scores, b.full_like(scores, 0), "GT")
        return b.select(inside, b.full_like(scores, 1), b.full_like(scores, -1))
    return scores


@onnx_op("SVMClassifier", domain=ML)
def svm_classifier(node: NodeView, b: Builder) -> list[Value]:
    labels = class_labels(node, "classlabels_ints")
    if sum(node.ints("vectors_per_class", ())) == 0:
        return _linear(node, b, labels)
    kernel, transform = _read_kernel(node), read_post_transform(node)
    x = rows_of_numbers(node, b)
    scores, votes = _one_against_one(node, b, x, kernel)
    classes = votes.shape[1]
    if len(labels) != classes:
        node.shape_error(f"{len(labels)} class labels do not fit {classes} classes")
    label = label_at(b, labels, largest_column(b, votes))
    if node.floats("prob_a", ()):
        return [label, transformed(b, _probabilities(node, b, scores, classes), transform)]
    if classes == 2:
        return [label, _scores_of_two_classes(node, b, scores, transform)]
    return [label, transformed(b, scores, transform)]


def _linear(node: NodeView, b: Builder, labels: Labels) -> list[Value]:
    """Without support vectors: a row of coefficients for each class, and one rho for all."""
    kernel, transform = _read_kernel(node), read_post_transform(node)
    x = rows_of_numbers(node, b)
    scores = kernel.matrix(b, x, _vectors(node, "coefficients", x.shape[1]))
    scores = b.add(scores, b.full_like(scores, node.floats("rho")[0]))
    if scores.shape[1] != len(labels):
        node.unsupported(f"{scores.shape[1]} rows of coefficients for {len(labels)} labels are not known")
    return [label_at(b, labels, largest_column(b, scores)), transformed(b, scores, transform)]


def _one_against_one(node: NodeView, b: Builder, x: Instruction, kernel: Kernel) -> tuple[Instruction, Instruction]:
    """The decision of every pair of classes [rows, pairs], and the votes for each class [rows, classes].

    Coefficients are [classes - 1, vectors] as in libsvm: row j - 1 holds class i's against class j
    for i < j, and row i holds class j's.
    """
    counts = node.ints("vectors_per_class")
    classes, total = len(counts), sum(counts)
    vectors = _vectors(node, "support_vectors", x.shape[1])
    coefficients, rho = np.array(node.floats("coefficients"), np.float32), node.floats("rho")
    pairs = list(itertools.combinations(range(classes), 2))
    if len(vectors) != total or coefficients.size != (classes - 1) * total or len(rho) < len(pairs):
        node.shape_error("support_vectors, coefficients or rho do not fit vectors_per_class")
    rows = coefficients.reshape(classes - 1, total)
    start = np.concatenate([[0], np.cumsum(counts)])
    weights = np.zeros((len(pairs), total), np.float32)
    for k, (i, j) in enumerate(pairs):
        weights[k, start[i] : start[i + 1]] = rows[j - 1, start[i] : start[i + 1]]
        weights[k, start[j] : start[j + 1]] = rows[i, start[j] : start[j + 1]]
    matrix = kernel.matrix(b, x, vectors)
    scores = b.dot(matrix, b.constant(weights), [1], [1])
    scores = b.add(scores, b.broadcast(b.constant(np.array(rho[: len(pairs)], np.float32)), scores.shape, [1]))
    won = b.convert(b.compare(scores, b.full_like(scores, 0), "GT"), F32)
    lost = b.subtract(b.full_like(won, 1), won)
    first = np.array([[float(c == i) for c in range(classes)] for i, _ in pairs], np.float32)
    second = np.array([[float(c == j) for c in range(classes)] for _, j in pairs], np.float32)
    votes = b.add(b.dot(won, b.constant(first), [1], [0]), b.dot(lost, b.constant(second), [1], [0]))
    return scores, votes


def _probabilities(node: NodeView, b: Builder, scores: Instruction, classes: int) -> Instruction:
    """Platt's probabilities of each pair, coupled to one distribution over the classes."""
    a, c = (np.array(node.floats(name), np.float32) for name in ("prob_a", "prob_b"))
    if a.size != scores.shape[1] or c.size != scores.shape[1]:
        node.shape_error(f"prob_a and prob_b need {scores.shape[1]} numbers each")
    slope, offset = (b.broadcast(b.constant(v), scores.shape, [1]) for v in (a, c))
    pairwise = b.unary("logistic", b.negate(b.add(b.multiply(scores, slope), offset)))
    low, high = b.constant(SMALLEST_PROBABILITY, F32), b.constant(1 - SMALLEST_PROBABILITY, F32)
    return pairwise_to_class_probabilities(b, b.clamp(low, pairwise, high), classes)


def _scores_of_two_classes(node: NodeView, b: Builder, score: Instruction, transform: str) -> Instruction:
    """The decision of the only pair and its counterpart, as onnxruntime pairs them."""
    if transform == "PROBIT":
        node.unsupported("PROBIT of one score for two classes is not defined", "use NONE or LOGISTIC")
    if transform == "LOGISTIC":
        return transformed(b, pair_of(b, b.negate(score), score), transform)
    if transform == "NONE":
        return pair_of(b, b.negate(score), score)
    return pair_of(b, b.subtract(b.full_like(score, 1), score), score)
