"""Weights in few bits that are decoded as they are used: MatMulNBits, MatMulBnb4, GatherBlockQuantized.

Bits are packed lowest first into bytes. The decoding is left to the passes: folded where memory
allows, or fused into the product.
"""

import numpy as np

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.axes import normal_axis
from onnxla.frontends.onnx.rules.precision import wide_element
from onnxla.frontends.onnx.rules.quantized_values import repeat_blocks
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import F32, S32, S64, U8, ElementType, TensorType

MICROSOFT = "com.microsoft"

FP4_VALUES = (0.0, 0.005208333333, 0.6666667, 1.0, 0.33333333, 0.5, 0.16666667, 0.25)
"""bitsandbytes' FP4: the magnitudes; the fourth bit is the sign."""
NF4_VALUES = (
    *(-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453),
    *(-0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0),
    *(0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224),
    *(0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0),
)
"""bitsandbytes' NF4: quantiles of the normal distribution."""


def unpacked(b: Builder, packed: Instruction, bits: int, count: int) -> Instruction:
    """`packed` u8 [..., bytes] as u8 [..., count], the lowest bits of each byte first."""
    each = 8 // bits
    *lead, size = packed.shape
    shape = (*lead, size, each)
    repeated = b.broadcast(packed, shape, range(len(packed.shape)))
    shift = b.multiply(b.iota(TensorType(U8, shape), len(shape) - 1), b.full(shape, bits, U8))
    shifted = b.binary("shift-right-logical", repeated, shift)
    values = b.reshape(b.and_(shifted, b.full(shape, (1 << bits) - 1, U8)), (*lead, size * each))
    return b.slice(values, [0] * len(values.shape), [*lead, count]) if size * each > count else values


@onnx_op("MatMulNBits", domain=MICROSOFT)
def matmul_n_bits(node: NodeView, b: Builder) -> Instruction:
    """A W' with W [N, K] of `bits` each, a scale and zero point for each block of a row; plus the bias."""
    a = node.input(0)
    n, k, bits, block = node.int("N"), node.int("K"), node.int("bits", 4), node.int("block_size")
    if bits not in (2, 4, 8) or block < 1:
        node.unsupported(f"bits={bits} with block_size={block} is not known", "2, 4 and 8 bits are")
    if node.has_input(4) or node.int("weight_prepacked", 0):
        node.unsupported("g_idx and weight_prepacked are not known", "quantise without reordering (act_order)")
    blocks = -(-k // block)
    if a.shape[-1:] != (k,) or node.input(1).tensor_type.size != n * blocks * block * bits // 8:
        node.shape_error(f"A {a.tensor_type} or B {node.input(1).tensor_type} do not fit N={n}, K={k}")
    element = wide_element(a.tensor_type.element)
    packed = b.reshape(node.input(1), (n, blocks * block * bits // 8))
    codes = b.convert(unpacked(b, packed, bits, blocks * block), element)
    zero = repeat_blocks(b, _zero_points(node, b, n, blocks, bits, element), 1, block, blocks * block)
    scales = b.convert(b.reshape(node.input(2), (n, blocks)), element)
    weights = b.multiply(b.subtract(codes, zero), repeat_blocks(b, scales, 1, block, blocks * block))
    if blocks * block > k:
        weights = b.slice(weights, [0, 0], [n, k])
    y = b.dot(b.convert(a, element), weights, [len(a.shape) - 1], [1])
    bias = node.optional_input(5)
    if bias is not None:
        y = b.add(y, b.broadcast(b.convert(bias, element), y.shape, [len(y.shape) - 1]))
    return b.convert(y, a.tensor_type.element)


def _zero_points(node: NodeView, b: Builder, n: int, blocks: int, bits: int, element: ElementType) -> Instruction:
    """[N, blocks], packed like the weights or as they are; the middle code where they are left out."""
    given = node.optional_input(3)
    if given is None:
        return b.full((n, blocks), 1 << (bits - 1), element)
    if given.tensor_type.element.is_float:
        return b.convert(b.reshape(given, (n, blocks)), element)
    row_bytes = -(-blocks * bits // 8)
    return b.convert(unpacked(b, b.reshape(given, (n, row_bytes)), bits, blocks), element)


@onnx_op("MatMulBnb4", domain=MICROSOFT)
def matmul_bnb4(node: NodeView, b: Builder) -> Instruction:
    """A W' with W [N, K] in 4-bit codes of a table, the high half of a byte first, a magnitude for each block."""
    a = node.input(0)
    n, k, block = node.int("N"), node.int("K"), node.int("block_size")
    if not node.int("transB", 1) or node.int("training_mode", 0):
        node.unsupported("transB=0 and training_mode=1 are not known")
    match node.int("quant_type"):
        case 0:
            table = [*FP4_VALUES, *(-v for v in FP4_VALUES)]
        case 1:
            table = list(NF4_VALUES)
        case other:
            node.unsupported(f"quant_type={other} is not known", "0 (FP4) and 1 (NF4) are")
    element = wide_element(a.tensor_type.element)
    codes = unpacked(b, b.reshape(node.input(1), (node.input(1).tensor_type.size,)), 4, n * k + n * k % 2)
    pairs = b.reverse(b.reshape(codes, (codes.shape[0] // 2, 2)), [1])
    flat = b.slice(b.reshape(pairs, codes.shape), [0], [n * k])
    values = b.take(b.constant(np.array(table, element.dtype)), b.convert(flat, S32), 0)
    magnitudes = repeat_blocks(b, b.convert(node.input(2), element), 0, block, n * k)
    weights = b.reshape(b.multiply(values, magnitudes), (n, k))
    y = b.dot(b.convert(a, element), weights, [len(a.shape) - 1], [1])
    return b.convert(y, a.tensor_type.element)


@onnx_op("GatherBlockQuantized", domain=MICROSOFT)
def gather_block_quantized(node: NodeView, b: Builder) -> Instruction:
    """Rows of a table in few bits, decoded after they are taken; scales and zero points by blocks along an axis."""
    data, indices, scales = node.input(0), node.input(1), node.input(2)
    rank = len(data.shape)
    gathered = normal_axis(node, node.int("gather_axis", 0), rank)
    blocked = normal_axis(node, node.int("quantize_axis", 1), rank)
    block, bits = node.int("block_size", 128), node.int("bits", 4)
    element = data.tensor_type.element
    if not element.is_integer or block < 1 or gathered == blocked:
        node.unsupported(f"data of {element} with block_size={block} along the gathered axis is not known")
    size = data.shape[blocked]
    zeros = node.optional_input(3)
    middle = 0
    if element is U8:
        if blocked != rank - 1:
            node.unsupported("packed bytes along another axis than the last are not known")
        size *= 8 // bits
        middle = 1 << (bits - 1)

    def taken(value: Instruction) -> Instruction:
        axis = value.shape[gathered]
        wide = b.convert(indices, S64)
        wrapped = b.select(b.compare(wide, b.full_like(wide, 0), "LT"), b.add(wide, b.full_like(wide, axis)), wide)
        return b.take(value, wrapped, gathered)

    axis = blocked if blocked < gathered else blocked + len(indices.shape) - 1
    rows = taken(data)
    codes = b.convert(unpacked(b, rows, bits, size) if element is U8 else rows, F32)
    scale = repeat_blocks(b, b.convert(taken(scales), F32), axis, block, size)
    if zeros is None:
        zero = b.full_like(codes, middle)
    else:
        decoded = unpacked(b, zeros, bits, scales.shape[blocked]) if element is U8 else zeros
        zero = repeat_blocks(b, b.convert(taken(decoded), F32), axis, block, size)
    return b.convert(b.multiply(b.subtract(codes, zero), scale), scales.tensor_type.element)
