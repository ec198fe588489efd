"""Bucketize, cross products, Cholesky and triangular systems, Fourier transforms, fake quantisation, UnravelIndex."""

import numpy as np

from onnxla.frontends.onnx.broadcasting import broadcast_together
from onnxla.frontends.tensorflow.node_view import NodeView
from onnxla.frontends.tensorflow.registry import tf_op
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.linear_algebra import Cholesky, TriangularSolve
from onnxla.hlo.types import F32, S32


@tf_op("Bucketize")
def bucketize(node: NodeView, b: Builder) -> Instruction:
    """How many of the boundaries are not above each element."""
    x, boundaries = node.input(0), node.floats("boundaries")
    shape = (*x.shape, len(boundaries))
    spread = b.broadcast(b.convert(x, F32), shape, range(len(x.shape)))
    limits = b.broadcast(b.constant(np.array(boundaries, np.float32)), shape, [len(x.shape)])
    return b.reduce_by("add", b.convert(b.compare(spread, limits, "GE"), S32), [len(x.shape)])


@tf_op("Cross")
def cross(node: NodeView, b: Builder) -> Instruction:
    """The cross product of vectors of three along the last dimension."""
    x, y = node.inputs()
    if x.shape[-1:] != (3,) or x.shape != y.shape:
        node.shape_error("the operands must be vectors of three, of one shape")

    def turned(v: Instruction, order: tuple[int, ...]) -> Instruction:
        return b.take(v, b.constant(np.array(order, np.int32)), len(v.shape) - 1)

    left = b.multiply(turned(x, (1, 2, 0)), turned(y, (2, 0, 1)))
    return b.subtract(left, b.multiply(turned(x, (2, 0, 1)), turned(y, (1, 2, 0))))


@tf_op("Cholesky")
def cholesky(node: NodeView, b: Builder) -> Instruction:
    """The lower triangular factor, zero above."""
    return b.emit(Cholesky(lower=True), node.input(0))


@tf_op("MatrixTriangularSolve", "BatchMatrixTriangularSolve")
def triangular_solve(node: NodeView, b: Builder) -> Instruction:
    matrix, rhs = node.inputs()
    adjoint = "ADJOINT" if node.bool("adjoint", False) else "NO_TRANSPOSE"
    op = TriangularSolve(left_side=True, lower=node.bool("lower", True), unit_diagonal=False, transpose_a=adjoint)
    return b.emit(op, matrix, rhs)


def _register_fft(name: str, kind: str, rank: int) -> None:
    @tf_op(name)
    def rule(node: NodeView, b: Builder) -> Instruction:
        x = node.input(0)
        return b.fft(x, kind, x.shape[len(x.shape) - rank :])


for _rank, _suffix in ((1, ""), (2, "2D"), (3, "3D")):
    _register_fft(f"FFT{_suffix}", "FFT", _rank)
    _register_fft(f"IFFT{_suffix}", "IFFT", _rank)


def _register_real_fft(name: str, kind: str, rank: int) -> None:
    @tf_op(name)
    def rule(node: NodeView, b: Builder) -> Instruction:
        """Cut, or filled with zeros, to the length that an operand says."""
        x, lengths = node.input(0), node.constant_ints(1)
        first = len(x.shape) - rank
        wanted = list(lengths)
        if kind == "IRFFT":
            wanted[-1] = lengths[-1] // 2 + 1
        high = [0] * first + [w - n for w, n in zip(wanted, x.shape[first:], strict=True)]
        fitted = b.pad(x, b.constant(0, x.tensor_type.element), [0] * len(high), high) if any(high) else x
        return b.fft(fitted, kind, lengths)


for _rank, _suffix in ((1, ""), (2, "2D"), (3, "3D")):
    _register_real_fft(f"RFFT{_suffix}", "RFFT", _rank)
    _register_real_fft(f"IRFFT{_suffix}", "IRFFT", _rank)


@tf_op("FakeQuantWithMinMaxArgs")
def fake_quant_args(node: NodeView, b: Builder) -> Instruction:
    x = node.input(0)
    low, high = (b.full((), node.float(name, value), F32) for name, value in (("min", -6.0), ("max", 6.0)))
    return _fake_quant(node, b, x, low, high)


@tf_op("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")
def fake_quant(node: NodeView, b: Builder) -> Instruction:
    return _fake_quant(node, b, node.input(0), node.input(1), node.input(2))


def _fake_quant(node: NodeView, b: Builder, x: Instruction, low: Instruction, high: Instruction) -> Instruction:
    """Rounded to one of the levels between two limits, which are nudged so that zero is one of them."""
    first, last = float(node.bool("narrow_range", False)), float((1 << node.int("num_bits", 8)) - 1)
    scale = b.divide(b.subtract(high, low), b.full_like(low, last - first))
    from_low = b.subtract(b.full_like(low, first), b.divide(low, scale))
    rounded = b.unary("floor", b.add(from_low, b.full_like(low, 0.5)))
    zero = b.minimum(b.maximum(rounded, b.full_like(low, first)), b.full_like(low, last))
    least = b.multiply(b.subtract(b.full_like(low, first), zero), scale)
    most = b.multiply(b.subtract(b.full_like(low, last), zero), scale)
    x, least, most, scale = broadcast_together(b, x, least, most, scale)
    clamped = b.subtract(b.minimum(b.maximum(x, least), most), least)
    inverse = b.divide(b.full_like(scale, 1), scale)  # as TensorFlow rounds it: a level more or less hangs on it
    level = b.unary("floor", b.add(b.multiply(clamped, inverse), b.full_like(x, 0.5)))
    return b.add(b.multiply(level, scale), least)


@tf_op("UnravelIndex")
def unravel_index(node: NodeView, b: Builder) -> Instruction:
    """[rank, ...]: the coordinates of elements that are counted row by row."""
    index, sizes = node.input(0), node.constant_ints(1)
    rows = []
    stride = int(np.prod(sizes))
    for n in sizes:
        stride //= max(n, 1)
        place = b.remainder(b.divide(index, b.full_like(index, max(stride, 1))), b.full_like(index, max(n, 1)))
        rows.append(b.reshape(place, (1, *index.shape)))
    return b.concatenate(rows, 0)
