"""MatMul, Gemm, Einsum and Det against onnxruntime, and the graphs they become."""

from typing import Any

import numpy as np
import pytest
from onnx import helper

from onnxla.errors import ShapeError
from onnxla.frontends.onnx.importer import import_model
from onnxla.hlo.types import Array
from tests.frontends.rules.one_node import check_node, normal
from tests.frontends.witness import model_of

SHAPES = [
    ((2, 3), (3, 4)),
    ((3,), (3,)),
    ((3,), (3, 4)),
    ((2, 3), (3,)),
    ((5, 2, 3), (3, 4)),
    ((5, 2, 3), (1, 3, 4)),
    ((5, 2, 3), (1, 1, 3, 4)),
    ((2, 3), (5, 3, 4)),
    ((3,), (5, 3, 4)),
    ((5, 2, 3), (3,)),
    ((5, 2, 3), (5, 3, 4)),
    ((5, 1, 2, 3), (6, 3, 4)),
    ((1, 6, 2, 3), (5, 1, 3, 4)),
    ((0, 3), (3, 4)),
    ((2, 0), (0, 4)),
]


@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_matmul(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    check_node("MatMul", normal(*left), normal(*right, seed=1))


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float64, np.uint32])
def test_matmul_of_other_types(dtype: type[np.generic]) -> None:
    check_node("MatMul", np.arange(6).reshape(2, 3).astype(dtype), np.arange(12).reshape(3, 4).astype(dtype))


def opcodes(op_type: str, *inputs: Array, **attributes: Any) -> list[str]:
    names = [f"x{i}" for i in range(len(inputs))]
    node = helper.make_node(op_type, names, ["y"], **attributes)
    module = import_model(model_of([node], dict(zip(names, inputs, strict=True)), ["y"])).module
    return [i.op.opcode for i in module.entry.instructions() if i.op.opcode not in ("parameter", "tuple")]


def test_matmul_with_a_matrix_of_weights_is_one_dot() -> None:
    assert opcodes("MatMul", normal(5, 6, 2, 3), normal(3, 4)) == ["dot"]
    assert opcodes("MatMul", normal(5, 2, 3), normal(1, 3, 4)) == ["reshape", "dot"]


def test_matmul_of_equal_batches_is_one_dot() -> None:
    assert opcodes("MatMul", normal(5, 2, 3), normal(5, 3, 4)) == ["dot"]


def test_matmul_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(ShapeError, match="inner dimensions"):
        opcodes("MatMul", normal(2, 3), normal(4, 5))


@pytest.mark.parametrize("transposed", [(0, 0), (1, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("addend", [None, (2, 4), (4,), (2, 1), (1,), ()])
def test_gemm(transposed: tuple[int, int], addend: tuple[int, ...] | None) -> None:
    a, b = normal(*((3, 2) if transposed[0] else (2, 3))), normal(*((4, 3) if transposed[1] else (3, 4)), seed=1)
    c = None if addend is None else normal(*addend, seed=2)
    check_node("Gemm", a, b, c, transA=transposed[0], transB=transposed[1], alpha=0.5, beta=2.0)


def test_plain_gemm_is_a_dot_and_a_bias() -> None:
    assert opcodes("Gemm", normal(2, 3), normal(4, 3), normal(4), transB=1) == ["dot", "broadcast", "add"]


EQUATIONS = [
    ("ij,jk->ik", [(2, 3), (3, 4)]),
    ("ij,jk->ki", [(2, 3), (3, 4)]),
    ("ij,jk", [(2, 3), (3, 4)]),
    ("bij,bjk->bik", [(5, 2, 3), (5, 3, 4)]),
    ("bqhd,bkhd->bhqk", [(2, 3, 4, 5), (2, 6, 4, 5)]),
    ("bhqk,bkhd->bqhd", [(2, 4, 3, 6), (2, 6, 4, 5)]),
    ("i,i->", [(3,), (3,)]),
    ("i,j->ij", [(3,), (4,)]),
    ("i,j->ji", [(3,), (4,)]),
    ("ij->ji", [(2, 3)]),
    ("ij->", [(2, 3)]),
    ("ij->j", [(2, 3)]),
    ("ii->i", [(3, 3)]),
    ("ii->", [(3, 3)]),
    ("bii->b", [(2, 3, 3)]),
    ("...ij,...jk->...ik", [(5, 2, 3), (5, 3, 4)]),
    ("...ij,jk->...ik", [(5, 6, 2, 3), (3, 4)]),
    ("...ij,...jk", [(5, 1, 2, 3), (6, 3, 4)]),
    ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
    ("ij,ij->ij", [(2, 3), (2, 3)]),
    ("ab,cd,ac->bd", [(2, 3), (4, 5), (2, 4)]),
    ("ij,kl->i", [(2, 3), (4, 5)]),
]


@pytest.mark.parametrize(("equation", "shapes"), EQUATIONS)
def test_einsum(equation: str, shapes: list[tuple[int, ...]]) -> None:
    operands = [normal(*shape, seed=i) for i, shape in enumerate(shapes)]
    names = [f"x{i}" for i in range(len(shapes))]
    node = helper.make_node("Einsum", names, ["y"], equation=equation)
    imported = import_model(model_of([node], dict(zip(names, operands, strict=True)), ["y"]))
    (result,) = imported.module.entry.evaluate(*operands)
    np.testing.assert_allclose(result, np.einsum(equation, *operands), rtol=1e-5, atol=1e-5)


def test_einsum_of_attention_scores_needs_no_transpose() -> None:
    assert opcodes("Einsum", normal(2, 3, 4, 5), normal(2, 6, 4, 5), equation="bqhd,bkhd->bhqk") == ["dot"]


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 70])
def test_determinant(rows: int) -> None:
    matrices = (normal(4, rows, rows) / np.sqrt(rows)).astype(np.float32)
    matrices[0, :, 0] = 0
    check_node("Det", matrices, rtol=1e-4, atol=1e-5)
    check_node("Det", matrices[1], rtol=1e-4, atol=1e-5)
