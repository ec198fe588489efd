"""The inputs and outputs of a model of any format, and how dimensions that are left open get their sizes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from onnxla.errors import HloError, Problem, ShapeError, UnboundDimensionsError
from onnxla.hlo.types import Array, ElementType, TensorType

Dimension: TypeAlias = int | str | None
"""A size, the name of a symbolic dimension, or None where the model says nothing."""


@dataclass(frozen=True)
class TensorSpec:
    """An input or output as the model declares it, or, after import, with every dimension a number."""

    name: str
    element: ElementType | None
    """None for strings, and for what is not a tensor."""
    shape: tuple[Dimension, ...] | None
    """None where the model does not even give the rank."""
    onnx_type: str
    """`tensor(float)`, `seq(tensor(int64))`: as onnxruntime spells it."""

    @property
    def is_static(self) -> bool:
        return self.shape is not None and all(isinstance(n, int) for n in self.shape)

    @property
    def type(self) -> TensorType:
        """The tensor type. Raises HloError unless the spec is static."""
        if self.element is None or self.shape is None:
            raise HloError(f"{self.name} is {self.onnx_type}, not a tensor of known rank")
        if not all(isinstance(n, int) for n in self.shape):
            raise HloError(f"{self} has dimensions without a size")
        return TensorType(self.element, tuple(n for n in self.shape if isinstance(n, int)))

    def __str__(self) -> str:
        dimensions = "..." if self.shape is None else ",".join("?" if n is None else str(n) for n in self.shape)
        return f"{self.name} {self.element or self.onnx_type}[{dimensions}]"


@dataclass(frozen=True)
class Signature:
    """What goes in and comes out of a model, by position."""

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    defaults: tuple[TensorSpec, ...] = ()
    """Inputs that have an initializer: constants unless their value is given while compiling."""

    @property
    def symbols(self) -> tuple[str, ...]:
        """Names of the symbolic dimensions of the inputs, each once."""
        return tuple(dict.fromkeys(n for i in self.inputs for n in i.shape or () if isinstance(n, str)))


def bind_inputs(
    specs: Iterable[TensorSpec],
    shapes: Mapping[str, Sequence[int]],
    dims: Mapping[str, int],
    constants: Mapping[str, Array],
    known_names: Iterable[str],
) -> list[TensorSpec]:
    """The specs with a size for every dimension, leaving out those that `constants` replaces.

    A shape given for one input also sizes the symbols it shares with others. Raises ShapeError for
    sizes that contradict the model or names it does not have, UnboundDimensionsError for what is left.
    """
    specs = list(specs)
    _require_names(specs, shapes, dims, {*constants}, {*known_names})
    given = {**{name: tuple(np.shape(value)) for name, value in constants.items()}, **shapes}
    sizes: dict[str, set[int]] = {}
    for spec in specs:
        for size, declared in zip(given.get(spec.name, ()), spec.shape or (), strict=False):
            if isinstance(declared, str):
                sizes.setdefault(declared, set()).add(int(size))
    # A symbol that given shapes contradict stays unbound for the inputs without one.
    symbols = {symbol: found.pop() for symbol, found in sizes.items() if len(found) == 1} | dict(dims)
    bound: list[TensorSpec] = []
    unbound: list[TensorSpec] = []
    for spec in specs:
        if spec.name in given:
            result = _with_shape(spec, given[spec.name], dims)
        else:
            shape = (
                None
                if spec.shape is None
                else tuple(symbols.get(n, n) if isinstance(n, str) else n for n in spec.shape)
            )
            result = TensorSpec(spec.name, spec.element, shape, spec.onnx_type)
            if spec.element is not None and not result.is_static:
                unbound.append(result)
        if spec.name not in constants:
            bound.append(result)
    if unbound:
        raise UnboundDimensionsError([_unbound_problem(unbound)])
    return bound


def _require_names(
    specs: Sequence[TensorSpec], shapes: Iterable[str], dims: Mapping[str, int], constants: set[str], others: set[str]
) -> None:
    inputs = {s.name for s in specs}
    problems = [
        Problem(ShapeError, f"the model has no input {name!r}", hint=f"inputs: {', '.join(sorted(inputs)) or 'none'}")
        for name in sorted({*shapes, *constants} - inputs - others)
    ]
    symbols = {n for s in specs for n in s.shape or () if isinstance(n, str)}
    problems += [
        Problem(
            ShapeError,
            f"the model's inputs have no symbolic dimension {name!r}",
            hint=f"symbolic dimensions: {', '.join(sorted(symbols)) or 'none'}",
        )
        for name in sorted(set(dims) - symbols)
    ]
    problems += [
        Problem(ShapeError, f"dimension {name!r} cannot be {size}", hint="give a size of 0 or more")
        for name, size in dims.items()
        if size < 0
    ]
    if problems:
        raise ShapeError(problems)


def _with_shape(spec: TensorSpec, given: Sequence[int], dims: Mapping[str, int]) -> TensorSpec:
    """`spec` with the given shape. Raises ShapeError where the model or `dims` says otherwise."""
    shape = tuple(int(n) for n in given)
    declared = spec.shape if spec.shape is not None else (None,) * len(shape)
    wanted = [dims.get(n) if isinstance(n, str) else n for n in declared]
    if (
        len(wanted) != len(shape)
        or any(n < 0 for n in shape)
        or any(w not in (None, n) for w, n in zip(wanted, shape, strict=True))
    ):
        cause = f"shape {list(shape)} does not fit the model's input {spec}"
        raise ShapeError([Problem(ShapeError, cause, hint="give a shape with the sizes that are declared")])
    return TensorSpec(spec.name, spec.element, shape, spec.onnx_type)


def _unbound_problem(unbound: Sequence[TensorSpec]) -> Problem:
    symbols = dict.fromkeys(n for s in unbound for n in s.shape or () if isinstance(n, str))
    shapes = ", ".join(f'"{s.name}": {_example_shape(s)}' for s in unbound)
    ways = [f"shapes={{{shapes}}}"]
    if symbols and all(n is not None for s in unbound for n in s.shape or (None,)):
        ways.append("dims={" + ", ".join(f'"{name}": 1' for name in symbols) + "}")
    return Problem(
        UnboundDimensionsError,
        f"{len(unbound)} input{'s have' if len(unbound) > 1 else ' has'} dimensions without a size",
        details=tuple(("input", str(s)) for s in unbound),
        hint=f"give sizes, such as {' or '.join(ways)}",
    )


def _example_shape(spec: TensorSpec) -> str:
    if spec.shape is None:
        return "(...)"
    return (
        f"({', '.join(str(n) if isinstance(n, int) else '1' for n in spec.shape)}{',' if len(spec.shape) == 1 else ''})"
    )
