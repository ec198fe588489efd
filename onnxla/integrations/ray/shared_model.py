"""`SharedModel`: a compiled model that workers of a Ray cluster can have, wherever they are.

The bytes of its artifact are put into the object store once. A worker that wants it writes them to its node's file,
unless another worker there has.
"""

import hashlib
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import ray
from ray.exceptions import GetTimeoutError, ObjectLostError, RayActorError

from onnxla.api import compile as compile_model
from onnxla.api import read_declaration
from onnxla.errors import ArtifactError, InputError
from onnxla.files import read_file
from onnxla.given import whole_number
from onnxla.integrations.ray.node_files import node_file
from onnxla.runtime.artifact_reading import read_artifact
from onnxla.runtime.cache_files import SUFFIX
from onnxla.runtime.loading import load_compiled
from onnxla.runtime.machine import check_machine, host_features
from onnxla.runtime.model import CompiledModel
from onnxla.runtime.program import GPU_TRIPLE
from onnxla.serving.row_plans import powers_of_two

NAMESPACE = "onnxla"
"""Where the holders of durable models are."""
_SECONDS = 120.0
"""Longest time to wait for the bytes of a model."""


@dataclass(frozen=True)
class SharedModel:
    """What `share` returns: small, and sent to workers like any argument."""

    digest: str
    """SHA-256 of the artifact."""
    size: int
    """Of the artifact, in bytes."""
    max_batch_size: int = 0
    """Most rows of one run; 0 where the model was not compiled for numbers of rows."""
    batch_dimension: str = ""
    references: tuple[Any, ...] = field(default=(), repr=False, compare=False)
    """Of the artifact, and of the model that it was compiled from where workers may compile it again."""
    holder: str = ""
    """The name of the actor that has the references, where they are not in here."""
    recompiles: bool = False
    """Whether other machines may compile it again."""
    arguments: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """`compile`'s, for them."""

    def on_this_node(self) -> Path:
        """The artifact as a file of this node, held until this process ends.

        One that is made for another machine is compiled again where `recompile` was asked for. Raises ArtifactError
        otherwise, or where the bytes are lost; what `compile` raises.
        """
        path = node_file(self.digest, lambda: self._bytes(0))
        reason = _unfit(path)
        if not reason:
            return path
        if not self.recompiles:
            raise ArtifactError(f"{reason}\n  hint   share(..., recompile=True) lets such nodes compile it themselves")
        machine = hashlib.sha256(" ".join(sorted(host_features())).encode()).hexdigest()[:16]
        return node_file(f"{self.digest}-{machine}", self._compiled_again)

    def load(self, *, num_threads: int | None = None) -> CompiledModel:
        """The model, its weights mapped from the node's file. `num_threads`: by default what Ray gave this worker."""
        return load_compiled(self.on_this_node(), num_threads=num_threads or assigned_threads())

    def release(self) -> None:
        """Let the cluster forget a durable model. Workers that have it keep it."""
        if self.holder:
            ray.kill(ray.get_actor(self.holder, namespace=NAMESPACE))

    def _bytes(self, which: int) -> Any:
        try:
            references = self.references
            if self.holder:
                actor = ray.get_actor(self.holder, namespace=NAMESPACE)
                references = ray.get(actor.references.remote(), timeout=_SECONDS)
            return ray.get(references[which], timeout=_SECONDS)
        except (ValueError, RayActorError, ObjectLostError, GetTimeoutError) as error:
            raise ArtifactError(
                f"the bytes of the model are not in the cluster (any more): share it again: {error}"
            ) from error

    def _compiled_again(self) -> bytes:
        with tempfile.TemporaryDirectory(prefix="onnxla-ray-") as folder:
            path = Path(folder) / f"model{SUFFIX}"
            options = {**dict(self.arguments.get("options") or {}), "target_cpu": "host"}
            compile_model(bytes(self._bytes(1)), **{**self.arguments, "options": options}).save(path)
            return path.read_bytes()


def share(
    model: Any,
    *,
    max_batch_size: int = 0,
    batch_dimension: str = "",
    durable: bool = False,
    recompile: bool = False,
    **arguments: Any,
) -> SharedModel:
    """Put a model into the cluster's object store: an artifact (a path that ends in `.onnxla`), or a model that is
    compiled here, with `arguments` as `onnxla.compile` takes them.

    With `max_batch_size` it is compiled for 1, 2, 4, ... rows along `batch_dimension` (the open first dimension of the
    inputs, where there is one), and other numbers are padded; refused unless it is proven that rows do not depend on
    one another. `durable`: the bytes outlive this driver, with an actor, until `release`. `recompile`: nodes that the
    code is not for compile the model themselves; it must be a path or bytes then, without files beside it.

    Raises what `compile` raises, InputError for arguments that do not go together, ArtifactError for a bad artifact.
    """
    if not isinstance(arguments.get("options") or {}, Mapping):
        raise InputError("options= is a dict here, for other machines add to it")
    artifact_path = Path(model) if isinstance(model, (str, Path)) and str(model).endswith(SUFFIX) else None
    source: bytes | None = None
    if artifact_path is not None:
        if arguments or max_batch_size or batch_dimension or recompile:
            raise InputError("an artifact is compiled already: give the model to compile it with other arguments")
        read_artifact(artifact_path)
        data = read_file(artifact_path)
        rows, dimension = _rows_of(artifact_path)
    else:
        rows = whole_number(max_batch_size, "max_batch_size", 0)
        dimension = batch_dimension
        if rows:
            dimension = dimension or _open_first_dimension(model)
            options = {"pad_to_bucket": dimension, **dict(arguments.get("options") or {})}
            dims = {dimension: list(powers_of_two(rows)), **dict(arguments.get("dims") or {})}
            arguments |= {"options": options, "dims": dims}
        if recompile:
            source = bytes(model) if isinstance(model, (bytes, bytearray, memoryview)) else read_file(model)
        data = _artifact_of(model, arguments)
    parts = [data] if source is None else [data, source]
    digest = hashlib.sha256(data).hexdigest()
    arrays = [np.frombuffer(part, np.uint8) for part in parts]
    common: dict[str, Any] = {
        "digest": digest,
        "size": len(data),
        "max_batch_size": rows,
        "batch_dimension": dimension,
        "recompiles": recompile,
        "arguments": arguments if recompile else {},
    }
    if not durable:
        return SharedModel(**common, references=tuple(map(ray.put, arrays)))
    name = f"model-{hashlib.sha256(b''.join(hashlib.sha256(part).digest() for part in parts)).hexdigest()[:32]}"
    actor = _Holder.options(name=name, namespace=NAMESPACE, lifetime="detached", get_if_exists=True).remote()
    ray.get(actor.keep.remote(*arrays), timeout=_SECONDS)
    return SharedModel(**common, holder=name)


class _References:
    """An actor: owns the bytes of one model, so that they outlive whoever shared it."""

    def __init__(self) -> None:
        self._references: list[Any] = []

    def keep(self, *parts: Any) -> None:
        self._references = self._references or [ray.put(part) for part in parts]

    def references(self) -> list[Any]:
        return self._references


_Holder: Any = ray.remote(num_cpus=0)(_References)


def assigned_threads() -> int:
    """The CPUs that Ray gave this worker, at least 1."""
    return max(1, int(ray.get_runtime_context().get_assigned_resources().get("CPU", 0)))


def _artifact_of(model: Any, arguments: Mapping[str, Any]) -> bytes:
    with tempfile.TemporaryDirectory(prefix="onnxla-ray-") as folder:
        path = Path(folder) / f"model{SUFFIX}"
        compiled = compile_model(model, **arguments)
        compiled.save(path)
        return path.read_bytes()


def _open_first_dimension(model: Any) -> str:
    inputs = read_declaration(model).signature.inputs
    names = {t.shape[0] for t in inputs if t.shape and isinstance(t.shape[0], str)}
    if len(names) != 1:
        found = f"are {', '.join(sorted(map(str, names)))}" if names else "have no name"
        raise InputError(f"max_batch_size: the open first dimensions of the inputs {found}; give batch_dimension=")
    return str(names.pop())


def _rows_of(path: Path) -> tuple[int, str]:
    """Most rows, and the dimension of rows, that an artifact was made for with `pad_to_bucket`."""
    paddings = [p.padding for p in read_artifact(path).programs if p.padding is not None]
    return max((p.rows for p in paddings), default=0), paddings[0].name if paddings else ""


def _unfit(path: Path) -> str:
    """Why this machine cannot run the artifact; empty where it can."""
    programs = [p for p in read_artifact(path).programs if p.triple != GPU_TRIPLE]
    try:
        for program in programs:
            check_machine(program.triple, program.features)
    except ArtifactError as error:
        return str(error)
    return ""
