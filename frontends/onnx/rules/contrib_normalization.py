"""onnxruntime's normalisations: with a skip connection, of embeddings, simplified (RMS), and by groups."""

from collections.abc import Sequence

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.axes import kept_shape, normal_axis
from onnxla.frontends.onnx.rules.normalization import (
    centred,
    inverse_deviation,
    layer_normalization,
    mean_over,
    spread_over,
)
from onnxla.frontends.onnx.rules.precision import widen
from onnxla.frontends.onnx.rules.quantized_convolution import channels_first, channels_last
from onnxla.frontends.onnx.rules.quantized_values import dequantize, optional_scalar, scalar
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import F32, S32, S64, TensorType

MICROSOFT = "com.microsoft"
EPSILON = 1e-12

onnx_op("LayerNormalization", until=16)(layer_normalization)
"""onnxruntime knew LayerNormalization before ONNX did; its fused models write it into any opset."""


def _normalized(
    b: Builder,
    x: Instruction,
    gamma: Instruction,
    beta: Instruction | None,
    epsilon: float,
    *,
    simplified: bool = False,
) -> tuple[Instruction, Instruction | None, Instruction]:
    """`x`, in a wide type, normalised over its last dimension; also the mean, unless simplified, and 1 / deviation."""
    last = len(x.shape) - 1
    element = x.tensor_type.element
    mean = None
    if simplified:
        difference, variance = x, mean_over(b, b.multiply(x, x), [last])
    else:
        mean, variance, difference = centred(b, x, [last])
    deviation = inverse_deviation(b, variance, epsilon)
    y = b.multiply(difference, spread_over(b, deviation, x, [last]))
    y = b.multiply(y, b.broadcast(b.convert(gamma, element), x.shape, [last]))
    if beta is not None:
        y = b.add(y, b.broadcast(b.convert(beta, element), x.shape, [last]))
    kept = kept_shape(x.shape, [last])
    return y, None if mean is None else b.reshape(mean, kept), b.reshape(deviation, kept)


def _skip_normalization(
    node: NodeView, b: Builder, beta: Instruction | None, bias: Instruction | None, simplified: bool
) -> list[Instruction | None]:
    """The norm of input + skip (+ bias); outputs are y, mean, 1 / deviation and the sum."""
    given, skip = node.input(0), node.input(1)
    element = given.tensor_type.element
    x = b.add(widen(b, given), b.numpy_broadcast(widen(b, skip), given.shape))
    if bias is not None:
        x = b.add(x, b.broadcast(widen(b, bias), x.shape, [len(x.shape) - 1]))
    y, mean, deviation = _normalized(b, x, node.input(2), beta, node.float("epsilon", EPSILON), simplified=simplified)
    return [b.convert(y, element), mean, deviation, b.convert(x, element)]


@onnx_op("SkipLayerNormalization", domain=MICROSOFT)
def skip_layer_normalization(node: NodeView, b: Builder) -> list[Instruction | None]:
    return _skip_normalization(node, b, node.optional_input(3), node.optional_input(4), simplified=False)


@onnx_op("SkipSimplifiedLayerNormalization", domain=MICROSOFT)
def skip_simplified_layer_normalization(node: NodeView, b: Builder) -> list[Instruction | None]:
    return _skip_normalization(node, b, None, node.optional_input(3), simplified=True)


@onnx_op("SimplifiedLayerNormalization")
@onnx_op("SimplifiedLayerNormalization", domain=MICROSOFT)
def simplified_layer_normalization(node: NodeView, b: Builder) -> list[Instruction]:
    """x / sqrt(mean(x^2) + epsilon) * scale over the dimensions from `axis` on, and 1 / that root."""
    stash, given = node.element("stash_type", F32), node.input(0)
    axis = normal_axis(node, node.int("axis", -1), len(given.shape))
    dimensions = range(axis, len(given.shape))
    x = widen(b, given)
    deviation = inverse_deviation(b, mean_over(b, b.multiply(x, x), dimensions), node.float("epsilon", 1e-5))
    scale = node.input(1)
    y = b.multiply(x, spread_over(b, deviation, x, dimensions))
    y = b.multiply(y, b.numpy_broadcast(b.convert(scale, x.tensor_type.element), x.shape))
    kept = b.convert(b.reshape(deviation, kept_shape(x.shape, dimensions)), stash)
    return [b.convert(y, scale.tensor_type.element), kept]


@onnx_op("EmbedLayerNormalization", domain=MICROSOFT)
def embed_layer_normalization(node: NodeView, b: Builder) -> list[Instruction | None]:
    """The norm of word + position (+ segment) embeddings; also the lengths of the mask, and the sum."""
    words, places, segments = node.input(2), node.input(3), node.optional_input(4)
    total = _embedded(node, b, (words, places, segments), position_ids=node.optional_input(8))
    y, _, _ = _normalized(b, total, node.input(5), node.input(6), node.float("epsilon", EPSILON))
    element = words.tensor_type.element
    return [b.convert(y, element), _lengths(node, b, 7), b.convert(total, element)]


@onnx_op("QEmbedLayerNormalization", domain=MICROSOFT)
def quantized_embed_layer_normalization(node: NodeView, b: Builder) -> list[Instruction | None]:
    """As EmbedLayerNormalization, with 8-bit tables, each with a scale and zero point for all of it."""
    tables = [node.optional_input(i) for i in (2, 3, 4)]
    scales = [scalar(node, b, i) if node.has_input(i) else None for i in (8, 9, 10)]
    zeros = [optional_scalar(node, b, i) for i in (13, 14, 15)]

    def decode(i: int) -> Instruction | None:
        table, scale = tables[i], scales[i]
        return None if table is None or scale is None else dequantize(b, table, scale, zeros[i])

    words, places = decode(0), decode(1)
    if words is None or places is None:
        node.shape_error("the word and position embeddings must be given")
    total = _embedded(node, b, (words, places, decode(2)), position_ids=None)
    gamma = dequantize(b, node.input(5), scalar(node, b, 11), optional_scalar(node, b, 16))
    beta = dequantize(b, node.input(6), scalar(node, b, 12), optional_scalar(node, b, 17))
    y, _, _ = _normalized(b, total, gamma, beta, node.float("epsilon", EPSILON))
    return [y, _lengths(node, b, 7)]


def _embedded(
    node: NodeView,
    b: Builder,
    tables: Sequence[Instruction | None],
    position_ids: Instruction | None,
) -> Instruction:
    """The sum [batch, length, hidden] of rows of the word, position and segment tables, in a wide type."""
    ids, segment_ids = node.input(0), node.optional_input(1)
    words, places, segments = tables
    assert words is not None and places is not None
    length = ids.shape[1]
    if position_ids is None:
        position_ids = b.iota(TensorType(S64, (1, length)), 1)
    word, place = b.take(words, ids, 0), b.take(places, position_ids, 0)
    total = b.add(widen(b, word), b.numpy_broadcast(widen(b, place), word.shape))
    if segments is not None and segment_ids is not None:
        total = b.add(total, widen(b, b.take(segments, segment_ids, 0)))
    return total


def _lengths(node: NodeView, b: Builder, mask: int) -> Instruction | None:
    """How many ones each row of the mask has (s32); zero without a mask."""
    if not node.has_output(1):
        return None
    flags = node.optional_input(mask)
    if flags is None:
        return b.full((node.input(0).shape[0],), 0, S32)
    return b.reduce_by("add", b.convert(b.compare(flags, b.full_like(flags, 1), "EQ"), S32), [1])


@onnx_op("GroupNorm", domain=MICROSOFT)
def group_norm(node: NodeView, b: Builder) -> Instruction:
    return _group_norm(node, b, node.input(0))


@onnx_op("SkipGroupNorm", domain=MICROSOFT)
def skip_group_norm(node: NodeView, b: Builder) -> list[Instruction]:
    """The norm of x + skip + bias, and that sum; the skip may be one number for each image and channel."""
    x, skip, bias = node.input(0), node.input(3), node.optional_input(4)
    if len(skip.shape) == 2:
        image = (1,) * (len(x.shape) - 2)
        by_image = (skip.shape[0], *image, skip.shape[1]) if _is_channels_last(node) else (*skip.shape, *image)
        skip = b.reshape(skip, by_image)
    total = b.add(x, b.numpy_broadcast(skip, x.shape))
    if bias is not None:
        channel = len(x.shape) - 1 if _is_channels_last(node) else 1
        total = b.add(total, b.broadcast(bias, x.shape, [channel]))
    return [_group_norm(node, b, total), total]


def _is_channels_last(node: NodeView) -> bool:
    return bool(node.int("channels_last", 1))


def _group_norm(node: NodeView, b: Builder, given: Instruction) -> Instruction:
    """Statistics over groups of channels, then gamma and beta for each channel, then SiLU on request."""
    x = channels_first(b, given) if _is_channels_last(node) else given
    n, channels, *image = x.shape
    groups = node.int("groups")
    if groups < 1 or channels % groups:
        node.shape_error(f"{channels} channels do not divide into {groups} groups")
    wide = b.convert(x, F32)
    grouped = b.reshape(wide, (n, groups, channels // groups, *image))
    dimensions = range(2, len(grouped.shape))
    _, variance, difference = centred(b, grouped, dimensions)
    deviation = inverse_deviation(b, variance, node.float("epsilon", 1e-5))
    y = b.reshape(b.multiply(difference, spread_over(b, deviation, grouped, dimensions)), x.shape)
    y = b.multiply(y, b.broadcast(b.convert(node.input(1), F32), x.shape, [1]))
    y = b.add(y, b.broadcast(b.convert(node.input(2), F32), x.shape, [1]))
    if node.int("activation", 0):
        y = b.multiply(y, b.unary("logistic", y))
    y = b.convert(y, given.tensor_type.element)
    return channels_last(b, y) if _is_channels_last(node) else y
