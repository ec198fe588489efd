"""What the models of ai.onnx.ml do with scores: the post transform, the second class, the label."""

import math
from typing import TypeAlias

import numpy as np

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.rules.softmax import softmax_over
from onnxla.frontends.onnx.values import ChosenStrings, Value
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import PRED, S64

ERF_INVERSE_CONSTANT = 0.147
"""Winitzki's approximation of the inverse error function, which onnxruntime's PROBIT uses."""
SMALLEST_NONZERO_SCORE = 1e-7
"""SOFTMAX_ZERO leaves smaller scores at zero, as onnxruntime does."""

ML = "ai.onnx.ml"
Labels: TypeAlias = tuple[int | str, ...]


def read_post_transform(node: NodeView) -> str:
    """The attribute post_transform, checked."""
    return node.word("post_transform", ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"), "NONE")


def transformed(b: Builder, scores: Instruction, name: str) -> Instruction:
    """`scores` [N, E] after the post transform `name`."""
    match name:
        case "SOFTMAX":
            return softmax_over(b, scores, [1])
        case "SOFTMAX_ZERO":
            return _softmax_of_nonzero(b, scores)
        case "LOGISTIC":
            return b.unary("logistic", scores)
        case "PROBIT":
            return _probit(b, scores)
    return scores


def _softmax_of_nonzero(b: Builder, scores: Instruction) -> Instruction:
    """exp(x - max) where x is not zero, and zero stays; divided by the sum."""
    largest = b.broadcast(b.reduce_by("maximum", scores, [1]), scores.shape, [0])
    is_zero = b.compare(b.unary("abs", scores), b.full_like(scores, SMALLEST_NONZERO_SCORE), "LE")
    exponentials = b.exponential(b.subtract(scores, largest))
    kept = b.multiply(scores, b.exponential(b.negate(largest)))
    total = b.reduce_by("add", b.select(is_zero, b.full_like(scores, 0), exponentials), [1])
    return b.divide(b.select(is_zero, kept, exponentials), b.broadcast(total, scores.shape, [0]))


def _probit(b: Builder, p: Instruction) -> Instruction:
    """sqrt(2) * erf_inverse(2 p - 1)"""
    x = b.subtract(b.multiply(p, b.full_like(p, 2)), b.full_like(p, 1))
    one = b.full_like(x, 1)
    log = b.unary("log", b.multiply(b.subtract(one, x), b.add(one, x)))
    half = b.multiply(log, b.full_like(x, 0.5))
    v = b.add(half, b.full_like(x, 2 / (math.pi * ERF_INVERSE_CONSTANT)))
    w = b.divide(log, b.full_like(x, ERF_INVERSE_CONSTANT))
    root = b.unary("sqrt", b.subtract(b.unary("sqrt", b.subtract(b.multiply(v, v), w)), v))
    signed = b.select(b.compare(x, b.full_like(x, 0), "LT"), b.negate(root), root)
    return b.multiply(signed, b.full_like(x, math.sqrt(2)))


def pair_of(b: Builder, negative: Instruction, positive: Instruction) -> Instruction:
    """Two columns [N, 1] as [N, 2]."""
    return b.concatenate([negative, positive], 1)


def class_labels(node: NodeView, ints_attribute: str) -> Labels:
    """The class labels: integers, or strings where there are no integers."""
    return node.ints(ints_attribute, ()) or node.strings("classlabels_strings", ())


def label_at(b: Builder, labels: Labels, index: Instruction) -> Value:
    """labels[index], for an index of any integer type."""
    if any(isinstance(label, str) for label in labels):
        return ChosenStrings(index, tuple(map(str, labels)))
    return b.take(b.constant(np.array(labels, np.int64)), index, 0)


def label_if(b: Builder, condition: Instruction, positive: int | str, negative: int | str) -> Value:
    """One of two labels for each element."""
    assert condition.tensor_type.element is PRED
    return label_at(b, (negative, positive), b.convert(condition, S64))


def largest_column(b: Builder, scores: Instruction) -> Instruction:
    """The first column [N] of s64 with the largest score of each row; column 0 where all are NaN."""
    rows, columns = scores.shape
    largest = b.broadcast(b.reduce_by("maximum", scores, [1]), scores.shape, [0])
    positions = b.iota(scores.tensor_type.with_element(S64), 1)
    candidates = b.select(b.compare(scores, largest, "EQ"), positions, b.full_like(positions, columns))
    first = b.reduce_by("minimum", candidates, [1])
    return b.select(b.compare(first, b.full_like(first, columns), "EQ"), b.full_like(first, 0), first)
