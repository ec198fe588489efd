"""What one model is told by its `config.pbtxt`: Triton's ModelConfig, with settings of our own among its parameters.

Fields that decide what is computed, or when, are followed or refused; those that only suggest how to be fast on other
engines (`optimization`) have no effect. Everything that is wrong with a configuration is in one report.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tritonclient.grpc import model_config_pb2

Message = Any
"""A protobuf message."""


@dataclass(frozen=True)
class VersionPolicy:
    latest: int | None = 1
    """The newest so many; None for others."""
    specific: tuple[int, ...] | None = None
    """These; None for others. Where both are None all versions are served."""

    def choose(self, versions: Sequence[int]) -> list[int]:
        """Those of `versions` to serve, the oldest first."""
        ordered = sorted(versions)
        if self.specific is not None:
            return [v for v in ordered if v in self.specific]
        return ordered if self.latest is None else ordered[-self.latest :]


@dataclass(frozen=True)
class Batching:
    """How requests are put together."""

    preferred: tuple[int, ...] = ()
    """Numbers of rows that are worth being waited for."""
    delay: float = 0.0
    """Seconds that a request may wait for others while an instance is idle."""


@dataclass(frozen=True)
class Warmup:
    """A run before the model is ready."""

    shapes: Mapping[str, tuple[int, ...]]
    random: tuple[str, ...]
    """Inputs with random values; others are zeros."""
    batch: int
    count: int


@dataclass(frozen=True)
class ModelConfig:
    """A configuration, checked as far as it can be without the model."""

    name: str
    max_batch_size: int = 0
    batching: Batching | None = None
    queue_size: int | None = None
    queue_timeout: float | None = None
    """Seconds after which a request that has not begun is given up."""
    instances: int | None = None
    device: str | None = None
    versions: VersionPolicy = VersionPolicy()
    warmup: tuple[Warmup, ...] = ()
    file_name: str = ""
    target: str = "cpu"
    batch_dimension: str = ""
    """Empty: the first dimension of the inputs."""
    batch_sizes: tuple[int, ...] = ()
    """Numbers of rows to compile for; empty: powers of two up to `max_batch_size`."""
    assume_independent_rows: bool = False
    dims: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Sizes of symbolic dimensions to compile for ahead."""
    unseen_shapes: str = "compile"
    """`compile` in the background, or `refuse`."""
    specialisations: int = 16
    """Most sets of shapes for which code is kept."""
    num_threads: int | None = None
    workers: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    """Knobs of CompileOptions."""
    fallback: str | None = None
    signature: str | None = None
    message: Message = field(default_factory=model_config_pb2.ModelConfig, repr=False, compare=False)
    """Triton's message that it was read from."""
