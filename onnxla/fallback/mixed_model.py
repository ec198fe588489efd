"""`MixedModel`: a `CompiledModel` whose runs go through stages, some compiled and some in onnxruntime.

Arrays pass from stage to stage without a copy: onnxruntime reads results of compiled code where they lie, and compiled
code reads onnxruntime's. Each is let go when its last reader has run.
"""

import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np

from onnxla.config import RuntimeSettings
from onnxla.errors import ArtifactError, InputError, harmless_line
from onnxla.fallback.report import FallbackReport
from onnxla.fallback.session import Session
from onnxla.hlo.types import TensorType
from onnxla.runtime.model import CompiledModel
from onnxla.runtime.padding import into_targets
from onnxla.runtime.program import Array, Program
from onnxla.runtime.signature import ModelSignature

if TYPE_CHECKING:
    from onnxla.runtime.profiler import Memory, Profile

MakePlan: TypeAlias = "Callable[[Mapping[str, Array], frozenset[str]], MixedPlan]"
"""Makes the plan for the arrays of a run, without believing the inferred types of some values."""
_LOG = logging.getLogger("onnxla")


@dataclass(frozen=True)
class Stage:
    """One cluster: what it reads and makes, and what runs it."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    part: CompiledModel | Session
    """Its inputs and outputs are these, in this order."""

    def run(self, values: Mapping[str, Any]) -> list[Any]:
        if isinstance(self.part, CompiledModel):
            return self.part.run_in_order([values[name] for name in self.inputs])
        return self.part.run(self.outputs, {name: values[name] for name in self.inputs})


@dataclass(frozen=True)
class MixedPlan:
    """The stages for one set of input shapes, and of values where they decide shapes."""

    stages: tuple[Stage, ...]
    shapes: Mapping[str, tuple[int, ...]]
    constants: Mapping[str, Array]
    expected: Mapping[str, TensorType]
    """Types of what onnxruntime gives that the clusters were made with, and that nobody has promised."""
    weights: Mapping[str, Array]
    """Outputs of the model that no stage makes."""
    report: FallbackReport
    finished: tuple[tuple[str, ...], ...]
    """The values that nobody needs any more after each stage."""

    @cached_property
    def own(self) -> frozenset[str]:
        """What compiled clusters make: in memory that nobody else has."""
        return frozenset(n for stage in self.stages if isinstance(stage.part, CompiledModel) for n in stage.outputs)

    def fits(self, arrays: Mapping[str, Array]) -> bool:
        return _have(arrays, self.shapes) and all(
            name not in arrays or (arrays[name].shape == value.shape and arrays[name].tobytes() == value.tobytes())
            for name, value in self.constants.items()
        )


def _have(arrays: Mapping[str, Array], shapes: Mapping[str, tuple[int, ...]]) -> bool:
    return all(arrays[name].shape == shape for name, shape in shapes.items() if name in arrays)


class UnexpectedType(Exception):
    """A value has another type than was inferred. Caught by the model, which plans again."""

    def __init__(self, name: str, value: Array, expected: TensorType) -> None:
        self.name = name
        inferred = f"{expected.element.dtype} {list(expected.shape)}"
        super().__init__(f"{name} is {value.dtype} {list(value.shape)}, and {inferred} was inferred")


class MixedModel(CompiledModel):
    """What `compile(model, fallback="onnxruntime")` returns: used as any compiled model is, but not saved."""

    def __init__(
        self,
        signature: ModelSignature,
        plans: Sequence[MixedPlan],
        make_plan: MakePlan,
        *,
        constants: Mapping[str, Array],
        num_threads: int | None,
        about: Mapping[str, Any],
        may_plan_later: bool,
    ) -> None:
        """`may_plan_later`: whether a run may bring sizes that there is no plan for."""
        super().__init__(signature, [], constants=constants, num_threads=num_threads, about=about)
        self._plans: tuple[MixedPlan, ...] = tuple(plans)
        self._make_plan = make_plan
        self._may_plan_later = may_plan_later
        self._shapes = [plan.shapes for plan in plans]
        """What it was compiled for."""
        self._bound = max(RuntimeSettings.from_environment().specialisations, len(plans))
        self._doubted: frozenset[str] = frozenset()
        self._planning = threading.Lock()

    # Looking inside

    @property
    def clusters(self) -> FallbackReport | None:
        """What runs where, and why, for the sizes used last; None while nothing is planned."""
        return self._plans[0].report if self._plans else None

    @property
    def compiled_parts(self) -> tuple[CompiledModel, ...]:
        """The compiled clusters for the sizes used last, in the order they run."""
        parts = [stage.part for stage in self._plans[0].stages] if self._plans else []
        return tuple(part for part in parts if isinstance(part, CompiledModel))

    @property
    def programs(self) -> tuple[Program, ...]:
        """Those of the compiled clusters for the sizes used last."""
        return tuple(program for part in self.compiled_parts for program in part.programs)

    def hlo(self, stage: str = "hlo") -> str:
        self._refuse("hlo")

    def stages(self) -> list[str]:
        self._refuse("stages")

    def memory(self) -> "Memory":
        self._refuse("memory")

    def profile(
        self, feeds: Mapping[str, Any], *, runs: int = 3, spans: bool = False, overhead: bool = False
    ) -> "Profile":
        self._refuse("profile")

    def warm_up(self, *_: Any, **__: Any) -> int:
        self._refuse("warm_up")

    def save(self, path: str | os.PathLike[str]) -> int:
        """Raises ArtifactError: an artifact runs without onnxruntime, and this model does not."""
        raise ArtifactError(
            "a model with a part in onnxruntime is not saved: an artifact needs neither the model nor onnxruntime. "
            "Compile it again where it runs, with ONNXLA_CACHE_DIR for a quick start; "
            "onnxla explain says what would have to be compiled"
        )

    def link(self) -> None:
        for part in self.compiled_parts:
            part.link()

    def release_memory(self) -> None:
        for part in self.compiled_parts:
            part.release_memory()

    def _refuse(self, method: str) -> NoReturn:
        raise InputError(
            f"{method}() is for models that are compiled as a whole; ask one of the compiled clusters, "
            f"model.compiled_parts[0].{method}(...)"
        )

    # Running

    def _run(self, values: list[Any], out: list[Any] | None) -> list[Any]:
        arrays = self._arguments.arrays(values)
        while True:
            plan = self._plan_for(arrays)
            try:
                results = self._through(plan, arrays)
                break
            except UnexpectedType as error:
                self._doubt(error)
        if out is None:
            return results
        _require_targets(self._arguments.output_names, results, out)
        return into_targets(results, out)

    def _through(self, plan: MixedPlan, arrays: Mapping[str, Array]) -> list[Any]:
        """The outputs of a run. Raises UnexpectedType before a compiled cluster meets what it is not made for."""
        values: dict[str, Any] = {**plan.constants, **arrays, **plan.weights}
        for stage, finished in zip(plan.stages, plan.finished, strict=True):
            for name, value in zip(stage.outputs, stage.run(values), strict=True):
                expected = plan.expected.get(name)
                if expected is not None and (value.shape, value.dtype) != (expected.shape, expected.element.dtype):
                    raise UnexpectedType(name, value, expected)
                values[name] = value
            for name in finished:
                del values[name]
        # Memory of inputs, of weights and of onnxruntime (which gives weights of its own too) is not the caller's.
        return [values[name] if name in plan.own else _copied(values[name]) for name in self._arguments.output_names]

    def _plan_for(self, arrays: Mapping[str, Array]) -> MixedPlan:
        found = self._find(arrays)
        if found is None:
            with self._planning:
                found = self._find(arrays)
                if found is None:
                    if not self._may_plan_later and not any(_have(arrays, shapes) for shapes in self._shapes):
                        raise InputError(self._no_such(arrays))
                    found = self._make_plan(arrays, self._doubted)
                    self._plans = (found, *self._plans)[: self._bound]
        return found

    def _find(self, arrays: Mapping[str, Array]) -> MixedPlan | None:
        return next((plan for plan in self._plans if plan.fits(arrays)), None)

    def _doubt(self, error: UnexpectedType) -> None:
        """Forget all plans: none of them may believe the type of the value."""
        _LOG.warning("%s: it is planned again without believing that", harmless_line(str(error)))
        with self._planning:
            self._doubted |= {error.name}
            self._plans = ()

    def _no_such(self, arrays: Mapping[str, Array]) -> str:
        given = ", ".join(f"{name} {list(array.shape)}" for name, array in arrays.items())
        known = [", ".join(f"{name} {list(shape)}" for name, shape in shapes.items()) for shapes in self._shapes]
        return "\n".join([f"no code for {given}", *(f"  there is code for {text}" for text in known)])


def _copied(value: Any) -> Any:
    return np.array(value, order="C") if isinstance(value, np.ndarray) else value


def _require_targets(names: Sequence[str], results: Sequence[Any], out: Sequence[Any]) -> None:
    """Raise InputError where an array of `out` does not fit its result, whose shape may not be known before the run."""
    problems = []
    for name, result, given in zip(names, results, out, strict=True):
        if given is None:
            continue
        if not isinstance(given, np.ndarray) or not isinstance(result, np.ndarray):
            problems.append(f"{name}: out takes numpy arrays, for tensors")
        elif (given.dtype, given.shape) != (result.dtype, result.shape):
            got = f"{result.dtype} {list(result.shape)}"
            problems.append(f"{name}: out is {given.dtype} {list(given.shape)}, and the result is {got}")
        elif not given.flags.writeable:
            problems.append(f"{name}: out is read-only")
    if problems:
        raise InputError("\n".join(problems))
