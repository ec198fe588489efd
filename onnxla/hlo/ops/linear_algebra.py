"""Random bits, Fourier transforms and triangular matrices: rng-bit-generator, fft, cholesky, triangular-solve."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from onnxla.hlo.attributes import BOOL, INTS, WORD
from onnxla.hlo.numerics import narrow, widen
from onnxla.hlo.op import Op, attribute, fail, from_result, require, require_tensor
from onnxla.hlo.random_bits import philox, three_fry
from onnxla.hlo.types import (
    C64,
    C128,
    F32,
    F64,
    U8,
    U16,
    U32,
    U64,
    Array,
    Shape,
    TensorType,
    TupleType,
    Type,
    element_of,
    type_of,
)


def _generated(result: Type) -> TensorType:
    if not isinstance(result, TupleType) or len(result.elements) != 2:
        fail(f"rng-bit-generator gives a pair, not {result}")
    return require_tensor(result.elements[1])


@dataclass(frozen=True)
class RngBitGenerator(Op, name="rng-bit-generator"):
    """The pair of the next state and random bits of `type`; a pure function of the state.

    `algorithm` is rng_three_fry (state u64[2]), rng_philox (u64[2] or u64[3]) or rng_default (philox, as on XLA's CPU).
    """

    algorithm: str = attribute("algorithm", WORD)
    type: TensorType = from_result(_generated)

    def infer(self, state: TensorType) -> TupleType:
        states = {"rng_three_fry": (2,), "rng_default": (2, 3), "rng_philox": (2, 3)}
        require(self.algorithm in states, f"unknown random algorithm {self.algorithm}")
        fits = state.element is U64 and state.shape in [(n,) for n in states[self.algorithm]]
        require(fits, f"{self.algorithm} needs a state u64{list(states[self.algorithm])}, got {state}")
        require(self.type.element in (U8, U16, U32, U64), f"random bits are u8, u16, u32 or u64, not {self.type}")
        return TupleType((state, self.type))

    def evaluate(self, state: Array) -> tuple[Array, Array]:
        with np.errstate(over="ignore"):
            return (three_fry if self.algorithm == "rng_three_fry" else philox)(state, self.type)


@dataclass(frozen=True)
class Fft(Op, name="fft"):
    """Discrete Fourier transform over the last `len(fft_length)` dimensions; inverses divide by the number of elements.

    `fft_type` is FFT, IFFT (complex to complex), RFFT (real to half the spectrum) or IRFFT. `fft_length`
    counts elements of the untransformed side.
    """

    fft_type: str = attribute("fft_type", WORD)
    fft_length: Shape = attribute("fft_length", INTS)

    def infer(self, operand: TensorType) -> TensorType:
        rank = len(self.fft_length)
        require(1 <= rank <= 3 and rank <= operand.rank, f"fft_length={self.fft_length} does not fit {operand}")
        outer, inner = operand.shape[:-rank], self.fft_length
        half = (*inner[:-1], inner[-1] // 2 + 1 if inner[-1] else 0)
        sides = {"FFT": (inner, inner), "IFFT": (inner, inner), "RFFT": (inner, half), "IRFFT": (half, inner)}
        require(self.fft_type in sides, f"unknown fft_type {self.fft_type}")
        taken, given = sides[self.fft_type]
        require(operand.shape == outer + taken, f"{self.fft_type} of length {inner} does not fit {operand}")
        elements = {"RFFT": {F32: C64, F64: C128}, "IRFFT": {C64: F32, C128: F64}}
        element = elements.get(self.fft_type, {C64: C64, C128: C128}).get(operand.element)
        if element is None:
            fail(f"{self.fft_type} does not take {operand}")
        return TensorType(element, outer + given)

    def evaluate(self, operand: Array) -> Array:
        axes = tuple(range(-len(self.fft_length), 0))
        element = require_tensor(self.infer(type_of(operand))).element
        transform: dict[str, Callable[..., Array]] = {
            "FFT": np.fft.fftn,
            "IFFT": np.fft.ifftn,
            "RFFT": np.fft.rfftn,
            "IRFFT": np.fft.irfftn,
        }
        return narrow(transform[self.fft_type](operand, s=self.fft_length, axes=axes), element)


def require_square(matrix: TensorType) -> None:
    """Raise HloError unless `matrix` is a batch of square matrices of a floating or complex type."""
    square = matrix.rank >= 2 and matrix.shape[-1] == matrix.shape[-2]
    require(square and (matrix.element.is_float or matrix.element.is_complex), f"no square matrices: {matrix}")


@dataclass(frozen=True)
class Cholesky(Op, name="cholesky"):
    """L with L L^H = a (`lower`), or U with U^H U = a; the other triangle of the result is 0."""

    lower: bool = attribute("lower", BOOL, absent=False)

    def infer(self, a: TensorType) -> TensorType:
        require_square(a)
        return a

    def evaluate(self, a: Array) -> Array:
        wide = widen(a)
        size = a.shape[-1]
        matrix = wide if self.lower else np.conj(np.swapaxes(wide, -1, -2))
        factor = np.zeros_like(matrix)
        with np.errstate(all="ignore"):
            for j in range(size):
                row = factor[..., j, :j]
                pivot = np.sqrt(matrix[..., j, j].real - np.sum(row * np.conj(row), axis=-1).real)
                factor[..., j, j] = pivot
                products = np.matmul(factor[..., j + 1 :, :j], np.conj(row)[..., np.newaxis])[..., 0]
                factor[..., j + 1 :, j] = (matrix[..., j + 1 :, j] - products) / pivot[..., np.newaxis]
        result = factor if self.lower else np.conj(np.swapaxes(factor, -1, -2))
        return np.array(narrow(result, element_of(a.dtype)), order="C")


@dataclass(frozen=True)
class TriangularSolve(Op, name="triangular-solve"):
    """x with op(a) x = b (`left_side`) or x op(a) = b; only the named triangle of a is read.

    `transpose_a` is NO_TRANSPOSE, TRANSPOSE or ADJOINT.
    """

    left_side: bool = attribute("left_side", BOOL, absent=False)
    lower: bool = attribute("lower", BOOL, absent=False)
    unit_diagonal: bool = attribute("unit_diagonal", BOOL, absent=False)
    transpose_a: str = attribute("transpose_a", WORD)

    def infer(self, a: TensorType, b: TensorType) -> TensorType:
        require_square(a)
        known = self.transpose_a in ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")
        require(known, f"unknown transpose_a {self.transpose_a}")
        side = -2 if self.left_side else -1
        fits = a.rank == b.rank and a.element is b.element and a.shape[:-2] == b.shape[:-2]
        require(fits and a.shape[-1] == b.shape[side], f"{a} and {b} do not fit")
        return b

    def evaluate(self, a: Array, b: Array) -> Array:
        matrix = np.tril(widen(a)) if self.lower else np.triu(widen(a))
        if self.transpose_a == "ADJOINT":
            matrix = np.conj(matrix)
        # x op(a) = b is op(a)^T x^T = b^T
        transposed = (self.transpose_a != "NO_TRANSPOSE") == self.left_side
        matrix = np.swapaxes(matrix, -1, -2) if transposed else matrix
        rows = widen(b) if self.left_side else np.swapaxes(widen(b), -1, -2)
        x = np.zeros_like(rows)
        order = list(range(matrix.shape[-1]))
        forward = self.lower != transposed
        with np.errstate(all="ignore"):
            for i in order if forward else reversed(order):
                known = slice(0, i) if forward else slice(i + 1, None)
                total = np.matmul(matrix[..., i : i + 1, known], x[..., known, :])[..., 0, :]
                pivot = 1 if self.unit_diagonal else matrix[..., i, i, np.newaxis]
                x[..., i, :] = (rows[..., i, :] - total) / pivot
        return np.array(narrow(x if self.left_side else np.swapaxes(x, -1, -2), element_of(b.dtype)), order="C")
