"""Operations whose result's shape depends on data: they fold where the data is known, else they are refused by name."""

import numpy as np

from onnxla.frontends.tensorflow.node_view import NodeView
from onnxla.frontends.tensorflow.registry import tf_op
from onnxla.frontends.tensorflow.values import StringConstant, Value
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import S64, Array

_INT32 = 3
_HINT = "replace it by operations of fixed size, such as a mask"


def _data(node: NodeView, i: int) -> Array | None:
    """The value of input `i`; None where a run computes it, be it that its node failed to import."""
    return None if node.failed_but_computed(i) else node.known(i)


@tf_op("Where")
def where(node: NodeView, b: Builder) -> Instruction:
    """The places of what is not zero."""
    known = _data(node, 0)
    if known is None:
        node.dynamic_shape("tf.where with one operand gives as many rows as there are nonzero elements", _HINT, data=0)
    return b.constant(np.argwhere(known), S64)


@tf_op("Unique", "UniqueV2", outputs=("y", "idx"))
def unique(node: NodeView, b: Builder) -> list[Instruction]:
    """The different values in the order they come, and for each element which of them it is."""
    known = _data(node, 0)
    if known is None or known.ndim != 1:
        node.dynamic_shape("tf.unique gives as many values as are different", _HINT, data=0)
    _, first, inverse = np.unique(known, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.argsort(order)
    element = node.element("out_idx", _INT32)
    return [b.constant(known[first[order]]), b.constant(place[inverse].astype(element.dtype))]


@tf_op("ListDiff", outputs=("out", "idx"))
def list_diff(node: NodeView, b: Builder) -> list[Instruction]:
    """The values of a list that another one lacks, and their places."""
    x, y = _data(node, 0), _data(node, 1)
    if x is None or y is None:
        node.dynamic_shape("the difference of two lists is as long as the data says", _HINT, data=0 if x is None else 1)
    (places,) = np.nonzero(~np.isin(x, y))
    return [b.constant(x[places]), b.constant(places, node.element("out_idx", _INT32))]


@tf_op("DynamicStitch", "ParallelDynamicStitch")
def dynamic_stitch(node: NodeView, b: Builder) -> Instruction:
    """Rows of several tensors, put where their indices say, which must be known; of two for one place the last."""
    count = node.input_count // 2
    indices = []
    for i in range(count):
        known = _data(node, i)
        if known is None:
            node.dynamic_shape("the result of tf.dynamic_stitch is as long as its largest index says", _HINT, data=i)
        indices.append(known.reshape(-1))
    places = np.concatenate(indices)
    row = node.input(count).shape[len(node.input(0).shape) :]
    rows = [b.reshape(node.input(count + i), (indices[i].size, *row)) for i in range(count)]
    source = np.zeros(int(places.max()) + 1 if places.size else 0, np.int64)
    source[places] = np.arange(places.size)
    return b.take(b.concatenate(rows, 0), b.constant(source), 0)


def _refuse(name: str, cause: str, hint: str = _HINT, data: int = 0) -> None:
    @tf_op(name)
    def rule(node: NodeView, b: Builder) -> Value:
        node.dynamic_shape(cause, hint, data=data if node.input_count > data else None)


for _name, _cause in {
    "UniqueWithCounts": "tf.unique_with_counts gives as many values as are different",
    "UniqueWithCountsV2": "tf.unique_with_counts gives as many values as are different",
    "DynamicPartition": "the parts of tf.dynamic_partition are as long as the data says",
    "NonMaxSuppression": "non-max suppression keeps as many boxes as the data says",
    "NonMaxSuppressionV2": "non-max suppression keeps as many boxes as the data says",
    "NonMaxSuppressionV3": "non-max suppression keeps as many boxes as the data says",
    "NonMaxSuppressionV4": "non-max suppression keeps as many boxes as the data says",
    "NonMaxSuppressionV5": "non-max suppression keeps as many boxes as the data says",
    "CTCGreedyDecoder": "a decoded sequence is as long as the data says",
    "CTCBeamSearchDecoder": "a decoded sequence is as long as the data says",
}.items():
    _refuse(_name, _cause)


def _refuse_strings(name: str) -> None:
    @tf_op(name)
    def rule(node: NodeView, b: Builder) -> Value:
        node.unsupported(f"{name} works on strings, which compiled code does not", "do it before the model runs")


for _name in (
    "AsString",
    "DecodeBase64",
    "DecodeCSV",
    "DecodeImage",
    "DecodeJpeg",
    "DecodePng",
    "DecodeRaw",
    "EncodeBase64",
    "MutableHashTableV2",
    "ParseExample",
    "ParseExampleV2",
    "ReadFile",
    "RegexReplace",
    "StaticRegexFullMatch",
    "StringFormat",
    "StringLength",
    "StringLower",
    "StringSplit",
    "StringSplitV2",
    "StringToHashBucket",
    "StringToHashBucketFast",
    "StringToHashBucketStrong",
    "StringToNumber",
    "StringUpper",
    "Substr",
    "UnicodeDecode",
    "WriteFile",
):
    _refuse_strings(_name)


@tf_op("StringJoin")
def string_join(node: NodeView, b: Builder) -> Value:
    """Of constants only."""
    separator = node.string("separator", "").encode()
    parts = [v.array for v in node.values() if isinstance(v, StringConstant)]
    if len(parts) != node.input_count:
        node.unsupported("StringJoin works on strings, which compiled code does not", "do it before the model runs")
    shape = max((p.shape for p in parts), key=len)
    rows = zip(*(np.broadcast_to(p, shape).reshape(-1) for p in parts), strict=True)
    return StringConstant(np.array([separator.join(row) for row in rows], object).reshape(shape))
