"""LU, QR, eigenvalues and singular values in operations, against LAPACK through numpy and scipy."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from onnxla.errors import HloError
from onnxla.hlo.builder import Builder
from onnxla.hlo.lapack.calls import find
from onnxla.hlo.types import Array, type_of

scipy = pytest.importorskip("scipy.linalg")

TYPES: dict[str, Any] = {"s": np.float32, "d": np.float64, "c": np.complex64, "z": np.complex128}
SHAPES = [(2, 4, 4), (5, 3), (3, 6), (1, 1), (7, 7), (2, 0, 3)]


def call(name: str, *operands: Array, **letters: str) -> Sequence[Array]:
    """The results of `lapack_NAME_ffi`, evaluated in numpy."""
    function = find(f"lapack_{name}_ffi")
    assert function is not None
    b = Builder("main")
    parameters = [b.parameter(type_of(o)) for o in operands]
    results: Any = b.build(b.tuple(*function(b, parameters, letters))).evaluate(*operands)
    return list(results)


def random(kind: str, *shape: int) -> Array:
    r = np.random.default_rng(len(shape))
    real = r.standard_normal(shape)
    return (real + 1j * r.standard_normal(shape) if kind in "cz" else real).astype(TYPES[kind])


def adjoint(x: Array) -> Array:
    return np.swapaxes(x, -1, -2).conj()


def near(kind: str, found: Array, wanted: Array, scale: float = 1.0) -> None:
    eps = float(np.finfo(TYPES[kind]).eps)
    assert found.shape == wanted.shape
    assert np.abs(found - wanted).max(initial=0) < 60 * eps * scale, np.abs(found - wanted).max() / eps


cases = pytest.mark.parametrize(("kind", "shape"), [(kind, shape) for kind in TYPES for shape in SHAPES])


@cases
def test_lu(kind: str, shape: tuple[int, ...]) -> None:
    a = random(kind, *shape)
    packed, pivots, status = call(f"{kind}getrf", a)
    assert packed.dtype == a.dtype and pivots.dtype == np.int32 and not status.any()
    for at in np.ndindex(*shape[:-2]):
        if 0 not in shape:
            wanted, rows, info = getattr(scipy.lapack, f"{kind}getrf")(a[at])
            assert info == 0 and np.array_equal(pivots[at] - 1, rows)
            near(kind, packed[at], wanted, 10)


def test_a_zero_pivot_is_reported_and_nan_stays() -> None:
    a = np.array([[1, 2, 3], [2, 4, 6], [0, 0, 5]], np.float64)
    _, pivots, status = call("dgetrf", a)
    assert status == 2 and pivots[0] == 2
    a[1, 0] = np.nan
    assert np.isnan(call("dgetrf", a)[0]).any()


@cases
def test_qr(kind: str, shape: tuple[int, ...]) -> None:
    a = random(kind, *shape)
    packed, factors = call(f"{kind}geqrf", a)
    count = min(shape[-2:])
    product = call(f"{kind}{'un' if kind in 'cz' else 'or'}gqr", packed[..., :count], factors)[0]
    near(kind, product @ np.triu(packed[..., :count, :]), a, 4)
    near(kind, adjoint(product) @ product, np.broadcast_to(np.eye(count), (*shape[:-2], count, count)))
    for at in np.ndindex(*shape[:-2]):
        if 0 not in shape:
            wanted, weights, *_ = getattr(scipy.lapack, f"{kind}geqrf")(a[at])
            near(kind, packed[at], wanted, 4)
            near(kind, factors[at], weights, 4)


@cases
def test_eigenvalues(kind: str, shape: tuple[int, ...]) -> None:
    a = random(kind, *shape[:-1], shape[-2])
    matrix = a + adjoint(a)
    for uplo, triangle in (("L", np.tril), ("U", np.triu)):
        given = triangle(matrix) if matrix.size else matrix
        vectors, values, status = call(f"{kind}{'he' if kind in 'cz' else 'sy'}evd", given, mode="V", uplo=uplo)
        assert not status.any() and vectors.dtype == a.dtype and values.dtype == a.real.dtype
        wanted = np.linalg.eigvalsh(matrix)
        scale = float(np.abs(wanted).max(initial=1))
        near(kind, values, wanted, scale)
        near(kind, matrix @ vectors, vectors * values[..., None, :], scale)
        near(kind, adjoint(vectors) @ vectors, np.broadcast_to(np.eye(shape[-2]), matrix.shape))


@cases
@pytest.mark.parametrize("mode", "ASN")
def test_singular_values(kind: str, shape: tuple[int, ...], mode: str) -> None:
    a = random(kind, *shape)
    _, values, u, v, status = call(f"{kind}gesdd", a, mode=mode)
    assert not status.any() and values.dtype == a.real.dtype
    wanted = np.linalg.svd(a, compute_uv=False)
    scale = float(wanted.max(initial=1))
    near(kind, values, wanted, scale)
    if mode == "N":
        return
    count = values.shape[-1]
    assert u.shape[-1] == (shape[-2] if mode == "A" else count) and v.shape[-2] == (shape[-1] if mode == "A" else count)
    near(kind, (u[..., :count] * values[..., None, :]) @ v[..., :count, :], a, scale)
    for vectors in (u, adjoint(v)):
        size = vectors.shape[-1]
        near(kind, adjoint(vectors) @ vectors, np.broadcast_to(np.eye(size), (*shape[:-2], size, size)))


HARD: dict[str, Callable[[int], Array]] = {
    "graded": lambda n: np.diag(np.logspace(0, -12, n)),
    "all ones": lambda n: np.ones((n, n)),
    "zeros": lambda n: np.zeros((n, n)),
    "Hilbert's": lambda n: 1 / (1.0 + np.arange(n)[:, None] + np.arange(n)),
    "two values": lambda n: np.diag([1.0] * (n // 2) + [-1.0] * (n - n // 2)),
    "huge": lambda n: 1e300 * np.cos(np.outer(np.arange(n), np.arange(n) + 1)),
    "tiny": lambda n: 1e-300 * np.cos(np.outer(np.arange(n), np.arange(n) + 1)),
}


@pytest.mark.parametrize("name", HARD)
def test_matrices_that_are_hard(name: str) -> None:
    a = HARD[name](9)
    unit = np.eye(9)
    symmetric = a / 2 + a.T / 2
    vectors, values, _ = call("dsyevd", symmetric, mode="V", uplo="L")
    wanted = np.linalg.eigvalsh(symmetric)
    scale = max(float(np.abs(wanted).max()), 1e-310)
    near("d", values / scale, wanted / scale)
    near("d", vectors.T @ vectors, unit)
    _, found, u, v, _ = call("dgesdd", a, mode="A")
    wanted = np.linalg.svd(a, compute_uv=False)
    scale = max(float(wanted.max()), 1e-310)
    near("d", found / scale, wanted / scale)
    near("d", (u * (found / scale)) @ v, a / scale)
    near("d", u.T @ u, unit)
    near("d", v @ v.T, unit)


def test_one_matrix_that_is_not_finite_leaves_the_others_alone() -> None:
    a = np.stack([np.full((3, 3), np.nan), np.diag([3.0, 1, 2]), np.full((3, 3), np.inf)])
    symmetric, singular = call("dsyevd", a, mode="V", uplo="L"), call("dgesdd", a, mode="A")
    found = [(symmetric[2], symmetric[1], [1.0, 2, 3]), (singular[4], singular[1], [3.0, 2, 1])]
    for status, values, wanted in found:
        assert np.array_equal(status, [1, 0, 1])
        assert np.isnan(values[[0, 2]]).all()
        near("d", values[1], np.array(wanted))


def test_what_is_no_call_of_ours_is_none() -> None:
    assert find("lapack_sgeev_ffi") is None and find("sgetrf") is None and find("lapack_qgetrf_ffi") is None
    with pytest.raises(HloError, match="takes matrices"):
        call("sgetrf", np.zeros(3, np.float32))
    with pytest.raises(HloError, match="takes 2 operands, not 1"):
        call("sorgqr", np.zeros((3, 3), np.float32))
    with pytest.raises(HloError, match="mode is A, S or N"):
        call("sgesdd", np.zeros((3, 3), np.float32), mode="V")
