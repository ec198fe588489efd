"""Every operation of HLO is computed by a kernel, is no kernel's business, or is expanded before codegen."""

from onnxla.codegen.kernels import elementwise
from onnxla.codegen.kernels.rules import RULES
from onnxla.config import CompileOptions
from onnxla.hlo.op import OPS
from onnxla.hlo.ops.control_flow import Call, Conditional, While
from onnxla.hlo.ops.indexing import Scatter, Sort
from onnxla.hlo.ops.structural import Parameter
from onnxla.passes.complex_numbers import SplitComplexNumbers
from onnxla.passes.expansion import EXPANSIONS, ExpandOperations
from onnxla.passes.pipelines import pipeline_for

PLANNED = {Parameter, While, Conditional, Call}
"""What the plan itself carries out."""
SPLIT = {"complex"}
"""What is gone once complex numbers are pairs."""


def test_every_operation_is_computed_or_expanded() -> None:
    kernels = {*RULES, Scatter, Sort}
    missing = [
        opcode
        for opcode, op in OPS.items()
        if op not in kernels | PLANNED | set(EXPANSIONS)
        and not elementwise.is_elementwise(opcode)
        and opcode not in SPLIT
    ]
    assert not missing


def test_both_targets_expand_before_anything_else_rewrites() -> None:
    for target in ("cpu", "gpu"):
        names = [p.name for p in pipeline_for(target, CompileOptions()).passes]
        assert names.index(ExpandOperations.name) < names.index("simplify")
        assert names.index(SplitComplexNumbers.name) > names.index(ExpandOperations.name)
