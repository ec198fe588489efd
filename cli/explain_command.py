"""`onnxla explain`: everything that is wrong with a model, without compiling it."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import typer

from onnxla.cli import arguments
from onnxla.cli.argument_groups import Compilation, Cut, Sizes
from onnxla.cli.models import Request, request
from onnxla.cli.output import print_json, say
from onnxla.error_json import problem_json
from onnxla.errors import UnboundDimensionsError

if TYPE_CHECKING:
    from onnxla.frontends.model_report import ModelReport
    from onnxla.runtime.mixed_report import FallbackReport

_CANNOT_BE_COMPILED = 3


def explain(
    model: arguments.UncompiledModel,
    *,
    sizes: Sizes,
    cut: Cut,
    fallback: arguments.Fallback = None,
    as_json: arguments.Json = False,
) -> None:
    """Say what a model is made of, and all reasons why it cannot be compiled. Ends with 3 where there are any.

    With --fallback it shows which clusters would be compiled and why the others would not, and ends with 0.

    Dimensions that have no size yet are taken as 1: they are no fault, since the first run may settle them.
    """
    wanted = request(model, Compilation(sizes=sizes), cut=cut, fallback=fallback)
    wanted.require_names()
    found, guessed = _report(wanted)
    assumed = guessed.words()
    clusters = None if fallback is None else _clusters(wanted, guessed)
    if as_json:
        print_json(_document(found, assumed) | ({} if clusters is None else {"clusters": clusters.clusters}))
    else:
        if assumed:
            words = ", ".join(f"{name}={size}" for name, size in assumed.items())
            say(f"dimensions without a size are taken as 1: {words}", style="dim")
        say(found)
        if assumed and not found.compiles:
            say("sizes of 1 may be the reason: give the real ones with --dim NAME=SIZE or --shape INPUT=1x3x8x8")
        if clusters is not None:
            say(clusters)
        say("operators: " + ", ".join(f"{name} {count}" for name, count in found.operators.items()), style="dim")
    if not found.compiles and clusters is None:
        raise typer.Exit(_CANNOT_BE_COMPILED)


@dataclass(frozen=True)
class _AssumedSizes:
    """What was assumed: sizes of dimensions, and shapes of inputs with nameless ones."""

    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    dims: dict[str, int] = field(default_factory=dict)

    def words(self) -> dict[str, str]:
        shapes = {name: "x".join(map(str, shape)) for name, shape in self.shapes.items()}
        return {**shapes, **{name: str(size) for name, size in self.dims.items()}}


def _clusters(wanted: Request, sizes: _AssumedSizes) -> "FallbackReport":
    """Which clusters would be compiled."""
    from onnxla.fallback.compile import explain_mixed, require_fallback

    require_fallback(str(wanted.fallback), wanted.target, wanted.options)
    return explain_mixed(
        wanted.onnx,
        options=wanted.options,
        constants=wanted.constants,
        shapes={**sizes.shapes, **wanted.shapes},
        dims={**sizes.dims, **wanted.single_dims},
    )


def _report(wanted: Request) -> tuple["ModelReport", _AssumedSizes]:
    """The report, and the sizes that were assumed for it."""
    from onnxla.frontends.explain import explain as explain_any

    def explained(shapes: dict[str, tuple[int, ...]], dims: dict[str, int]) -> "ModelReport":
        given: dict[str, Any] = {
            "shapes": {**shapes, **wanted.shapes},
            "dims": {**dims, **wanted.single_dims},
            "constants": wanted.constants,
            "options": wanted.options,
        }
        return explain_any(wanted.read(), **given, **wanted.cut.arguments())

    first = explained({}, {})
    if first.compiles or not all(p.kind is UnboundDimensionsError for p in first.problems):
        return first, _AssumedSizes()
    fixed = {*wanted.shapes, *wanted.constants}
    specs = [s for s in first.signature.inputs if s.shape is not None and s.name not in fixed]
    shapes = {
        s.name: tuple(n if isinstance(n, int) else wanted.single_dims.get(str(n), 1) for n in s.shape or ())
        for s in specs
        if any(n is None for n in s.shape or ())
    }
    symbols = dict.fromkeys(n for s in specs for n in s.shape or () if isinstance(n, str))
    dims = {name: 1 for name in symbols if name not in wanted.single_dims}
    return explained(shapes, dims), _AssumedSizes(shapes, dims)


def _document(found: "ModelReport", assumed: dict[str, str]) -> dict[str, object]:
    return {
        "model": found.name,
        "compiles": found.compiles,
        "assumed_sizes": assumed,
        **found.facts(),
        "operators": found.operators,
        "inputs": [str(spec) for spec in found.signature.inputs],
        "outputs": [str(spec) for spec in found.signature.outputs],
        "problems": [problem_json(p) for p in found.problems],
    }
