"""DFT and STFT as products with matrices of sines and cosines, in f64.

A long transform whose length is not prime is split in two shorter ones (Cooley and Tukey): of
n = n1 * n2 numbers, n2 transforms of n1, a turn of each number, and n1 transforms of n2.
"""

import math
from dataclasses import dataclass

import numpy as np

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.axes import normal_axis
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import F64, S64, Array

LONGEST_DIRECT = 1024
"""Longer transforms are split where their length allows."""
LONGEST_PRIME = 8192


@dataclass(frozen=True)
class Complex:
    """Real and imaginary parts [rows, n]; no imaginary part means zero."""

    real: Instruction
    imaginary: Instruction | None


def _angles(n: int, rows: Array, columns: Array, inverse: bool) -> tuple[Array, Array]:
    """Cosines and sines of -2 pi * row * column / n, of the positive angle for the inverse."""
    turns = (rows[:, None] * columns[None, :]) % n
    angle = (2.0 if inverse else -2.0) * np.pi * turns / n
    return np.cos(angle), np.sin(angle)


def _turned(b: Builder, x: Complex, cos: Instruction, sin: Instruction, *, by_product: bool) -> Complex:
    """x * (cos + i sin), element by element or as matrices."""

    def times(left: Instruction, right: Instruction) -> Instruction:
        if by_product:
            return b.dot(left, right, [len(left.shape) - 1], [0])
        return b.multiply(left, b.broadcast(right, left.shape, range(len(left.shape) - 2, len(left.shape))))

    real, imaginary = times(x.real, cos), times(x.real, sin)
    if x.imaginary is not None:
        real = b.subtract(real, times(x.imaginary, sin))
        imaginary = b.add(imaginary, times(x.imaginary, cos))
    return Complex(real, imaginary)


def transform(b: Builder, x: Complex, inverse: bool, wanted: int) -> Complex:
    """The first `wanted` numbers of the transform over the last dimension; the inverse is not divided by n."""
    n = x.real.shape[-1]
    split = max((d for d in range(2, math.isqrt(n) + 1) if n % d == 0), default=1)
    if n <= LONGEST_DIRECT or split == 1:
        cos, sin = _angles(n, np.arange(n), np.arange(wanted), inverse)
        return _turned(b, x, b.constant(cos), b.constant(sin), by_product=True)
    rows, inner = x.real.shape[0], n // split

    def moved(value: Complex, shape: tuple[int, ...]) -> Complex:
        """Both parts reshaped, and the last two dimensions swapped."""
        real, imaginary = (
            None if part is None else b.transpose(b.reshape(part, shape), [0, 2, 1])
            for part in (value.real, value.imaginary)
        )
        assert real is not None
        return Complex(real, imaginary)

    def flat(value: Complex, width: int) -> Complex:
        real, imaginary = (
            None if part is None else b.reshape(part, (part.tensor_type.size // width, width))
            for part in (value.real, value.imaginary)
        )
        assert real is not None
        return Complex(real, imaginary)

    first = transform(b, flat(moved(x, (rows, split, inner)), split), inverse, split)
    cos, sin = _angles(n, np.arange(inner), np.arange(split), inverse)
    by_column = Complex(*(b.reshape(p, (rows, inner, split)) for p in (first.real, first.imaginary) if p is not None))
    turned = _turned(b, by_column, b.constant(cos), b.constant(sin), by_product=False)
    second = transform(b, flat(moved(turned, (rows, inner, split)), inner), inverse, inner)
    result = flat(moved(second, (rows, split, inner)), n)
    if wanted == n:
        return result
    assert result.imaginary is not None
    return Complex(*(b.slice(p, [0, 0], [rows, wanted]) for p in (result.real, result.imaginary)))


@onnx_op("DFT", since=17, until=19)
def dft_with_axis_attribute(node: NodeView, b: Builder) -> Instruction:
    return _dft(node, b, node.int("axis", 1))


@onnx_op("DFT", since=20)
def dft(node: NodeView, b: Builder) -> Instruction:
    axis = node.optional_constant_ints(2)
    return _dft(node, b, axis[0] if axis else -2)


def _dft(node: NodeView, b: Builder, axis: int) -> Instruction:
    """Real or complex numbers, the last dimension being 1 or 2; one-sided transforms have the first n // 2 + 1."""
    x = node.input(0)
    rank = len(x.shape)
    axis = normal_axis(node, axis, rank)
    if rank < 2 or axis == rank - 1 or x.shape[-1] not in (1, 2):
        node.shape_error(
            f"{x.tensor_type} along axis {axis} is not [..., 1] or [..., 2] along another axis than the last"
        )
    inverse, one_sided = bool(node.int("inverse", 0)), bool(node.int("onesided", 0))
    length = node.optional_constant_ints(1)
    half = inverse and one_sided
    n = length[0] if length else 2 * (x.shape[axis] - 1) if half else x.shape[axis]
    _check_length(node, n)
    order = [d for d in range(rank) if d not in (axis, rank - 1)]
    lead = [x.shape[d] for d in order]
    signal = b.transpose(b.convert(x, F64), [rank - 1, *order, axis])
    signal = b.reshape(signal, (x.shape[-1], math.prod(lead), x.shape[axis]))
    parts = [_fitted(b, _member(b, signal, i), n // 2 + 1 if half else n) for i in range(x.shape[-1])]
    numbers = Complex(parts[0], parts[1] if len(parts) == 2 else None)
    if half:
        numbers = _mirrored(b, numbers, n)
    wanted = n // 2 + 1 if one_sided and not inverse else n
    result = transform(b, numbers, inverse, wanted)
    outputs = [result.real] if half else [result.real, result.imaginary or b.full_like(result.real, 0)]
    if inverse:
        outputs = [b.divide(part, b.full_like(part, n)) for part in outputs]
    stacked = b.concatenate([b.reshape(part, (1, *lead, wanted)) for part in outputs], 0)
    back = [0] * rank
    for place, d in enumerate([rank - 1, *order, axis]):
        back[d] = place
    return b.convert(b.transpose(stacked, back), x.tensor_type.element)


def _check_length(node: NodeView, n: int) -> None:
    if n < 1:
        node.shape_error(f"a transform of length {n}")
    node.require_table(n)
    largest = max((d for d in range(2, math.isqrt(n) + 1) if n % d == 0), default=1)
    if n > LONGEST_PRIME and largest == 1:
        node.unsupported(f"a transform of the prime length {n} is not known", "pad it to a length with small factors")


def _member(b: Builder, stacked: Instruction, i: int) -> Instruction:
    _, rows, n = stacked.shape
    return b.reshape(b.slice(stacked, [i, 0, 0], [i + 1, rows, n]), (rows, n))


def _fitted(b: Builder, part: Instruction, n: int) -> Instruction:
    """Cut off, or zeros added, at the end."""
    return part if part.shape[1] == n else b.pad(part, b.constant(0, F64), [0, 0], [0, n - part.shape[1]])


def _mirrored(b: Builder, x: Complex, n: int) -> Complex:
    """All n numbers of a spectrum from its first half, the second being conjugate."""
    rows, half = x.real.shape
    # the numbers of the second half, backwards; a real spectrum has no imaginary part at 0 (nor at n / 2)
    count = n - half

    def tail(part: Instruction) -> Instruction:
        return b.reverse(b.slice(part, [0, 1], [rows, 1 + count]), [1])

    real = b.concatenate([x.real, tail(x.real)], 1) if count else x.real
    if x.imaginary is None:
        return Complex(real, None)
    imaginary = b.concatenate([x.imaginary, b.negate(tail(x.imaginary))], 1) if count else x.imaginary
    # numpy.fft.irfft ignores the imaginary parts that a real signal cannot have
    mask = np.ones(n)
    mask[0] = 0
    if n % 2 == 0:
        mask[n // 2] = 0
    kept = b.broadcast(b.constant(mask), imaginary.shape, [1])
    return Complex(real, b.multiply(imaginary, kept))


@onnx_op("STFT", since=17)
def stft(node: NodeView, b: Builder) -> Instruction:
    """[batch, frames, frequencies, 2]: the transform of each windowed frame of the signal [batch, length, 1 or 2]."""
    signal, window = node.input(0), node.optional_input(2)
    (step,), given = node.constant_ints(1), node.optional_constant_ints(3)
    if len(signal.shape) == 2:
        signal = b.reshape(signal, (*signal.shape, 1))
    batch, length, members = signal.shape
    n = given[0] if given else window.shape[0] if window is not None else length
    _check_length(node, n)
    if members not in (1, 2) or step < 1 or n > length or (window is not None and window.shape != (n,)):
        node.shape_error(f"frames of {n} by steps of {step} do not fit the signal {signal.tensor_type} and the window")
    frames = (length - n) // step + 1
    node.require_table(frames * n)
    places = np.arange(frames, dtype=np.int64)[:, None] * step + np.arange(n, dtype=np.int64)
    framed = b.take(b.convert(signal, F64), b.constant(places, S64), 1)
    if window is not None:
        framed = b.multiply(framed, b.broadcast(b.convert(window, F64), framed.shape, [2]))
    stacked = b.reshape(b.transpose(framed, [3, 0, 1, 2]), (members, batch * frames, n))
    parts = [_member(b, stacked, i) for i in range(members)]
    one_sided = bool(node.int("onesided", 1)) and members == 1
    wanted = n // 2 + 1 if one_sided else n
    result = transform(b, Complex(parts[0], parts[1] if members == 2 else None), False, wanted)
    outputs = (result.real, result.imaginary)
    joined = b.concatenate([b.reshape(p, (batch, frames, wanted, 1)) for p in outputs if p is not None], 3)
    return b.convert(joined, signal.tensor_type.element)
