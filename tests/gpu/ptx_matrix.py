"""Tensor-core instructions of the simulated device: tiles of matrices spread over the threads of a warp.

Who holds which element is read off the figures of the PTX ISA (9.7.14, "Matrix Fragments for mma.m16n8k16" and
"ldmatrix"), not off the generator. Products are exact and summed in f64, then rounded to f32 once; hardware keeps fewer
bits between the terms.
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
    """mma.m16n8k16 (f16, bf16) or m16n8k8 (tf32): registers as arrays (warps, 32), words for a and b, f32 for c."""
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


def _tf32(words: Array) -> Array:
    """The multiplier does not see the low 13 bits."""
    return (words & np.uint32(0xFFFFE000)).view("f4").astype("f8")
