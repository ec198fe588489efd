"""Arguments that belong together, each group declared once, and commands that take whole groups.

A command names a group as one of its parameters; `flat` tells typer of the fields in its place.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from typing import Any

from onnxla.cli import arguments


@dataclass(frozen=True)
class Sizes:
    """What a model is made for: shapes of inputs, symbolic dimensions, values of inputs."""

    shape: arguments.ShapeTexts = None
    dim: arguments.DimTexts = None
    constant: arguments.ConstantTexts = None


@dataclass(frozen=True)
class Rounding:
    """What factors of products are rounded to, and where not."""

    precision: arguments.Precision = None
    keep_f32: arguments.KeepF32 = None


@dataclass(frozen=True)
class Compilation:
    """How a model is compiled, and where it runs."""

    target: arguments.Target = "cpu"
    device: arguments.Device = None
    rounding: Rounding = Rounding()
    sizes: Sizes = Sizes()
    option: arguments.OptionTexts = None


@dataclass(frozen=True)
class Cut:
    """Which part of a TensorFlow model is meant: a signature, or a graph between values."""

    signature: arguments.Signature = None
    inputs: arguments.From = None
    outputs: arguments.To = None

    def arguments(self) -> dict[str, Any]:
        """As keyword arguments of `onnxla.compile` and of the importer."""
        return {"signature": self.signature, "inputs": self.inputs, "outputs": self.outputs}


def flat(command: Callable[..., None]) -> Callable[..., None]:
    """`command` as typer takes it: in place of each group its fields, groups in groups likewise, in their order."""
    signature = inspect.signature(command)

    @wraps(command)
    def flat_command(**given: Any) -> None:
        command(**{p.name: _taken(p.annotation, p.name, given) for p in signature.parameters.values()})

    parameters = [single for p in signature.parameters.values() for single in _singles(p)]
    flat_command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return flat_command


def _singles(parameter: inspect.Parameter) -> Iterator[inspect.Parameter]:
    if not is_dataclass(parameter.annotation):
        yield parameter
        return
    for f in fields(parameter.annotation):
        yield from _singles(parameter.replace(name=f.name, default=f.default, annotation=f.type))


def _taken(kind: Any, name: str, given: Mapping[str, Any]) -> Any:
    """The argument of this name, or the group of this kind, from single arguments."""
    if not is_dataclass(kind):
        return given[name]
    return kind(**{f.name: _taken(f.type, f.name, given) for f in fields(kind)})  # type: ignore[operator]
