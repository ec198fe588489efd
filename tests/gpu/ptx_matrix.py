"""Tensor-core instructions of the simulated device: tiles of matrices spread over the threads of a warp.

Who holds which element is read off the figures of the PTX ISA (9.7.14, "Matrix Fragments for mma.m16n8k16", "for
mma.m16n8k32" and "ldmatrix"), not off the generator. Products of floats are exact and summed in f64, then rounded to
f32 once; hardware keeps fewer bits between the terms. Sums of integers wrap.
"""

import ml_dtypes
import numpy as np

from tests.gpu.ptx_memory import Array

BF16 = np.dtype(ml_dtypes.bfloat16)
LANE = np.arange(32)
GROUP, WITHIN = LANE // 4, LANE % 4


def spread_tile(rows: Array, transposed: bool) -> Array:
    """Rows (warps, 8, 8 of 16 bits) of one tile to the 32-bit word of each lane (warps, 32)."""
    tile = rows.transpose(0, 2, 1) if transposed else rows
    low, high = tile[:, GROUP, 2 * WITHIN], tile[:, GROUP, 2 * WITHIN + 1]
    return np.asarray(low.astype("u4") | (high.astype("u4") << np.uint32(16)))


def _halves(words: Array, kind: str) -> tuple[Array, Array]:
    """The two elements in each word, lower bits first."""
    pairs = np.ascontiguousarray(words).view("u2").reshape(*words.shape, 2)
    numbers = pairs.view("f2" if kind == "f16" else BF16).astype("f8")
    return numbers[..., 0], numbers[..., 1]


def multiply(kind: str, a: list[Array], b: list[Array], c: list[Array]) -> list[Array]:
    """mma.m16n8k16 (f16, bf16), m16n8k8 (tf32) or m16n8k32 (`u8.s8` and such): registers as arrays (warps, 32), words
    for a and b, f32 or s32 for c."""
    if kind[-1] == "8":
        first, second = kind.split(".")
        return _multiply_bytes(first, second, a, b, c)
    warps = a[0].shape[0]
    depth = 8 if kind == "tf32" else 16
    left, right = np.zeros((warps, 16, depth)), np.zeros((warps, depth, 8))
    for k, word in enumerate(a):
        row = GROUP + 8 * (k % 2)
        if kind == "tf32":
            left[:, row, WITHIN + 4 * (k // 2)] = _tf32(word)
        else:
            column = 2 * WITHIN + 8 * (k // 2)
            left[:, row, column], left[:, row, column + 1] = _halves(word, kind)
    for k, word in enumerate(b):
        if kind == "tf32":
            right[:, WITHIN + 4 * k, GROUP] = _tf32(word)
        else:
            row = 2 * WITHIN + 8 * k
            right[:, row, GROUP], right[:, row + 1, GROUP] = _halves(word, kind)
    product = left @ right
    places = [(GROUP + 8 * (k // 2), 2 * WITHIN + k % 2) for k in range(4)]
    return [
        (total.astype("f8") + product[:, row, column]).astype("f4")
        for total, (row, column) in zip(c, places, strict=True)
    ]


def _multiply_bytes(first: str, second: str, a: list[Array], b: list[Array], c: list[Array]) -> list[Array]:
    """Register k of a holds row `group` (and 8 more where k is odd), four neighbours from column 4 * `within` (and 16
    more where k is 2 or 3) on; register k of b those rows of column `group`, from 4 * `within` (and 16 k) on."""
    warps = a[0].shape[0]
    left, right = np.zeros((warps, 16, 32), np.int64), np.zeros((warps, 32, 8), np.int64)
    for k, word in enumerate(a):
        for byte, number in enumerate(_bytes_of(word, first)):
            left[:, GROUP + 8 * (k % 2), 4 * WITHIN + 16 * (k // 2) + byte] = number
    for k, word in enumerate(b):
        for byte, number in enumerate(_bytes_of(word, second)):
            right[:, 4 * WITHIN + 16 * k + byte, GROUP] = number
    product = left @ right
    return [
        (total.astype(np.int64) + product[:, GROUP + 8 * (k // 2), 2 * WITHIN + k % 2]).astype("i4")
        for k, total in enumerate(c)
    ]


def _bytes_of(words: Array, kind: str) -> list[Array]:
    """The four numbers in each word, lowest bits first."""
    dtype = np.dtype("i1" if kind == "s8" else "u1")
    numbers = np.ascontiguousarray(words).view(dtype).reshape(*words.shape, 4).astype(np.int64)
    return [numbers[..., k] for k in range(4)]


def _tf32(words: Array) -> Array:
    """The multiplier does not see the low 13 bits."""
    return (words & np.uint32(0xFFFFE000)).view("f4").astype("f8")
