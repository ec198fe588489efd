"""Blocks of an image that become channels or parts of the batch, and back."""

import math

import numpy as np

from onnxla.frontends.tensorflow.images import CHANNELS_FIRST
from onnxla.frontends.tensorflow.node_view import NodeView
from onnxla.frontends.tensorflow.registry import tf_op
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction


def _block_axes(node: NodeView, rank: int) -> tuple[int, list[int]]:
    """Where the channels and the spatial dimensions stand."""
    first = node.string("data_format", "NHWC") in CHANNELS_FIRST
    return (1, [2, 3]) if first else (rank - 1, [1, 2])


@tf_op("SpaceToDepth")
def space_to_depth(node: NodeView, b: Builder) -> Instruction:
    x, block = node.input(0), node.int("block_size")
    feature, (row, column) = _block_axes(node, len(x.shape))
    n, c, h, w = x.shape[0], x.shape[feature], x.shape[row] // block, x.shape[column] // block
    if feature == 1:
        cut = b.transpose(b.reshape(x, (n, c, h, block, w, block)), (0, 3, 5, 1, 2, 4))
        return b.reshape(cut, (n, block * block * c, h, w))
    cut = b.transpose(b.reshape(x, (n, h, block, w, block, c)), (0, 1, 3, 2, 4, 5))
    return b.reshape(cut, (n, h, w, block * block * c))


@tf_op("DepthToSpace")
def depth_to_space(node: NodeView, b: Builder) -> Instruction:
    x, block = node.input(0), node.int("block_size")
    feature, (row, column) = _block_axes(node, len(x.shape))
    n, c, h, w = x.shape[0], x.shape[feature] // (block * block), x.shape[row], x.shape[column]
    if feature == 1:
        cut = b.transpose(b.reshape(x, (n, block, block, c, h, w)), (0, 3, 4, 1, 5, 2))
        return b.reshape(cut, (n, c, h * block, w * block))
    cut = b.transpose(b.reshape(x, (n, h, w, block, block, c)), (0, 1, 3, 2, 4, 5))
    return b.reshape(cut, (n, h * block, w * block, c))


@tf_op("SpaceToBatchND")
def space_to_batch(node: NodeView, b: Builder) -> Instruction:
    """Padded, then cut into blocks whose places become part of the batch."""
    x, blocks = node.input(0), node.constant_ints(1)
    pads = np.array(node.constant_ints(2)).reshape(-1, 2)
    count, rest = len(blocks), x.shape[1 + len(blocks) :]
    low = [0, *(int(p) for p in pads[:, 0]), *(0 for _ in rest)]
    high = [0, *(int(p) for p in pads[:, 1]), *(0 for _ in rest)]
    x = b.pad(x, b.constant(0, x.tensor_type.element), low, high)
    sizes = x.shape[1 : 1 + count]
    if any(n % k for n, k in zip(sizes, blocks, strict=True)):
        node.shape_error(f"padded sizes {list(sizes)} are no multiples of the blocks {list(blocks)}")
    pairs = [m for n, k in zip(sizes, blocks, strict=True) for m in (n // k, k)]
    cut = b.reshape(x, (x.shape[0], *pairs, *rest))
    order = [*range(2, 2 * count + 1, 2), 0, *range(1, 2 * count, 2), *range(2 * count + 1, len(cut.shape))]
    outer = [n // k for n, k in zip(sizes, blocks, strict=True)]
    return b.reshape(b.transpose(cut, order), (x.shape[0] * math.prod(blocks), *outer, *rest))


@tf_op("BatchToSpaceND")
def batch_to_space(node: NodeView, b: Builder) -> Instruction:
    """The inverse: parts of the batch become places of blocks, then cropped."""
    x, blocks = node.input(0), node.constant_ints(1)
    crops = np.array(node.constant_ints(2)).reshape(-1, 2)
    count, rest = len(blocks), x.shape[1 + len(blocks) :]
    batch = x.shape[0] // math.prod(blocks)
    sizes = x.shape[1 : 1 + count]
    cut = b.reshape(x, (*blocks, batch, *sizes, *rest))
    order = [count, *(d for i in range(count) for d in (count + 1 + i, i)), *range(2 * count + 1, len(cut.shape))]
    whole = [n * k for n, k in zip(sizes, blocks, strict=True)]
    joined = b.reshape(b.transpose(cut, order), (batch, *whole, *rest))
    starts = [0, *(int(c) for c in crops[:, 0]), *(0 for _ in rest)]
    limits = [batch, *(n - int(c) for n, c in zip(whole, crops[:, 1], strict=True)), *rest]
    return b.slice(joined, starts, limits)
