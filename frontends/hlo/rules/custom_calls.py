"""Calls of what StableHLO does not define: functions of LAPACK that JAX calls, and operations under other names."""

from onnxla.frontends.hlo.operation_view import OperationView
from onnxla.frontends.hlo.registry import RuleResult, lookup, stablehlo_op
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.linear_algebra import Cholesky, TriangularSolve
from onnxla.hlo.types import S32

_HINT = (
    "operations of StableHLO, and of LAPACK's potrf (Cholesky) and trsm (triangular solve), are supported; "
    "jax.export(..., platforms=['tpu']) writes some others out"
)


@stablehlo_op("custom_call")
def custom_call(node: OperationView, b: Builder) -> RuleResult:
    target = node.symbol("call_target_name", "symbol")
    if target in ("Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "xla.sdy.FuncResultSharding"):
        return list(node.operands)
    if target == "shape_assertion":
        return shape_assertion(node)
    if target.startswith("lapack_") and target.endswith("potrf_ffi"):
        return lapack_cholesky(node, b)
    if target.startswith("lapack_") and target.endswith("trsm_ffi"):
        return lapack_triangular_solve(node, b)
    family, _, name = target.partition(".")
    rule = lookup(f"chlo.{'top_k' if name == 'topk' else name}") if family in ("mhlo", "chlo") else None
    if rule is None:
        node.unsupported(f"the custom call of {target} is not supported", _HINT)
    if isinstance(inner := node.attribute("mhlo.attributes", default={}), dict):
        node.operation.attributes |= inner
    return rule(node, b)


def shape_assertion(node: OperationView) -> list[Instruction]:
    """A check on the sizes of inputs, which are known here. It has no result."""
    value = node.scope.session.known_value(node.operand(0))
    if value is not None and not bool(value.all()):
        message = str(node.attribute("error_message", default="an assertion on the shapes of inputs"))
        node.shape_error(f"the inputs have sizes that the program does not take: {message[:300]}")
    return []


def _letter(node: OperationView, name: str) -> str:
    """An argument of LAPACK's: a letter as its code."""
    settings = node.attribute("mhlo.backend_config", "backend_config", default={})
    value = settings.get(name) if isinstance(settings, dict) else None
    if not isinstance(value, int) or not 0 < value < 128:
        node.shape_error(f"the argument {name} of LAPACK's is missing")
    return chr(value)


def lapack_cholesky(node: OperationView, b: Builder) -> list[Instruction]:
    """The factor, and for each matrix 0, or 1 where it is not positive definite. The other triangle is as it was."""
    matrix = node.operand(0)
    lower = _letter(node, "uplo") == "L"
    factor = b.emit(Cholesky(lower), matrix)
    rank, size = len(matrix.shape), matrix.shape[-1]
    rows, columns = (b.iota(matrix.tensor_type.with_element(S32), d) for d in (rank - 2, rank - 1))
    inside = b.compare(rows, columns, "GE" if lower else "LE")
    diagonal = b.compare(rows, columns, "EQ")
    # a matrix that is not positive definite leaves NaN on the diagonal
    wrong = b.and_(diagonal, b.compare(factor, factor, "NE"))
    ones, zeros = b.full(matrix.shape, 1, S32), b.full(matrix.shape, 0, S32)
    found = b.reduce_by("maximum", b.select(wrong, ones, zeros), [rank - 2, rank - 1])
    status = b.maximum(found, b.full(found.shape, 0, S32))  # of a matrix without elements too
    return [b.select(inside, factor, matrix) if size else factor, status]


def lapack_triangular_solve(node: OperationView, b: Builder) -> Instruction:
    transposed = {"N": "NO_TRANSPOSE", "T": "TRANSPOSE", "C": "ADJOINT"}
    letter = _letter(node, "trans_x")
    if letter not in transposed:
        node.shape_error(f"the argument trans_x of LAPACK's is {letter!r}")
    op = TriangularSolve(
        left_side=_letter(node, "side") == "L",
        lower=_letter(node, "uplo") == "L",
        unit_diagonal=_letter(node, "diag") == "U",
        transpose_a=transposed[letter],
    )
    return b.emit(op, node.operand(0), node.operand(1))
