"""Which function of LAPACK a custom call means, and the operations that do the same.

A target is `lapack_` + a letter for the element type + the function's name + `_ffi`. Arguments are letters, as in
LAPACK: `uplo` U or L, `side` L or R, `diag` U or N, `trans_x` N, T or C, `mode` N, V, A or S.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from onnxla.hlo.builder import Builder
from onnxla.hlo.lapack.eigenvalues import eigenvalues
from onnxla.hlo.lapack.lu import lu
from onnxla.hlo.lapack.qr import product_of_reflections, qr
from onnxla.hlo.lapack.singular_values import singular_values
from onnxla.hlo.lapack.triangular import cholesky, triangular_solve
from onnxla.hlo.module import Instruction
from onnxla.hlo.op import require

Letters: TypeAlias = Mapping[str, str]
Function: TypeAlias = Callable[[Builder, Sequence[Instruction], Letters], Sequence[Instruction]]
"""(builder, operands, letters) -> the results of the call."""

_TARGET = re.compile(r"(?a)lapack_([sdcz])([a-z]{3,8})_ffi")

_FUNCTIONS: dict[str, tuple[int, Function]] = {
    "potrf": (1, lambda b, x, letters: cholesky(b, x[0], letters)),
    "trsm": (2, lambda b, x, letters: [triangular_solve(b, x[0], x[1], letters)]),
    "getrf": (1, lambda b, x, letters: lu(b, x[0])),
    "geqrf": (1, lambda b, x, letters: qr(b, x[0])),
    "orgqr": (2, lambda b, x, letters: [product_of_reflections(b, x[0], x[1])]),
    "ungqr": (2, lambda b, x, letters: [product_of_reflections(b, x[0], x[1])]),
    "syevd": (1, lambda b, x, letters: eigenvalues(b, x[0], letters)),
    "heevd": (1, lambda b, x, letters: eigenvalues(b, x[0], letters)),
    "gesdd": (1, lambda b, x, letters: singular_values(b, x[0], letters)),
}
"""By name without the element's letter: the number of operands and the function."""

_WORDS = {
    "geev": "eigenvalues of matrices that need not be symmetric",
    "gees": "Schur's decomposition",
    "gehrd": "Hessenberg's decomposition",
    "sytrd": "the reduction to a tridiagonal matrix",
    "hetrd": "the reduction to a tridiagonal matrix",
    "gtsv": "tridiagonal systems",
    "geqp3": "QR with pivots",
    "ormqr": "products with a matrix of reflections",
    "unmqr": "products with a matrix of reflections",
}

KNOWN = "Cholesky, triangular solves, LU, QR, eigenvalues of symmetric matrices and singular values"
"""What there is, in words."""


def find(target: str) -> Function | None:
    """The function that a custom call means; None where we do not have it."""
    found = _TARGET.fullmatch(target)
    entry = _FUNCTIONS.get(found[2]) if found else None
    if entry is None:
        return None
    count, function = entry

    def checked(b: Builder, operands: Sequence[Instruction], letters: Letters) -> Sequence[Instruction]:
        require(len(operands) == count, f"{target} takes {count} operands, not {len(operands)}")
        for operand in operands[:1]:
            element = operand.tensor_type.element
            require(element.is_float or element.is_complex, f"{target} does not take {operand.type}")
            require(len(operand.shape) >= 2, f"{target} takes matrices, not {operand.type}")
        return function(b, operands, letters)

    return checked


def in_words(target: str) -> str:
    """What a function of LAPACK that we do not have does; its target where we do not know."""
    found = _TARGET.fullmatch(target)
    words = _WORDS.get(found[2]) if found else None
    return f"{target} ({words})" if words else target


def letters_of(arguments: Mapping[str, object]) -> dict[str, str]:
    """Arguments as LAPACK has them from their character codes."""
    return {name: chr(code) for name, code in arguments.items() if isinstance(code, int) and 0 < code < 128}
