"""fft as products with matrices of roots of unity.

A transform of up to 64 elements is one matrix product. A longer one is split by a divisor n1 of its length into
transforms of n1 and of n / n1 elements with a multiplication by roots of unity between them (Cooley, Tukey 1965), so
only a length with a large prime divisor needs a large matrix. Complex values are pairs of real ones here.
"""

import math
from typing import Any

import numpy as np

from onnxla.errors import UnsupportedOpError
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.linear_algebra import Fft
from onnxla.hlo.types import F32, F64, Array

Pair = tuple[Instruction, Instruction | None]
"""Real and imaginary part; None for an imaginary part of 0."""

_ONE_PRODUCT = 64
_LARGEST_PRIME = 4096


def expand_fft(b: Builder, instruction: Instruction) -> Instruction:
    """The transform of the last dimensions, one after the other."""
    op, (operand,) = instruction.op, instruction.operands
    assert isinstance(op, Fft)
    rank = len(operand.shape)
    axes = list(range(rank - len(op.fft_length), rank))
    inverse = op.fft_type in ("IFFT", "IRFFT")
    if instruction.tensor_type.size == 0 or operand.tensor_type.size == 0:
        return b.broadcast_scalar(b.constant(0, instruction.tensor_type.element), instruction.shape)
    element = operand.tensor_type.element
    value: Pair = (operand, None) if element in (F32, F64) else (b.unary("real", operand), b.unary("imag", operand))
    if op.fft_type == "RFFT":
        value = _transform(b, value, axes[-1], False)
        value = _both(b, value, lambda x: _first(b, x, axes[-1], instruction.shape[-1]))
        axes = axes[:-1]
    if op.fft_type == "IRFFT":
        for axis in axes[:-1]:
            value = _transform(b, value, axis, True)
        value = _transform(b, _whole_spectrum(b, value, op.fft_length[-1]), axes[-1], True)
        axes = []
    for axis in axes:
        value = _transform(b, value, axis, inverse)
    re, im = value
    if inverse:
        scale = 1.0 / math.prod(op.fft_length)
        re, im = b.multiply(re, b.full_like(re, scale)), None if im is None else b.multiply(im, b.full_like(im, scale))
    if op.fft_type == "IRFFT":
        return re
    return b.binary("complex", re, im if im is not None else b.full_like(re, 0))


def _both(b: Builder, value: Pair, move) -> Pair:  # type: ignore[no-untyped-def]
    re, im = value
    return move(re), None if im is None else move(im)


def _first(b: Builder, x: Instruction, axis: int, count: int) -> Instruction:
    limits = [count if d == axis else n for d, n in enumerate(x.shape)]
    return b.slice(x, (0,) * len(limits), limits)


def _whole_spectrum(b: Builder, value: Pair, length: int) -> Pair:
    """All `length` elements of the spectrum of a real signal, from the first half: the others are their conjugates."""
    re, im = value
    assert im is not None
    axis, half = len(re.shape) - 1, length // 2 + 1
    mirrored = []
    for part in (re, im):
        inner = b.slice(part, [1 if d == axis else 0 for d in range(axis + 1)], [*part.shape[:-1], length - half + 1])
        mirrored.append(b.reverse(inner, [axis]))
    mirrored[1] = b.negate(mirrored[1])
    # the imaginary parts of the first and the middle element count as 0
    column = np.arange(half)
    real_only = b.broadcast(b.constant((column == 0) | (2 * column == length)), im.shape, (axis,))
    im = b.select(real_only, b.full_like(im, 0), im)
    return b.concatenate([re, mirrored[0]], axis), b.concatenate([im, mirrored[1]], axis)


def _transform(b: Builder, value: Pair, axis: int, inverse: bool) -> Pair:
    """The unscaled transform along one dimension."""
    rank = len(value[0].shape)
    order = [d for d in range(rank) if d != axis] + [axis]
    back = [order.index(d) for d in range(rank)]
    moved = _both(b, value, lambda x: b.transpose(x, order))
    return _both(b, _along_last(b, moved, inverse), lambda x: b.transpose(x, back))


def _along_last(b: Builder, value: Pair, inverse: bool) -> Pair:
    shape = value[0].shape
    n = shape[-1]
    if n == 1:
        return value
    first = _divisor(n)
    if first is None:
        return _by_matrix(b, value, inverse)
    rest, lead = n // first, shape[:-1]
    rank = len(lead)
    swap = (*range(rank), rank + 1, rank)
    columns = _both(b, value, lambda x: b.transpose(b.reshape(x, (*lead, first, rest)), swap))
    rows = _times_roots(b, _along_last(b, columns, inverse), n, inverse)
    turned = _both(b, rows, lambda x: b.transpose(x, swap))
    done = _along_last(b, turned, inverse)
    return _both(b, done, lambda x: b.reshape(b.transpose(x, swap), shape))


def _divisor(n: int) -> int | None:
    """The divisor of n to split by, or None where one product is to do it."""
    if n <= _ONE_PRODUCT:
        return None
    divisors = [d for d in range(2, _ONE_PRODUCT + 1) if n % d == 0]
    if divisors:
        return divisors[-1]
    larger = next((d for d in range(_ONE_PRODUCT + 1, math.isqrt(n) + 1) if n % d == 0), None)
    if larger is None and n > _LARGEST_PRIME:
        raise UnsupportedOpError(
            f"a Fourier transform of {n} elements, a prime above {_LARGEST_PRIME}, is not supported; "
            "pad the signal to a length with smaller divisors"
        )
    return larger


def _roots(angles: Array, n: int, inverse: bool, dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """Cosines and sines of the n-th parts of a turn."""
    turn = 2 * np.pi * (angles % n) / n
    return np.cos(turn).astype(dtype), (np.sin(turn) if inverse else -np.sin(turn)).astype(dtype)


def _times_roots(b: Builder, value: Pair, n: int, inverse: bool) -> Pair:
    """Element (j, k) of the last two dimensions times the root of unity j * k."""
    re, im = value
    assert im is not None
    rows, columns = re.shape[-2:]
    angles = np.outer(np.arange(rows), np.arange(columns))
    rank = len(re.shape)
    cos, sin = (
        b.broadcast(b.constant(part), re.shape, (rank - 2, rank - 1))
        for part in _roots(angles, n, inverse, re.tensor_type.element.dtype)
    )
    return (
        b.subtract(b.multiply(re, cos), b.multiply(im, sin)),
        b.add(b.multiply(re, sin), b.multiply(im, cos)),
    )


def _by_matrix(b: Builder, value: Pair, inverse: bool) -> Pair:
    """One real matrix product from (re, im) to (re, im), end to end."""
    re, im = value
    n, rank = re.shape[-1], len(re.shape)
    angles = np.outer(np.arange(n), np.arange(n))
    cos, sin = _roots(angles, n, inverse, re.tensor_type.element.dtype)
    matrix = np.concatenate([cos, sin], 1)
    operand = re
    if im is not None:
        matrix = np.concatenate([matrix, np.concatenate([-sin, cos], 1)], 0)
        operand = b.concatenate([re, im], rank - 1)
    product = b.dot(operand, b.constant(matrix), [rank - 1], [0])
    starts = ((0,) * rank, (*(0,) * (rank - 1), n))
    limits = (re.shape, (*re.shape[:-1], 2 * n))
    first, second = (b.slice(product, s, e) for s, e in zip(starts, limits, strict=True))
    return first, second
