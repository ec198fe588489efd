"""onnxruntime's smaller tensor operators against onnxruntime."""

import numpy as np
import pytest

from onnxla.errors import OnnxlaError
from onnxla.frontends.onnx.importer import import_model
from tests.frontends.rules.test_contrib_attention import check, model_with, normal


@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (2, 2, 7, 7)])
def test_inverse(shape: tuple[int, ...]) -> None:
    check("Inverse", {"x": normal(*shape)}, ["y"], rtol=1e-3)


def test_inverse_needs_other_pivots_than_the_diagonal() -> None:
    check("Inverse", {"x": np.array([[0, 2, 0], [0, 0, 4], [1, 0, 0]], np.float32)}, ["y"])


def test_inverse_of_no_square_matrix_is_refused() -> None:
    with pytest.raises(OnnxlaError, match="square matrices"):
        import_model(model_with("Inverse", {"x": normal(2, 3)}, ["y"]))


@pytest.mark.parametrize("upper", [0, 1])
def test_triangle(upper: int) -> None:
    check("Trilu", {"x": normal(2, 4, 5), "k": np.array(1, np.int64)}, ["y"], upper=upper)


@pytest.mark.parametrize("dim, size, step", [(-1, 3, 1), (1, 4, 2), (0, 2, 3)])
def test_unfold(dim: int, size: int, step: int) -> None:
    check("UnfoldTensor", {"x": normal(5, 7, 6)}, ["y"], dim=dim, size=size, step=step)


def test_expand_dims() -> None:
    check("ExpandDims", {"x": normal(2, 3), "a": np.array(-1, np.int32)}, ["y"], held=("a",))


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
def test_pairwise_distances(metric: str) -> None:
    check("CDist", {"x": normal(4, 6), "z": normal(5, 6, seed=1)}, ["y"], metric=metric)
