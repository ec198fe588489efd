"""What a model would give without rounding: its HLO evaluated in float64, the judge where two results differ."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from onnxla.compiler.sources import Source
from onnxla.debugging.parts import flat_outputs
from onnxla.hlo.literal import Literal
from onnxla.hlo.module import Module
from onnxla.hlo.ops.structural import Constant
from onnxla.hlo.parser import parse_module, zero_weights
from onnxla.hlo.printer import print_module
from onnxla.runtime.tensors import Array
from onnxla.runtime.vocabulary import places_of

_FLOAT = re.compile(r"\b(?:f32|f16|bf16)\[")
_ENOUGH = 1e-5
"""An error that is good enough whatever the other's is."""


@dataclass(frozen=True)
class Exactness:
    """How far two results are from the exact one: ||result - exact|| / ||exact||."""

    name: str
    ours: float
    theirs: float

    @property
    def agrees(self) -> bool:
        """Whether ours errs at most twice as much as theirs, or hardly."""
        return self.ours <= max(2 * self.theirs, _ENOUGH)


def exact_outputs(source: Source, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """The outputs of a model by the interpreter in float64. Raises HloError where float64 cannot stand in."""
    imported = source.load({name: array.shape for name, array in feeds.items()}, {}, feeds)
    module = widened(imported.module)
    words = imported.vocabularies
    native = {t.name: places_of(t.name, feeds[t.name], words[t.name]) for t in imported.inputs if t.name in words}
    arguments = [
        native.get(t.name, feeds[t.name]).astype(p.tensor_type.element.dtype)
        for t, p in zip(imported.inputs, module.entry.parameters, strict=True)
    ]
    results = module.entry.evaluate(*arguments)
    names = [tensor.name for tensor in source.signature({}, {}).outputs]
    values = [r.assembled(results) for r in imported.results] if imported.results else results
    return flat_outputs(dict(zip(names, values, strict=True)))


def widened(module: Module) -> Module:
    """A copy that computes in float64 what `module` computes in f32, f16 and bf16, with the same constants."""
    wide = parse_module(_FLOAT.sub("f64[", print_module(module)), weights=zero_weights)
    for old, new in zip(module.computations(), wide.computations(), strict=True):
        for a, b in zip(old.instructions(), new.instructions(), strict=True):
            if isinstance(a.op, Constant):  # the text of a constant is exact in its own type only
                b.op = Constant(Literal(a.op.literal.array.astype(b.tensor_type.element.dtype)))
    return wide


def exactness(name: str, ours: Array, theirs: Array, exact: Array) -> Exactness:
    """Compare norm-wise, over the elements that are finite in the exact result."""
    finite = np.isfinite(exact)
    wide = np.complex128 if exact.dtype.kind == "c" else np.float64
    values = [np.where(finite, x.astype(wide), 0) for x in (exact, ours, theirs)]
    norm = float(np.linalg.norm(values[0])) or 1.0
    return Exactness(name, *(float(np.linalg.norm(x - values[0])) / norm for x in values[1:]))


_ROUNDING = {np.dtype(np.float64): 1e-6, np.dtype(np.float32): 1e-3}
_COARSE_ROUNDING = 5e-2
"""The error that rounding may give the other side, norm-wise, by its element type; beyond it one side is wrong."""


def is_rounding(ours: Array, theirs: Array, exact: Array, *, bounded: bool = True) -> bool:
    """Whether both are the exact result but for rounding, ours about as near as theirs, at every element too.

    Not `bounded`, rounding may have grown to any size: for those who know that what they compute is the same.
    """
    if ours.dtype.kind in "OSU" or not ours.shape == theirs.shape == exact.shape or ours.dtype != theirs.dtype:
        return False
    if not ours.size or np.array_equal(ours, theirs):
        return True
    found = exactness("", ours, theirs, exact)
    if not found.agrees or (bounded and found.theirs > _ROUNDING.get(ours.dtype, _COARSE_ROUNDING)):
        return False
    finite = np.isfinite(exact)
    wide = np.complex128 if exact.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        same_elsewhere = bool(((ours == theirs) | ((ours != ours) & (theirs != theirs)) | finite).all())
        errors = [np.abs(np.where(finite, x.astype(wide) - exact, 0)).max() for x in (ours, theirs)]
        largest = np.abs(np.where(finite, exact, 0)).max()
    return same_elsewhere and bool(errors[0] <= max(4 * errors[1], _ENOUGH * largest))
