"""Every operation's text goes through XLA's parser and its CPU client; the results agree with `evaluate`."""

import numpy as np
import pytest

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction, Module
from onnxla.hlo.printer import print_module
from onnxla.hlo.types import Array, TupleType, Value, element_of, type_of
from tests.hlo import xla_witness
from tests.hlo.case import Case
from tests.hlo.op_cases import CASES

EPSILON = {"f64": 2.0**-52, "c128": 2.0**-52, "f32": 2.0**-23, "c64": 2.0**-23, "f16": 2.0**-10, "bf16": 2.0**-7}
EPSILON |= {"f8e4m3fn": 2.0**-3, "f8e5m2": 2.0**-2}
TINY = {"f64": 2.0**-1022, "c128": 2.0**-100, "f32": 2.0**-126, "c64": 2.0**-24, "f16": 2.0**-14, "bf16": 2.0**-126}
TINY |= {"f8e4m3fn": 2.0**-6, "f8e5m2": 2.0**-14}

SUMS = {"dot", "convolution", "reduce", "reduce-window", "scatter", "select-and-scatter", "fft"}
"""Sums may cancel: their error is measured in units of the largest result."""
PARSED_ONLY = {"acos", "acosh", "asin", "asinh", "atanh", "cosh", "sinh"}
"""XLA's text and shape inference know them, its CPU client does not compile them."""
WRONG_IN_XLA = {("popcnt", "s4")}
"""XLA's CPU client counts the bits of the sign-extended byte."""


def leaves(value: Value) -> list[Array]:
    return [leaf for v in value for leaf in leaves(v)] if isinstance(value, tuple) else [value]


def result_leaves(b: Builder, result: Instruction) -> list[Instruction]:
    if isinstance(result.type, TupleType):
        return [b.get_tuple_element(result, i) for i in range(len(result.type.elements))]
    return [result]


def together(cases: list[Case]) -> Module:
    """One module for all cases: compiling each would take far longer than running them."""
    b = Builder("main")
    outputs: list[Instruction] = []
    for case in cases:
        outputs += result_leaves(b, case.build(b, *(b.parameter(type_of(a)) for a in case.arguments)))
    return Module("cases", b.build(b.tuple(*outputs)))


def disagreement(ours: Array, theirs: Array, ulps: float, normwise: bool) -> str | None:
    """Why the two differ by more than `ulps`, or None."""
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return f"{type_of(ours)} here, {type_of(theirs)} in XLA"
    element = element_of(ours.dtype)
    if not (element.is_float or element.is_complex):
        bad = ours != theirs
    else:
        wide = np.complex128 if element.is_complex else np.float64
        a, b = ours.astype(wide), theirs.astype(wide)
        with np.errstate(all="ignore"):
            same = (a == b) & ((np.signbit(a) == np.signbit(b)) if not element.is_complex and not ulps else True)
            size = np.max(np.abs(b), initial=0, where=np.isfinite(b)) if normwise else np.abs(b)
            near = np.abs(a - b) <= ulps * (EPSILON[element.name] * size + TINY[element.name])
            # XLA's CPU client flushes subnormal results
            near |= (np.abs(a) < TINY[element.name]) & (b == 0) & (a != 0)
        bad = ~(same | near | (np.isnan(a) & np.isnan(b)))
    if not bad.any():
        return None
    places = np.argwhere(bad)
    first = tuple(places[0])
    return f"{len(places)} of {bad.size} differ, first at {first}: {ours[first]!r} here, {theirs[first]!r} in XLA"


@pytest.mark.parametrize("opcode", CASES)
def test_evaluate_agrees_with_xla(opcode: str) -> None:
    cases = [c for c in CASES[opcode] if (opcode, c.name[:2]) not in WRONG_IN_XLA]
    module = together(cases)
    if opcode in PARSED_ONLY:
        xla_witness.parse(print_module(module, weights="full"))
        return
    theirs = iter(xla_witness.run(print_module(module, weights="full"), [a for c in cases for a in c.arguments]))
    problems = []
    for case in cases:
        for ours in leaves(case.computation().evaluate(*case.arguments)):
            problem = disagreement(np.asarray(ours), next(theirs), case.ulps, opcode in SUMS)
            if problem:
                problems.append(f"{opcode} {case.name}: {problem}")
    assert not problems, "\n" + "\n".join(problems)
