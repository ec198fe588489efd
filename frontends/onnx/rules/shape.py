"""Operators that change a shape and keep the numbers: Reshape, Transpose, Concat, Split, Tile and so on."""

import math
from collections.abc import Sequence

from onnxla.frontends.onnx.broadcasting import shape_of_broadcast
from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.axes import dropped_shape, normal_axes, normal_axis
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import Shape


@onnx_op("Reshape", until=4)
def reshape_by_attribute(node: NodeView, b: Builder) -> Instruction:
    return _reshape(node, b, node.ints("shape"), zero_copies=True)


@onnx_op("Reshape", since=5)
def reshape(node: NodeView, b: Builder) -> Instruction:
    return _reshape(node, b, node.constant_ints(1), zero_copies=not node.int("allowzero", 0))


def _reshape(node: NodeView, b: Builder, wish: Sequence[int], zero_copies: bool) -> Instruction:
    """A 0 copies the input's size (where `zero_copies`), one -1 takes what is left."""
    x = node.input(0)
    sizes = list(wish)
    if min(sizes, default=0) < -1 or sizes.count(-1) > 1:
        node.shape_error(f"the new shape {sizes} may name one unknown size, as -1")
    for d, size in enumerate(sizes):
        if size == 0 and zero_copies:
            if d >= len(x.shape):
                node.shape_error(f"the new shape {sizes} copies dimension {d}, which the input does not have")
            sizes[d] = x.shape[d]
    if -1 in sizes:
        unknown = sizes.index(-1)
        known = math.prod(size for size in sizes if size != -1)
        if known == 0 or x.tensor_type.size % known:
            node.shape_error(f"{x.tensor_type.size} elements do not divide into the new shape {list(wish)}")
        sizes[unknown] = x.tensor_type.size // known
    if math.prod(sizes) != x.tensor_type.size:
        node.shape_error(f"{x.tensor_type.size} elements do not fit the new shape {list(wish)}")
    return b.reshape(x, sizes)


@onnx_op("Flatten")
def flatten(node: NodeView, b: Builder) -> Instruction:
    """A matrix whose rows run over the dimensions before `axis`, which may be the rank."""
    x, axis = node.input(0), node.int("axis", 1)
    rank = len(x.shape)
    if not -rank <= axis <= rank:
        node.shape_error(f"axis {axis} is out of range for rank {rank}")
    axis = axis + rank if axis < 0 else axis
    return b.reshape(x, (math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))


@onnx_op("Squeeze", until=12)
def squeeze_by_attribute(node: NodeView, b: Builder) -> Instruction:
    return _squeeze(node, b, node.ints("axes", None))


@onnx_op("Squeeze", since=13)
def squeeze(node: NodeView, b: Builder) -> Instruction:
    return _squeeze(node, b, node.optional_constant_ints(1))


def _squeeze(node: NodeView, b: Builder, axes: Sequence[int] | None) -> Instruction:
    """Without axes every dimension of size 1 goes."""
    x = node.input(0)
    if axes is None:
        axes = [d for d, size in enumerate(x.shape) if size == 1]
    axes = normal_axes(node, axes, len(x.shape))
    if any(x.shape[axis] != 1 for axis in axes):
        node.shape_error(f"the dimensions {list(axes)} are not all of size 1")
    return b.reshape(x, dropped_shape(x.shape, axes))


@onnx_op("Unsqueeze", until=12)
def unsqueeze_by_attribute(node: NodeView, b: Builder) -> Instruction:
    return _unsqueeze(node, b, node.ints("axes"))


@onnx_op("Unsqueeze", since=13)
def unsqueeze(node: NodeView, b: Builder) -> Instruction:
    return _unsqueeze(node, b, node.constant_ints(1))


def _unsqueeze(node: NodeView, b: Builder, axes: Sequence[int]) -> Instruction:
    """The axes count in the result."""
    x = node.input(0)
    rank = len(x.shape) + len(axes)
    new = normal_axes(node, axes, rank)
    sizes = iter(x.shape)
    return b.reshape(x, [1 if d in new else next(sizes) for d in range(rank)])


@onnx_op("Transpose")
def transpose(node: NodeView, b: Builder) -> Instruction:
    x = node.input(0)
    rank = len(x.shape)
    permutation = node.ints("perm", None)
    if permutation is None:
        permutation = tuple(reversed(range(rank)))
    if len(permutation) != rank:
        node.shape_error(f"perm {list(permutation)} does not fit rank {rank}")
    return b.transpose(x, normal_axes(node, permutation, rank))


@onnx_op("Expand", since=8)
def expand(node: NodeView, b: Builder) -> Instruction:
    """Sizes of 1 in the asked-for shape keep the input's."""
    x = node.input(0)
    return b.numpy_broadcast(x, shape_of_broadcast(x.shape, node.constant_ints(1)))


@onnx_op("Concat", until=3)
def concat_along_channels(node: NodeView, b: Builder) -> Instruction:
    return _concat(node, b, node.int("axis", 1))


@onnx_op("Concat", since=4)
def concat(node: NodeView, b: Builder) -> Instruction:
    return _concat(node, b, node.int("axis"))


def _concat(node: NodeView, b: Builder, axis: int) -> Instruction:
    inputs = node.inputs()
    return b.concatenate(inputs, normal_axis(node, axis, len(inputs[0].shape)))


@onnx_op("Split", until=12)
def split_by_attribute(node: NodeView, b: Builder) -> list[Instruction]:
    """Opset 1 could also give the sizes as an input."""
    sizes = node.ints("split", None)
    return _split(node, b, node.optional_constant_ints(1) if sizes is None else sizes, node.output_count)


@onnx_op("Split", since=13)
def split(node: NodeView, b: Builder) -> list[Instruction]:
    return _split(node, b, node.optional_constant_ints(1), node.int("num_outputs", node.output_count))


def _split(node: NodeView, b: Builder, sizes: Sequence[int] | None, parts: int) -> list[Instruction]:
    """Without sizes the parts are equal, the last one smaller where that does not come out even."""
    x = node.input(0)
    axis = normal_axis(node, node.int("axis", 0), len(x.shape))
    total = x.shape[axis]
    if sizes is None:
        if parts < 1:
            node.shape_error(f"a split into {parts} parts is not possible")
        part = -(-total // parts)
        sizes = [max(min(part, total - i * part), 0) for i in range(parts)]
    if sum(sizes) != total or min(sizes, default=0) < 0:
        node.shape_error(f"the parts {list(sizes)} do not add up to {total}")
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    return [slice_axis(b, x, axis, start, start + size) for start, size in zip(starts, sizes, strict=True)]


def slice_axis(b: Builder, x: Instruction, axis: int, start: int, limit: int, stride: int = 1) -> Instruction:
    """`x` from `start` to `limit` along one axis; `x` itself where that is all of it."""
    if (start, limit, stride) == (0, x.shape[axis], 1):
        return x
    rank = range(len(x.shape))
    starts = [start if d == axis else 0 for d in rank]
    limits = [limit if d == axis else x.shape[d] for d in rank]
    return b.slice(x, starts, limits, [stride if d == axis else 1 for d in rank])


@onnx_op("Tile", until=5)
def tile_one_axis(node: NodeView, b: Builder) -> Instruction:
    x = node.input(0)
    (tiles,), (axis,) = node.constant_ints(1), node.constant_ints(2)
    axis = normal_axis(node, axis, len(x.shape))
    return _tile(b, x, [tiles if d == axis else 1 for d in range(len(x.shape))])


@onnx_op("Tile", since=6)
def tile(node: NodeView, b: Builder) -> Instruction:
    x, repeats = node.input(0), node.constant_ints(1)
    if len(repeats) != len(x.shape) or min(repeats, default=0) < 0:
        node.shape_error(f"repeats {list(repeats)} do not fit rank {len(x.shape)}")
    return _tile(b, x, repeats)


def _tile(b: Builder, x: Instruction, repeats: Sequence[int]) -> Instruction:
    """[d0, d1] stretches to [r0, d0, r1, d1], which reads as [r0 * d0, r1 * d1]."""
    spread: list[int] = []
    kept: list[int] = []
    for size, repeat in zip(x.shape, repeats, strict=True):
        spread += [repeat] if repeat != 1 else []
        kept.append(len(spread))
        spread.append(size)
    if len(spread) == len(x.shape):
        return x
    tiled = tuple(size * repeat for size, repeat in zip(x.shape, repeats, strict=True))
    return b.reshape(b.broadcast(x, spread, kept), tiled)


@onnx_op("DepthToSpace")
def depth_to_space(node: NodeView, b: Builder) -> Instruction:
    """Channels become square blocks: depth-column-row splits the block first, column-row-depth last."""
    mode, block, x = node.word("mode", ("DCR", "CRD"), "DCR"), node.int("blocksize"), node.input(0)
    n, c, h, w = _image_shape(node, x)
    if c % (block * block):
        node.shape_error(f"{c} channels do not divide into blocks of {block} x {block}")
    depth = c // (block * block)
    if mode == "DCR":
        spread, permutation = (n, block, block, depth, h, w), (0, 3, 4, 1, 5, 2)
    else:
        spread, permutation = (n, depth, block, block, h, w), (0, 1, 4, 2, 5, 3)
    blocks = b.transpose(b.reshape(x, spread), permutation)
    return b.reshape(blocks, (n, depth, h * block, w * block))


@onnx_op("SpaceToDepth")
def space_to_depth(node: NodeView, b: Builder) -> Instruction:
    """Square blocks become channels; opset 28 can order them column-row-depth too."""
    mode, block, x = node.word("mode", ("DCR", "CRD"), "DCR"), node.int("blocksize"), node.input(0)
    n, c, h, w = _image_shape(node, x)
    if h % block or w % block:
        node.shape_error(f"{h} x {w} does not divide into blocks of {block} x {block}")
    permutation = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    blocks = b.reshape(x, (n, c, h // block, block, w // block, block))
    return b.reshape(b.transpose(blocks, permutation), (n, c * block * block, h // block, w // block))


def _image_shape(node: NodeView, x: Instruction) -> Shape:
    if len(x.shape) != 4:
        node.shape_error(f"{x.tensor_type} is not a batch of images [N, C, H, W]")
    return x.shape
