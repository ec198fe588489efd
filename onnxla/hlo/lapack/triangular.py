"""Cholesky's factor (potrf) and triangular systems (trsm)."""

from collections.abc import Mapping

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.op import require
from onnxla.hlo.ops.linear_algebra import Cholesky, TriangularSolve
from onnxla.hlo.types import S32

_TRANSPOSES = {"N": "NO_TRANSPOSE", "T": "TRANSPOSE", "C": "ADJOINT"}


def cholesky(b: Builder, matrix: Instruction, letters: Mapping[str, str]) -> tuple[Instruction, Instruction]:
    """The factor, and for each matrix 0, or 1 where it is not positive definite. The other triangle is as it was."""
    require(letters.get("uplo") in ("U", "L"), "LAPACK's argument uplo is U or L")
    lower = letters["uplo"] == "L"
    factor = b.emit(Cholesky(lower), matrix)
    rank = len(matrix.shape)
    rows, columns = (b.iota(matrix.tensor_type.with_element(S32), d) for d in (rank - 2, rank - 1))
    inside = b.compare(rows, columns, "GE" if lower else "LE")
    # a matrix that is not positive definite leaves NaN on the diagonal
    wrong = b.and_(b.compare(rows, columns, "EQ"), b.compare(factor, factor, "NE"))
    ones, zeros = b.full(matrix.shape, 1, S32), b.full(matrix.shape, 0, S32)
    found = b.reduce_by("maximum", b.select(wrong, ones, zeros), [rank - 2, rank - 1])
    status = b.maximum(found, b.full(found.shape, 0, S32))  # of matrices without elements too
    return b.select(inside, factor, matrix), status


def triangular_solve(b: Builder, a: Instruction, rhs: Instruction, letters: Mapping[str, str]) -> Instruction:
    """x with op(a) x = rhs, or x op(a) = rhs."""
    known = {"side": "LR", "uplo": "UL", "diag": "UN", "trans_x": "NTC"}
    for name, allowed in known.items():
        require(letters.get(name, "?") in allowed, f"LAPACK's argument {name} is one of {', '.join(allowed)}")
    op = TriangularSolve(
        left_side=letters["side"] == "L",
        lower=letters["uplo"] == "L",
        unit_diagonal=letters["diag"] == "U",
        transpose_a=_TRANSPOSES[letters["trans_x"]],
    )
    return b.emit(op, a, rhs)
