"""The code of one version of a model: compiled ahead, compiled when a request brings new shapes, or out of an artifact.

`Code` is all that the engine asks of whatever runs a version.
"""

import itertools
import os
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from onnxla.errors import CompileError
from onnxla.files import open_file
from onnxla.runtime.model import CompiledModel
from onnxla.runtime.program import Program
from onnxla.runtime.signature import ModelSignature
from onnxla.serving.compiling import CompileService
from onnxla.serving.declared import narrowed
from onnxla.serving.errors import InvalidRequestError, NotReadyError
from onnxla.serving.interface import Arranged, Interface
from onnxla.serving.jobs.request import CompileRequest
from onnxla.serving.model_config import ModelConfig
from onnxla.serving.repository import VersionFiles
from onnxla.serving.requests import Array, Duration
from onnxla.serving.row_plans import assumed_rows, find_batch, proven_rows
from onnxla.serving.variant import Variant

_LARGEST_VALUE = 1 << 16
"""Bytes of an input by whose value code is chosen."""


class Code(Protocol):
    """Whatever runs one version of a model."""

    interface: Interface
    has_state: bool
    compiles: Duration
    cache_hits: int

    def find(self, given: Arranged) -> Variant | None:
        """The code for these shapes, if there is any yet. Any thread may ask."""
        ...

    def key(self, given: Arranged) -> Hashable:
        """Equal where the same code serves."""
        ...

    async def make(self, given: Arranged) -> Variant:
        """The code for these shapes, made now. Raises InvalidRequestError where there cannot be any, OnnxlaErrors."""
        ...

    def variants(self) -> Sequence[Variant]: ...

    def close(self) -> None: ...


class ArtifactCode:
    """A model that was compiled before: the shapes are those it was compiled for."""

    def __init__(self, model: CompiledModel, path: Path, config: ModelConfig) -> None:
        """Raises InvalidRequestError where the configuration asks for batches that the code is not for."""
        self.has_state = bool(model.state)
        self.compiles, self.cache_hits = Duration(), len(model.programs)
        signature = ModelSignature(tuple(model.get_inputs()), tuple(model.get_outputs()))
        self._any: Variant | None = None
        self._by_shapes: dict[Hashable, Variant] = {}
        if not config.max_batch_size:
            self.interface = Interface(narrowed(signature, config, {}), {})
            self._any = Variant(model, None, path)
            return
        batch = find_batch(signature, config)
        groups: dict[Hashable, list[Program]] = {}
        for program in model.programs:
            shapes = tuple(_without(t.shape, batch.inputs.get(t.name)) for t in program.inputs)
            groups.setdefault(shapes, []).append(program)
        for key, programs in groups.items():
            plan = (
                assumed_rows(signature, batch, [_rows_of(p, batch.inputs) for p in programs])
                if config.assume_independent_rows
                else proven_rows(signature, programs, batch, config)
            )
            if plan.most < config.max_batch_size:
                raise InvalidRequestError(
                    f"max_batch_size is {config.max_batch_size}, and the artifact has {plan.most}"
                )
            self._by_shapes[key] = Variant(model, plan, path)
        self.interface = Interface(narrowed(signature, config, batch.inputs), batch.inputs, config.max_batch_size)

    def find(self, given: Arranged) -> Variant | None:
        return self._any or self._by_shapes.get(given.shapes)

    def key(self, given: Arranged) -> Hashable:
        return given.shapes

    async def make(self, given: Arranged) -> Variant:
        raise InvalidRequestError(f"the artifact has no code for shapes {[list(s) for s in given.shapes]}")

    def variants(self) -> Sequence[Variant]:
        return [self._any] if self._any is not None else list(self._by_shapes.values())

    def close(self) -> None:
        self._any = None
        self._by_shapes.clear()


class CompiledCode:
    """A model that is compiled for each set of shapes."""

    def __init__(
        self,
        files: VersionFiles,
        config: ModelConfig,
        signature: ModelSignature,
        has_state: bool,
        compiling: CompileService,
        keep_artifacts: bool,
    ) -> None:
        """Raises InvalidRequestError for a configuration that does not fit the model."""
        self.has_state = has_state
        self.compiles, self.cache_hits = Duration(), 0
        self._files, self._config = files, config
        self._compiling, self._keep = compiling, keep_artifacts
        self._batch = find_batch(signature, config) if config.max_batch_size else None
        rows = {} if self._batch is None else self._batch.inputs
        self._declared = signature
        """With the open dimensions of the model."""
        self._signature = narrowed(signature, config, rows)
        """Without those to which the configuration gives sizes."""
        self.interface = Interface(self._signature, rows, config.max_batch_size)
        self._decisive: tuple[int, ...] = ()
        """Inputs whose values the code is made for."""
        self._known: OrderedDict[Hashable, Variant] = OrderedDict()
        """The one used last is at the end."""
        self._require_known_dims()

    async def make_ahead(self) -> None:
        """Compile what the configuration says, or all there is where nothing is open. Raises OnnxlaErrors."""
        for sizes in self._sizes_ahead():
            shapes = [
                tuple(sizes.get(n, n) if isinstance(n, str) else n for k, n in enumerate(t.shape or []) if k != rows)
                for t, rows in ((t, self.interface.rows_of(t.name)) for t in self._signature.inputs)
            ]
            if not all(isinstance(n, int) for shape in shapes for n in shape) or any(
                t.shape is None for t in self._signature.inputs
            ):
                return  # sizes are open: the first request brings them
            try:
                await self._make(tuple(shapes), [])  # type: ignore[arg-type]
            except CompileError as error:
                if not self._learn(error):
                    raise
                return  # a value is open: the first request brings it

    def find(self, given: Arranged) -> Variant | None:
        known = self._known
        key = self.key(given)
        found = known.get(key)
        if found is not None and len(known) > 1:
            with suppress(KeyError):  # the event loop may drop it meanwhile
                known.move_to_end(key)
        return found

    def key(self, given: Arranged) -> Hashable:
        if not self._decisive:
            return given.shapes
        return (given.shapes, *(_value(given.arrays[k]) for k in self._decisive))

    async def make(self, given: Arranged) -> Variant:
        if self._config.unseen_shapes == "refuse" or (self.has_state and self._known):
            known = [list(map(list, key)) for key in self._known]  # type: ignore[call-overload]
            raise InvalidRequestError(
                f"no code for shapes {[list(s) for s in given.shapes]}, and none is made; there is code for {known}"
            )
        try:
            return await self._make(given.shapes, given.arrays)
        except CompileError as error:
            if not self._learn(error):
                raise
            return await self._make(given.shapes, given.arrays)

    def variants(self) -> Sequence[Variant]:
        return list(self._known.values())

    def close(self) -> None:
        while self._known:
            self._drop()

    def _learn(self, error: CompileError) -> bool:
        """Whether `error` names further inputs whose values must be known."""
        names = [t.name for t in self._signature.inputs]
        needed = {names.index(n) for n in error.needs_constants if n in names} - set(self._decisive)
        if not needed or self._batch is not None:
            return False
        self._decisive = tuple(sorted({*self._decisive, *needed}))
        return True

    async def _make(self, shapes: tuple[tuple[int, ...], ...], arrays: Sequence[Array]) -> Variant:
        config, names = self._config, [t.name for t in self._signature.inputs]
        constants = {names[k]: arrays[k] for k in self._decisive} if arrays else {}
        if any(a.nbytes > _LARGEST_VALUE for a in constants.values()):
            raise InvalidRequestError(f"the code depends on values of {', '.join(constants)}, which are too large")
        arguments: dict[str, Any] = {
            "target": config.target,
            "options": config.options,
            "num_threads": config.num_threads,
            "signature": config.signature,
            "fallback": config.fallback,
            "constants": constants,
        }
        if self._batch is None:
            arguments["shapes"] = {
                t.name: shape
                for t, shape in zip(self._declared.inputs, shapes, strict=True)
                if not t.is_static and t.name not in constants
            }
        else:
            sizes = {n: [size] for n, size in self._named_sizes(shapes).items()}
            arguments["dims"] = {**sizes, self._batch.name: list(self._batch.sizes)}
            if not config.assume_independent_rows and self._batch.sizes != (1,):
                arguments["options"] = {**config.options, "pad_to_bucket": self._batch.name}
        start = time.perf_counter_ns()
        self._require_same_files()
        try:
            made = await self._compiling.compile(
                self._files.path, CompileRequest(**arguments), config.device, self._keep
            )
            self._require_same_files()
            self.compiles.add(time.perf_counter_ns() - start)
            self.cache_hits += made.cached
        except CompileError as error:
            if self._batch is None or "batches cannot be padded" not in str(error):
                raise
            raise InvalidRequestError(
                f"{error}\n  hint   leave max_batch_size out, or set the parameter assume_independent_rows if you know "
                "better"
            ) from error
        plan = None
        if self._batch is not None:
            programs = made.model.programs
            plan = (
                assumed_rows(self._signature, self._batch, self._batch.sizes)
                if config.assume_independent_rows
                else proven_rows(self._signature, programs, self._batch, config)
            )
        taken = [t.name for t in made.model.get_inputs()]
        positions = None if taken == names else [names.index(n) for n in taken]
        variant = Variant(made.model, plan, made.artifact, positions)
        key: Hashable = shapes if not constants else (shapes, *(_value(arrays[k]) for k in self._decisive))
        if made.artifact is not None:
            weakref.finalize(variant, made.artifact.unlink, missing_ok=True)
        self._known[key] = variant
        while len(self._known) > config.specialisations:
            self._drop()
        return variant

    def _require_same_files(self) -> None:
        """One version is one model: code for further shapes is made of the same files. Raises NotReadyError."""
        if self._files.have_changed():
            raise NotReadyError("the model's files have changed since it was loaded: it must be loaded again")

    def _drop(self) -> None:
        """Let go of the code that was used longest ago. Runs that have it end on it."""
        self._known.popitem(last=False)

    def _named_sizes(self, shapes: Sequence[tuple[int, ...]]) -> dict[str, int]:
        """Sizes of the open dimensions but that of the rows. Raises InvalidRequestError where two say different."""
        sizes: dict[str, int] = {}
        for tensor, shape in zip(self._declared.inputs, shapes, strict=True):
            declared = [n for k, n in enumerate(tensor.shape or []) if k != self.interface.rows_of(tensor.name)]
            for n, size in zip(declared, shape, strict=True):
                if isinstance(n, str) and sizes.setdefault(n, size) != size:
                    raise InvalidRequestError(f"{n} is {sizes[n]} and {size}: inputs do not fit together")
        return sizes

    def _open_names(self) -> list[str]:
        batch = None if self._batch is None else self._batch.name
        names = {n: None for t in self._signature.inputs for n in t.shape or [] if isinstance(n, str) and n != batch}
        return list(names)

    def _require_known_dims(self) -> None:
        problems = []
        names = self._open_names()
        unknown = sorted(set(self._config.dims) - set(names))
        if unknown:
            problems.append(
                f"parameter dims: no open dimension {', '.join(unknown)}; there are {', '.join(names) or 'none'}"
            )
        has_nameless = any(t.shape is None or None in t.shape for t in self._declared.inputs)
        if self._batch is not None and has_nameless:
            problems.append("batches need names for all open dimensions of the inputs")
        if self.has_state and (
            has_nameless or set(names) - set(self._config.dims) or any(len(s) > 1 for s in self._config.dims.values())
        ):
            problems.append("a model with a state is served for one set of shapes: give one size of each in dims")
        if problems:
            raise InvalidRequestError("\n".join(problems))

    def _sizes_ahead(self) -> list[dict[str, int]]:
        dims = self._config.dims
        return [dict(zip(dims, sizes, strict=True)) for sizes in itertools.product(*dims.values())]


LoadCode = Callable[[VersionFiles, ModelConfig, CompileService, bool], Any]
"""An async function to `Code`, of whether artifacts are needed: what `load_code` is, and what measurements replace."""


async def load_code(files: VersionFiles, config: ModelConfig, compiling: CompileService, keep_artifacts: bool) -> Code:
    """The code of a version, with all that is compiled ahead. Raises OnnxlaErrors."""
    if files.path.suffix == ".onnxla":
        held = await compiling.in_thread(lambda: open_file(files.path))
        try:  # the file that is open now, whatever takes its place
            path = Path(f"/proc/{os.getpid()}/fd/{held.fileno()}") if keep_artifacts else files.path
            artifact = ArtifactCode(await compiling.load(path, config.num_threads, config.device), path, config)
        except BaseException:
            held.close()
            raise
        weakref.finalize(artifact, held.close)
        return artifact
    declared = await compiling.declaration(files.path, config.signature)
    code = CompiledCode(files, config, declared.signature, declared.has_state, compiling, keep_artifacts)
    try:
        await code.make_ahead()
    except BaseException:
        code.close()
        raise
    return code


def _value(array: Array) -> Hashable:
    if array.dtype == object:
        return tuple(array.reshape(-1).tolist())
    return array.tobytes() if array.nbytes <= _LARGEST_VALUE else array.shape


def _rows_of(program: Program, inputs: Mapping[str, int]) -> int:
    return next(t.shape[inputs[t.name]] for t in program.inputs if t.name in inputs)


def _without(shape: tuple[int, ...], dimension: int | None) -> tuple[int, ...]:
    return shape if dimension is None else shape[:dimension] + shape[dimension + 1 :]
