"""One table of operations x element types x shapes, for every suite that compares two witnesses.

A case builds a computation of its parameters; its arguments are the arrays to run it on, edge
values among them.
"""

from tests.hlo.case import Case
from tests.hlo.cases_contraction import contraction_cases, reduction_cases
from tests.hlo.cases_elementwise import binary_cases, other_elementwise_cases, unary_cases
from tests.hlo.cases_movement import indexing_cases, shape_cases
from tests.hlo.cases_programs import control_flow_cases, linear_algebra_cases


def cases() -> dict[str, list[Case]]:
    """Every case, by opcode."""
    table: dict[str, list[Case]] = {}
    for family in (
        *(unary_cases, binary_cases, other_elementwise_cases),
        *(shape_cases, indexing_cases),
        *(contraction_cases, reduction_cases),
        *(control_flow_cases, linear_algebra_cases),
    ):
        for opcode, case in family():
            table.setdefault(opcode, []).append(case)
    return table


CASES = cases()
