"""An instruction for each class of GPU kernels, of any size: what tests of all classes, and of one, are made from."""

from collections.abc import Callable

import numpy as np

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Computation, Instruction, Module
from onnxla.hlo.ops.contraction import ConvolutionDimensions, Window, WindowDimension
from onnxla.hlo.ops.control_flow import Fusion
from onnxla.hlo.ops.indexing import Scatter
from onnxla.hlo.types import BF16, F16, F32, S8, S32, U8, ElementType, TensorType
from onnxla.passes.fuse_attention import FuseAttention
from tests.gpu.running import fusion


def elementwise(size: int) -> Instruction:
    """x y + x."""
    b = Builder()
    x, y = b.parameter(TensorType(F32, (size,))), b.parameter(TensorType(F32, (size,)))
    return fusion(b, b.add(b.multiply(x, y), x))


def softmax(shape: tuple[int, ...], element: ElementType = F32) -> Instruction:
    b = Builder()
    x = b.parameter(TensorType(element, shape))
    last, kept = len(shape) - 1, range(len(shape) - 1)
    shifted = b.subtract(x, b.broadcast(b.reduce_by("maximum", x, [last]), shape, kept))
    e = b.exponential(shifted)
    return fusion(b, b.divide(e, b.broadcast(b.reduce_by("add", e, [last]), shape, kept)))


def reduction(
    shape: tuple[int, ...], dimensions: list[int], opcode: str = "add", element: ElementType = F32
) -> Instruction:
    """A fused producer, a reduction and an epilogue."""
    b = Builder()
    x = b.multiply(b.parameter(TensorType(element, shape)), b.parameter(TensorType(element, shape)))
    return fusion(b, b.negate(b.reduce_by(opcode, x, dimensions)), kind="kInput")


def transpose(shape: tuple[int, ...], permutation: tuple[int, ...], element: ElementType = F32) -> Instruction:
    """|-x|, transposed."""
    b = Builder()
    x = b.negate(b.parameter(TensorType(element, shape)))
    return fusion(b, b.unary("abs", b.transpose(x, permutation)))


def product(m: int, k: int, n: int, element: ElementType = F32, lhs: int = 1, rhs: int = 0) -> Instruction:
    """A dot that contracts dimension `lhs` of the left operand and `rhs` of the right one."""
    b = Builder()
    x = b.parameter(TensorType(element, (m, k) if lhs else (k, m)))
    y = b.parameter(TensorType(element, (n, k) if rhs else (k, n)))
    return b.dot(x, y, [lhs], [rhs])


def product_of_bytes(
    m: int, k: int, n: int, left: ElementType = U8, right: ElementType = S8, lhs: int = 1, rhs: int = 1
) -> Instruction:
    """As `product`, with sums of s32."""
    b = Builder()
    x = b.parameter(TensorType(left, (m, k) if lhs else (k, m)))
    y = b.parameter(TensorType(right, (n, k) if rhs else (k, n)))
    return b.dot(x, y, [lhs], [rhs], element=S32)


def convolution(element: ElementType, groups: int = 1, image: tuple[int, int] = (12, 16)) -> Instruction:
    """16 to 32 channels, which come first, with a padded window of 3 by 3."""
    b = Builder()
    x, w = b.parameter(TensorType(element, (1, 16, *image))), b.parameter(TensorType(element, (32, 16 // groups, 3, 3)))
    return b.convolution(x, w, Window.of([3, 3], [1, 1], [1, 1], [1, 1]), ConvolutionDimensions.nchw(2), groups)


def attention(
    heads: int, queries: int, keys: int, size: int, features: int, element: ElementType = F16, masked: bool = False
) -> Module:
    """softmax(q k / 4 + mask) v with queries [m,h,d], keys [n,h,d] and values [n,h,f]."""
    b = Builder()
    q = b.parameter(TensorType(element, (queries, heads, size)))
    k = b.parameter(TensorType(element, (keys, heads, size)))
    v = b.parameter(TensorType(element, (keys, heads, features)))
    product = b.dot(q, k, [2], [2], [1], [1], element=F32)
    scores = b.multiply(product, b.full_like(product, 0.25))
    if masked:
        mask = b.parameter(TensorType(F32, (queries, keys)))
        scores = b.add(scores, b.broadcast(mask, scores.shape, [1, 2]))
    highest = b.reduce([scores], [b.constant(np.float32(-np.inf))], [2], b.combiner("maximum", F32))
    exponential = b.exponential(b.subtract(scores, b.broadcast(highest, scores.shape, [0, 1])))
    total = b.reduce([exponential], [b.constant(np.float32(0))], [2], b.combiner("add", F32))
    weights = b.divide(exponential, b.broadcast(total, scores.shape, [0, 1]))
    result = b.dot(b.convert(weights, element), v, [2], [0], [0], [1], element=F32)
    return Module("attention", b.build(b.tuple(result)))


def fused(module: Module) -> Instruction:
    """Of `attention`, the instruction that is one kernel."""
    assert FuseAttention().run(module)
    (instruction,) = module.entry.root.operands
    assert isinstance(instruction.op, Fusion)
    return instruction


def less(*elements: ElementType) -> Computation:
    """Compares the first operand only."""
    b = Builder("less")
    sides = [b.parameter(TensorType(e, ())) for e in elements for _ in "lr"]
    return b.build(b.compare(sides[0], sides[1], "LT"))


def sum_of_two() -> Computation:
    b = Builder("add")
    return b.build(b.add(b.parameter(TensorType(F32, ())), b.parameter(TensorType(F32, ()))))


def sort(length: int) -> Instruction:
    b = Builder()
    return b.sort([b.parameter(TensorType(F32, (2, length)))], 1, less(F32))


def scatter(length: int) -> Instruction:
    """Four rows added to rows of six."""
    b = Builder()
    op = Scatter((1,), (0,), (0,), (), (), 1, False, False, sum_of_two())
    shapes = (TensorType(F32, (6, length)), TensorType(S32, (4, 1)), TensorType(F32, (4, length)))
    x, i, u = (b.parameter(t) for t in shapes)
    return b.scatter(x, i, u, op)


def update(length: int) -> Instruction:
    b = Builder()
    x, u, at = (b.parameter(t) for t in (TensorType(F32, (length,)), TensorType(F32, (length,)), TensorType(S32, ())))
    return b.dynamic_update_slice(x, u, [at])


def running_sum(lines: int) -> Instruction:
    """Along the five columns of each line."""
    b = Builder()
    window = Window((WindowDimension(1), WindowDimension(5, pad_low=4)))
    x = b.parameter(TensorType(F32, (lines, 5)))
    return b.reduce_window([x], [b.constant(np.float32(0))], window, sum_of_two())


AWKWARD: dict[str, Callable[[], Instruction]] = {
    "loop": lambda: elementwise(700),
    "row": lambda: softmax((2, 700)),
    "reduction of columns": lambda: reduction((300, 40), [0]),
    "reduction in parts": lambda: reduction((9000, 3), [0]),
    "transpose": lambda: transpose((40, 50), (1, 0)),
    "product of f32": lambda: product(70, 19, 35),
    "product of bf16": lambda: product(70, 40, 72, BF16),
    "product of bytes": lambda: product_of_bytes(20, 36, 24),
    "convolution of f32": lambda: convolution(F32, image=(5, 7)),
    "convolution of f16": lambda: convolution(F16, image=(5, 7)),
    "depthwise convolution": lambda: convolution(F32, 16, image=(5, 7)),
    "attention of f32": lambda: fused(attention(1, 5, 70, 6, 12, F32)),
    "attention of f16": lambda: fused(attention(1, 20, 70, 24, 36)),
    "sort": lambda: sort(70),
    "scatter": lambda: scatter(70),
    "update": lambda: update(70),
    "scan": lambda: running_sum(70),
}
"""Of sizes that fill no tile, and differ."""
