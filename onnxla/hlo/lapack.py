"""Functions of LAPACK that XLA's CPU client calls for JAX, in operations: Cholesky's factor and triangular systems.

Their arguments are letters, as in LAPACK: `uplo` U or L, `side` L or R, `diag` U or N, `trans_x` N, T or C.
"""

from collections.abc import Mapping

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.op import require
from onnxla.hlo.ops.linear_algebra import Cholesky, TriangularSolve
from onnxla.hlo.types import S32

_TRANSPOSES = {"N": "NO_TRANSPOSE", "T": "TRANSPOSE", "C": "ADJOINT"}


def is_cholesky(target: str) -> bool:
    """Whether a custom call is `lapack_?potrf_ffi`."""
    return target.startswith("lapack_") and target.endswith("potrf_ffi")


def is_triangular_solve(target: str) -> bool:
    """Whether a custom call is `lapack_?trsm_ffi`."""
    return target.startswith("lapack_") and target.endswith("trsm_ffi")


def letters_of(arguments: Mapping[str, object]) -> dict[str, str]:
    """Arguments as LAPACK has them from their character codes."""
    return {name: chr(code) for name, code in arguments.items() if isinstance(code, int) and 0 < code < 128}


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
