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
from onnxla.runtime.artifact import Artifact
from onnxla.runtime.artifact_writing import write_artifact
from onnxla.runtime.consistency import require_consistent
from onnxla.runtime.mixed_parts import ExpectedType, StoredPlan, StoredStage
from onnxla.runtime.mixed_report import FallbackReport
from onnxla.runtime.model import CompiledModel
from onnxla.runtime.onnxruntime_part import LoadedPart, OnnxruntimePart
from onnxla.runtime.program import Program
from onnxla.runtime.signature import ModelSignature
from onnxla.runtime.targets import into_targets, require_targets
from onnxla.runtime.tensors import Array
from onnxla.runtime.thread_pool import default_threads

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
    part: CompiledModel | OnnxruntimePart
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
    expected: Mapping[str, ExpectedType]
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

    def __init__(self, name: str, value: Array, expected: ExpectedType) -> None:
        self.name = name
        inferred = f"{expected[0]} {list(expected[1])}"
        super().__init__(f"{name} is {value.dtype} {list(value.shape)}, and {inferred} was inferred")


class MixedModel(CompiledModel):
    """What `compile(model, fallback="onnxruntime")` returns: used as any compiled model is."""

    def __init__(
        self,
        signature: ModelSignature,
        plans: Sequence[MixedPlan],
        make_plan: "MakePlan | None",
        *,
        constants: Mapping[str, Array],
        num_threads: int | None,
        about: Mapping[str, Any],
        may_plan_later: bool,
    ) -> None:
        """`may_plan_later`: whether a run may bring sizes that there is no plan for. Without `make_plan`, as for a
        model that was loaded, there are the plans that there are."""
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
        """Write the artifact, with the plans of all sizes there are: native code, and ONNX for onnxruntime.

        Returns its size in bytes. Raises ArtifactError.
        """
        if not self._plans:
            raise ArtifactError("nothing is compiled yet: run the model once, or give shapes when compiling")
        programs: list[Program] = []
        plans = [_stored(plan, programs) for plan in sorted(self._plans, key=_order)]
        return write_artifact(path, Artifact(self._signature, tuple(programs), self._about, mixed=tuple(plans)))

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
        chosen = [r for r in zip(self._arguments.output_names, results, out, strict=True) if r[2] is not None]
        for name, result, _ in chosen:
            if not isinstance(result, np.ndarray):
                raise InputError(f"{name}: out= takes tensors of numbers, and this output is none")
        require_targets([given for *_, given in chosen], ((n, r.dtype, r.shape) for n, r, _ in chosen))
        return into_targets(results, out)

    def _through(self, plan: MixedPlan, arrays: Mapping[str, Array]) -> list[Any]:
        """The outputs of a run. Raises UnexpectedType before a compiled cluster meets what it is not made for."""
        values: dict[str, Any] = {**plan.constants, **arrays, **plan.weights}
        for stage, finished in zip(plan.stages, plan.finished, strict=True):
            for name, value in zip(stage.outputs, stage.run(values), strict=True):
                expected = plan.expected.get(name)
                if expected is not None and (value.dtype, value.shape) != expected:
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
                    known = self._may_plan_later or any(_have(arrays, shapes) for shapes in self._shapes)
                    if self._make_plan is None or not known:
                        raise InputError(self._no_such(arrays))
                    found = self._make_plan(arrays, self._doubted)
                    self._plans = (found, *self._plans)[: self._bound]
        return found

    def _find(self, arrays: Mapping[str, Array]) -> MixedPlan | None:
        return next((plan for plan in self._plans if plan.fits(arrays)), None)

    def _doubt(self, error: UnexpectedType) -> None:
        """Forget all plans: none of them may believe the type of the value. Raises ArtifactError where no other can be
        made."""
        if self._make_plan is None:
            raise ArtifactError(f"{error}: compile the model again, for such inputs") from error
        _LOG.warning("%s: it is planned again without believing that", harmless_line(str(error)))
        with self._planning:
            self._doubted |= {error.name}
            self._plans = ()

    def _no_such(self, arrays: Mapping[str, Array]) -> str:
        given = ", ".join(f"{name} {list(array.shape)}" for name, array in arrays.items())
        known = [", ".join(f"{name} {list(shape)}" for name, shape in shapes.items()) for shapes in self._shapes]
        return "\n".join([f"no code for {given}", *(f"  there is code for {text}" for text in known)])


def _order(plan: MixedPlan) -> Any:
    return (tuple(plan.shapes.items()), tuple((n, v.shape, v.tobytes()) for n, v in sorted(plan.constants.items())))


def _stored(plan: MixedPlan, programs: list[Program]) -> StoredPlan:
    """A plan as an artifact has it; its native code goes to `programs`."""
    stages = []
    for stage in plan.stages:
        if isinstance(stage.part, CompiledModel):
            signature = ModelSignature(tuple(stage.part.get_inputs()), tuple(stage.part.get_outputs()))
            programs += stage.part.programs
            stages.append(StoredStage(stage.inputs, stage.outputs, len(programs) - 1, signature, b"", {}))
        else:
            data, weights = stage.part.stored()
            stages.append(StoredStage(stage.inputs, stage.outputs, None, ModelSignature((), ()), data, weights))
    return StoredPlan(tuple(stages), plan.shapes, plan.constants, plan.expected, plan.weights, plan.report)


def loaded_mixed(artifact: Artifact, num_threads: int | None) -> MixedModel:
    """The model in an artifact that has plans. Raises DeviceError without onnxruntime, InputError where it refuses."""
    threads = num_threads or default_threads()
    plans = [_plan(stored, artifact, threads) for stored in artifact.mixed]
    inputs = {t.name for t in artifact.signature.inputs}
    fixed = {name: value for name, value in plans[0].constants.items() if name not in inputs}
    return MixedModel(
        artifact.signature,
        plans,
        None,
        constants=fixed,
        num_threads=num_threads,
        about=artifact.about,
        may_plan_later=False,
    )


def _plan(stored: StoredPlan, artifact: Artifact, threads: int) -> MixedPlan:
    stages = []
    for stage in stored.stages:
        part: CompiledModel | OnnxruntimePart
        if stage.program is None:
            part = LoadedPart(stored.report.model, stage.onnx, stage.weights, threads)
        else:
            program = artifact.programs[stage.program]
            require_consistent(stage.signature, [program], {})
            part = CompiledModel(stage.signature, [program], num_threads=threads)
        stages.append(Stage(stage.inputs, stage.outputs, part))
    return MixedPlan(
        tuple(stages),
        stored.shapes,
        stored.constants,
        stored.expected,
        stored.weights,
        stored.report,
        finished(stages, [t.name for t in artifact.signature.outputs]),
    )


def finished(stages: Sequence[Stage], outputs: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """What the stages make and nobody needs any more, after each of them."""
    last = {name: k for k, stage in enumerate(stages) for name in (*stage.inputs, *stage.outputs)}
    made = {name for stage in stages for name in stage.outputs} - {*outputs}
    return tuple(tuple(name for name in last if name in made and last[name] == k) for k in range(len(stages)))


def _copied(value: Any) -> Any:
    return np.array(value, order="C") if isinstance(value, np.ndarray) else value
