"""Many small HLO computations compiled as one program, run, and compared with `evaluate`.

Compiling is what takes time, so all cases of a test share one module: the parameters of each case are inputs
of the module and its results are outputs. Where that fails, the cases are tried one by one, and the message names them.
"""

from collections.abc import Sequence

import numpy as np

import onnxla
from onnxla.errors import OnnxlaError
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction, Module
from onnxla.hlo.types import Array, TupleType, Value, element_of, type_of
from tests.codegen import arm64
from tests.hlo.case import Case

EPSILON = {"f64": 2.0**-52, "c128": 2.0**-52, "f32": 2.0**-23, "c64": 2.0**-23, "f16": 2.0**-10, "bf16": 2.0**-7}
EPSILON |= {"f8e4m3fn": 2.0**-3, "f8e5m2": 2.0**-2, "f8e4m3fnuz": 2.0**-3, "f8e5m2fnuz": 2.0**-2, "f4e2m1fn": 0.5}
TINY = {"f64": 2.0**-1022, "c128": 2.0**-1022, "f32": 2.0**-126, "c64": 2.0**-126, "f16": 2.0**-14, "bf16": 2.0**-126}
TINY |= {"f8e4m3fn": 2.0**-6, "f8e5m2": 2.0**-14, "f8e4m3fnuz": 2.0**-7, "f8e5m2fnuz": 2.0**-15, "f4e2m1fn": 1.0}


def leaves(value: Value) -> list[Array]:
    return [leaf for v in value for leaf in leaves(v)] if isinstance(value, tuple) else [np.asarray(value)]


def result_leaves(b: Builder, result: Instruction) -> list[Instruction]:
    if isinstance(result.type, TupleType):
        return [b.get_tuple_element(result, i) for i in range(len(result.type.elements))]
    return [result]


def together(cases: Sequence[Case]) -> Module:
    """One module that computes every case."""
    b = Builder("main")
    outputs: list[Instruction] = []
    for case in cases:
        outputs += result_leaves(b, case.build(b, *(b.parameter(type_of(a)) for a in case.arguments)))
    return Module("cases", b.build(b.tuple(*outputs)))


def run_together(cases: Sequence[Case], target: str = "host") -> list[list[Array]]:
    """The leaves of each case's result, from compiled code."""
    model = onnxla.compile(together(cases), options={"target_cpu": target, "cache_dir": None})
    arguments = [a for case in cases for a in case.arguments]
    if target == arm64.TARGET:
        results = iter(arm64.run_on_arm64(model, arguments))
        return [[next(results) for _ in leaves(case.computation().evaluate(*case.arguments))] for case in cases]
    feeds = {given.name: a for given, a in zip(model.get_inputs(), arguments, strict=True)}
    results = iter(model.run(None, feeds))
    return [[next(results) for _ in leaves(case.computation().evaluate(*case.arguments))] for case in cases]


TOGETHER = 120


def problems(cases: Sequence[Case], target: str, normwise: bool = False) -> list[str]:
    """What is wrong with compiled code, a line for each case."""
    if len(cases) > TOGETHER:
        half = len(cases) // 2
        return problems(cases[:half], target, normwise) + problems(cases[half:], target, normwise)
    try:
        every = run_together(cases, target)
    except OnnxlaError as error:
        if len(cases) == 1:
            return [f"{cases[0].name}: {type(error).__name__}: {error}"]
        return [p for case in cases for p in problems([case], target, normwise)] or [f"only together: {error}"]
    found = []
    for case, results in zip(cases, every, strict=True):
        expected = leaves(case.computation().evaluate(*case.arguments))
        for ours, reference in zip(results, expected, strict=True):
            difference = disagreement(ours, reference, case.ulps, normwise)
            if difference:
                found.append(f"{case.name}: {difference}")
    return found


def disagreement(ours: Array, reference: Array, ulps: float, normwise: bool) -> str | None:
    """Why the two differ, or None. NaN equals NaN; zeros of different sign differ where no error is allowed.

    `ulps` counts units in the last place of each value or, `normwise`, of the largest value.
    """
    if ours.shape != reference.shape or ours.dtype != reference.dtype:
        return f"{type_of(ours)} compiled, {type_of(reference)} evaluated"
    element = element_of(ours.dtype)
    if element.is_float or element.is_complex:
        bad = _float_differences(ours, reference, ulps, normwise)
    else:
        bad = np.asarray(ours != reference)
    if not bad.any():
        return None
    places = np.argwhere(bad)
    first = tuple(places[0])
    got, wanted = ours[first], reference[first]
    return f"{len(places)} of {bad.size} differ, first at {first}: {got!r} compiled, {wanted!r} evaluated"


def _float_differences(ours: Array, reference: Array, ulps: float, normwise: bool) -> Array:
    element = element_of(ours.dtype)
    wide = np.complex128 if element.is_complex else np.float64
    a, b = ours.astype(wide), reference.astype(wide)
    with np.errstate(all="ignore"):
        same = a == b
        if not element.is_complex and ulps == 0:
            same &= np.signbit(a) == np.signbit(b)
        size = np.max(np.abs(b), initial=0, where=np.isfinite(b)) if normwise else np.abs(b)
        near = (ulps > 0) & (np.abs(a - b) <= ulps * EPSILON[element.name] * np.maximum(size, TINY[element.name]))
    return np.asarray(~(same | near | (np.isnan(a) & np.isnan(b))))
