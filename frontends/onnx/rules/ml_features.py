"""Preparation of features in ai.onnx.ml: scaling, normalising, imputing, selecting, joining.

Maps leave the model, where ZipMap makes them; as inputs they have no rule: the report says how to do without them.
"""

from collections.abc import Sequence

import numpy as np

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.ml_linear import rows_of_numbers
from onnxla.frontends.onnx.rules.ml_scores import ML, class_labels
from onnxla.frontends.onnx.string_movement import as_chosen
from onnxla.frontends.onnx.values import ChosenStrings, MapsValue, StringConstant
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import F32, S64


def _along_features(node: NodeView, b: Builder, values: Sequence[float], x: Instruction) -> Instruction:
    """One number, or one for each place of the last dimension, stretched to the shape of `x`."""
    if len(values) == 1:
        return b.full_like(x, values[0])
    if not x.shape or len(values) != x.shape[-1]:
        node.shape_error(f"{len(values)} numbers do not fit the features of {x.tensor_type}")
    return b.broadcast(b.constant(np.array(values), x.tensor_type.element), x.shape, [len(x.shape) - 1])


@onnx_op("Scaler", domain=ML)
def scaler(node: NodeView, b: Builder) -> Instruction:
    """(x - offset) * scale"""
    x = b.convert(node.input(0), F32)
    offset, scale = node.floats("offset"), node.floats("scale")
    return b.multiply(b.subtract(x, _along_features(node, b, offset, x)), _along_features(node, b, scale, x))


@onnx_op("Normalizer", domain=ML)
def normalizer(node: NodeView, b: Builder) -> Instruction:
    """Each row divided by its norm, or left alone where that is zero. MAX is the largest value, not its size."""
    kind = node.word("norm", ("MAX", "L1", "L2"), "MAX")
    x = rows_of_numbers(node, b)
    if kind == "MAX":
        norm = b.reduce_by("maximum", x, [1])
    elif kind == "L1":
        norm = b.reduce_by("add", b.unary("abs", x), [1])
    else:
        norm = b.unary("sqrt", b.reduce_by("add", b.multiply(x, x), [1]))
    is_zero = b.compare(norm, b.full_like(norm, 0), "EQ")
    divisor = b.select(is_zero, b.full_like(norm, 1), norm)
    return b.reshape(b.divide(x, b.broadcast(divisor, x.shape, [0])), node.input(0).shape)


@onnx_op("Binarizer", domain=ML)
def binarizer(node: NodeView, b: Builder) -> Instruction:
    x = node.input(0)
    above = b.compare(x, b.full_like(x, node.float("threshold", 0.0)), "GT")
    return b.convert(above, x.tensor_type.element)


@onnx_op("Imputer", domain=ML)
def imputer(node: NodeView, b: Builder) -> Instruction:
    """Values equal to the replaced one, or NaN where that is NaN, become the imputed ones."""
    x = node.input(0)
    imputed: Sequence[float]
    if x.tensor_type.element.is_float:
        imputed, replaced = node.floats("imputed_value_floats"), node.float("replaced_value_float", 0.0)
    else:
        imputed, replaced = node.ints("imputed_value_int64s"), node.int("replaced_value_int64", 0)
    gone = b.is_nan(x) if replaced != replaced else b.compare(x, b.full_like(x, replaced), "EQ")
    return b.select(gone, _along_features(node, b, imputed, x), x)


@onnx_op("FeatureVectorizer", domain=ML)
def feature_vectorizer(node: NodeView, b: Builder) -> Instruction:
    """The first `inputdimensions[i]` features of each input, one after the other; missing ones are zero."""
    sizes = node.ints("inputdimensions")
    parts = [b.convert(x, F32) for x in node.inputs()]
    if len(sizes) != len(parts):
        node.shape_error(f"{len(sizes)} inputdimensions do not fit {len(parts)} inputs")
    flat = [b.reshape(x, (1, *x.shape)) if len(x.shape) == 1 else x for x in parts]
    flat = [b.reshape(x, (x.shape[0], int(np.prod(x.shape[1:])))) for x in flat]
    zero = b.constant(0, F32)
    fitted = [b.pad(x, zero, [0, 0], [0, size - x.shape[1]]) for x, size in zip(flat, sizes, strict=True)]
    return b.concatenate(fitted, 1)


@onnx_op("ArrayFeatureExtractor", domain=ML)
def array_feature_extractor(node: NodeView, b: Builder) -> Instruction:
    """x[..., indices]. A vector gives a row; indices may be of any shape."""
    x, indices = node.input(0), node.input(1)
    count = indices.tensor_type.size
    if not x.shape or count == 0:
        node.shape_error("X must not be a scalar, and there must be indices")
    known = node.known(1)
    if known is not None and not ((known >= 0) & (known < x.shape[-1])).all():
        node.shape_error(f"an index is outside of 0..{x.shape[-1] - 1}")
    taken = b.take(x, b.reshape(indices, (count,)), len(x.shape) - 1)
    return b.reshape(taken, (1, count)) if len(x.shape) == 1 else taken


@onnx_op("OneHotEncoder", domain=ML)
def one_hot_encoder(node: NodeView, b: Builder) -> Instruction:
    """A dimension of 0 and 1 more than X, one place for each category of the attribute."""
    categories = node.ints("cats_int64s", ())
    if not node.int("zeros", 1):
        node.unsupported("zeros=0, which fails on unknown categories at run time", "zeros=1 is supported")
    if categories:
        x = b.convert(node.input(0), S64)
    else:
        x, categories = _places_in(node, b, node.strings("cats_strings"))
    shape = (*x.shape, len(categories))
    value = b.broadcast(x, shape, range(len(x.shape)))
    category = b.broadcast(b.constant(np.array(categories, np.int64)), shape, [len(x.shape)])
    return b.convert(b.compare(value, category, "EQ"), F32)


def _places_in(node: NodeView, b: Builder, words: Sequence[str]) -> tuple[Instruction, tuple[int, ...]]:
    """The strings of input 0 by their places in `words`, which are the categories then; -1 for others."""
    value = node.value(0)
    if not isinstance(value, (StringConstant, ChosenStrings)):
        node.shape_error("the categories are strings, and the input is numbers")
    strings = as_chosen(b, value)
    place = {word: i for i, word in enumerate(words)}
    table = np.array([place.get(word, -1) for word in strings.table], np.int64)
    return b.take(b.constant(table), strings.places, 0), tuple(range(len(words)))


@onnx_op("ZipMap", domain=ML)
def zip_map(node: NodeView, b: Builder) -> MapsValue:
    """A map from class label to score for each row; a vector is one row."""
    scores, keys = rows_of_numbers(node, b), class_labels(node, "classlabels_int64s")
    if len(keys) != scores.shape[1]:
        node.shape_error(f"{len(keys)} class labels do not fit {scores.shape[1]} scores")
    return MapsValue(scores, keys)


def _refuse(op_type: str, cause: str, hint: str) -> None:
    @onnx_op(op_type, domain=ML)
    def rule(node: NodeView, b: Builder) -> Instruction:
        node.unsupported(cause, hint)


_refuse("DictVectorizer", "a map is not a tensor", "build the vector of features before the model")
_refuse("CastMap", "a map is not a tensor", "give the model a tensor")
