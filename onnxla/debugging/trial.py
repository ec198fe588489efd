"""One trial: compile a model, run it, and compare what it gives with what it should give."""

import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import onnxla
from onnxla.config import CompileOptions
from onnxla.debugging.comparison import Comparison, compare
from onnxla.debugging.parts import flat_outputs
from onnxla.errors import ArtifactError, DeviceError, HloError, InternalError, OnnxlaError
from onnxla.frontends.onnx.model_file import OnnxModel
from onnxla.runtime.tensors import Array

_FLOPS, _BYTES = 2e9, 1e8
"""What numpy does a second, about, on one CPU."""


@dataclass(frozen=True)
class Settings:
    """How models are compiled and judged, the same for every trial."""

    target: str = "cpu"
    options: CompileOptions = field(default_factory=CompileOptions)
    threads: int | None = None
    rtol: float | None = None
    atol: float | None = None


@dataclass(frozen=True)
class Outcome:
    """What a trial found."""

    comparisons: tuple[Comparison, ...] = ()
    results: Mapping[str, Array] = field(default_factory=dict)
    crash: str = ""
    """A fault of the compiler that it raised itself: what it is, the same for the same fault."""
    message: str = ""
    """The crash in full."""
    refusal: OnnxlaError | None = None
    """Why nothing could be judged."""
    seconds: float = 0.0
    """About how long evaluating the model in numpy takes."""

    @property
    def differing(self) -> list[Comparison]:
        """The outputs that differ, in order."""
        return [c for c in self.comparisons if not c.agrees]

    @property
    def is_fault(self) -> bool:
        return bool(self.crash) or bool(self.differing)

    def is_like(self, other: "Outcome") -> bool:
        """Whether both are faults of one kind."""
        return self.is_fault and self.crash == other.crash


def try_model(
    model: OnnxModel, feeds: Mapping[str, Array], expected: Mapping[str, Array], settings: Settings
) -> Outcome:
    """Compile and run `model`. A model that onnxla refuses for a reason of its own is no fault.

    Raises DeviceError where the target is not there.
    """
    try:
        compiled = onnxla.compile(model, target=settings.target, options=settings.options, num_threads=settings.threads)
        names = [tensor.name for tensor in compiled.get_outputs()]
        results = flat_outputs(dict(zip(names, compiled.run(None, dict(feeds)), strict=True)))
    except DeviceError:
        raise
    except (InternalError, HloError, ArtifactError) as error:  # the artifact is our own
        return Outcome(crash=crash_of(error), message=str(error))
    except OnnxlaError as error:
        return Outcome(refusal=error)
    except Exception as error:  # whatever a fault of ours raises
        return Outcome(crash=crash_of(error), message=f"{type(error).__name__}: {error}")
    seconds = sum(step.flops / _FLOPS + step.bytes / _BYTES for p in compiled.programs for step in p.steps)
    return Outcome(compared(results, expected, settings), results, seconds=seconds)


def compared(results: Mapping[str, Array], expected: Mapping[str, Array], settings: Settings) -> tuple[Comparison, ...]:
    """The results that something is known of, compared with it."""
    return tuple(
        compare(name, array, expected[name], settings.rtol, settings.atol)
        for name, array in results.items()
        if name in expected
    )


def crash_of(error: BaseException) -> str:
    """The kind of an error and the function that raised it."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "onnxla" in Path(f.filename).parts]
    frames = frames or list(traceback.extract_tb(error.__traceback__))
    place = f" in {Path(frames[-1].filename).stem}.{frames[-1].name}" if frames else ""
    return f"{type(error).__name__}{place}"
