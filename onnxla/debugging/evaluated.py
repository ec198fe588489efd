"""HLO evaluated on the inputs of a case: as imported, and after as many passes as wanted."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from onnxla.compiler.onnx_source import OnnxSource
from onnxla.compiler.sources import Imported
from onnxla.config import CompileOptions, Limits
from onnxla.debugging.case import Case
from onnxla.debugging.exact import exact_outputs
from onnxla.debugging.parts import flat_outputs
from onnxla.debugging.trial import Settings
from onnxla.errors import InternalError, OnnxlaError
from onnxla.hlo.module import Module
from onnxla.hlo.verifier import verify
from onnxla.passes.pass_base import Pass
from onnxla.passes.pipelines import pipeline_for
from onnxla.runtime.tensors import Array
from onnxla.runtime.vocabulary import places_of


def imported(case: Case, options: CompileOptions) -> Imported:
    """The case's model as HLO, made for its inputs. Raises CompileError with every problem of the model."""
    source = OnnxSource(case.model, options, Limits.from_environment(), {})
    return source.load({name: array.shape for name, array in case.feeds.items()}, {}, case.feeds)


def arguments(found: Imported, case: Case) -> list[Array]:
    """What the entry's parameters take."""
    words = found.vocabularies
    feeds = case.feeds
    return [
        places_of(t.name, feeds[t.name], words[t.name]) if t.name in words else np.asarray(feeds[t.name])
        for t in found.inputs
    ]


def evaluate(module: Module, found: Imported, case: Case) -> dict[str, Array]:
    """The outputs by name, in numpy. `module` is that of `found`, or what passes made of it."""
    with np.errstate(all="ignore"):
        results = module.entry.evaluate(*arguments(found, case))
    return named_results(results, found, case)


def named_results(results: Sequence[Array], found: Imported, case: Case) -> dict[str, Array]:
    """What the elements of the entry's root are of the model's outputs."""
    values = [r.assembled(results) for r in found.results] if found.results else list(results)
    names = [o.name for o in case.model.proto.graph.output]
    return flat_outputs(dict(zip(names, values, strict=True)))


def evaluate_exactly(case: Case, options: CompileOptions) -> dict[str, Array] | None:
    """The outputs in float64; None where it cannot stand in."""
    try:
        return exact_outputs(OnnxSource(case.model, options, Limits.from_environment(), {}), case.feeds)
    except OnnxlaError:
        return None


@dataclass(frozen=True)
class Passes:
    """The passes that `settings` ask for, in order; new ones for each use, as passes keep counts."""

    settings: Settings

    def all(self) -> list[Pass]:
        options = self.settings.options
        passes = [
            p for p in pipeline_for(self.settings.target, options).passes if p.name not in options.disabled_passes
        ]
        names = [p.name for p in passes]
        return passes[: names.index(options.stop_after) + 1] if options.stop_after in names else passes

    def run(self, module: Module, passes: Sequence[Pass]) -> None:
        """Run passes, and verify. Raises InternalError that names the pass which breaks the module, or fails."""
        for one in passes:
            try:
                if one.run(module):
                    verify(module)
            except Exception as error:  # whatever a fault of a pass raises
                raise PassFailed(one.name, f"{type(error).__name__}: {error}") from error


class PassFailed(InternalError):
    """A pass raised an error, or left what is no module."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"the pass {name}: {reason}")
        self.name = name
        self.reason = reason
