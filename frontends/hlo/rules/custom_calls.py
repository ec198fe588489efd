"""Calls of what StableHLO does not define: functions of LAPACK that JAX calls, and operations under other names."""

from onnxla.frontends.hlo.operation_view import OperationView
from onnxla.frontends.hlo.registry import RuleResult, lookup, stablehlo_op
from onnxla.hlo.builder import Builder
from onnxla.hlo.lapack import calls as lapack
from onnxla.hlo.module import Instruction

_HINT = (
    f"operations of StableHLO are supported, and of LAPACK {lapack.KNOWN}; "
    "jax.export(..., platforms=['tpu']) writes some others out"
)


@stablehlo_op("custom_call")
def custom_call(node: OperationView, b: Builder) -> RuleResult:
    target = node.symbol("call_target_name", "symbol")
    if target in ("Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "xla.sdy.FuncResultSharding"):
        return list(node.operands)
    if target == "shape_assertion":
        return shape_assertion(node)
    settings = node.attribute("mhlo.backend_config", "backend_config", default={})
    letters = lapack.letters_of(settings) if isinstance(settings, dict) else {}
    if (function := lapack.find(target)) is not None:
        return list(function(b, node.operands, letters))
    family, _, name = target.partition(".")
    rule = lookup(f"chlo.{'top_k' if name == 'topk' else name}") if family in ("mhlo", "chlo") else None
    if rule is None:
        node.unsupported(f"the custom call of {lapack.in_words(target)} is not supported", _HINT)
    if isinstance(inner := node.attribute("mhlo.attributes", default={}), dict):
        node.operation.attributes |= inner
    return rule(node, b)


def shape_assertion(node: OperationView) -> list[Instruction]:
    """A check on the sizes of inputs, which are known here. It has no result."""
    value = node.host.session.known_value(node.operand(0))
    if value is not None and not bool(value.all()):
        message = str(node.attribute("error_message", default="an assertion on the shapes of inputs"))
        node.shape_error(f"the inputs have sizes that the program does not take: {message[:300]}")
    return []
